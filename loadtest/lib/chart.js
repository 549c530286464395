// @ts-check
// Charts as SVG: bars side by side, and lines over a number.
import { element, escape } from './xml.js';

const COLORS = ['#2563eb', '#d97706', '#059669', '#7c3aed', '#db2777', '#0891b2', '#65a30d', '#475569'];
const ALARM = '#dc2626';
const GREY = '#64748b';

/**
 * @typedef {object} Panel
 * @property {string} title
 * @property {string} unit
 * @property {(number | null)[]} values one a label
 * @property {number} [alarm] values above it are red
 */

/**
 * Horizontal bars: a line a label, a column a panel.
 * @param {string} title
 * @param {string[]} labels
 * @param {Panel[]} panels
 */
export function bars(title, labels, panels) {
  const [left, panelWidth, gap, top, lineHeight] = [270, 260, 90, 70, 30];
  const width = left + panels.length * (panelWidth + gap);
  const height = top + labels.length * lineHeight + 20;
  const parts = labels.map((label, i) => text(left - 12, top + i * lineHeight + 15, label, { 'text-anchor': 'end' }));
  panels.forEach((panel, p) => {
    const x = left + p * (panelWidth + gap);
    const top_ = Math.max(...panel.values.map((v) => v ?? 0), panel.alarm ?? 0) || 1;
    parts.push(text(x, top - 14, panel.title, { 'font-weight': 'bold' }));
    parts.push(element('line', { x1: x, x2: x, y1: top - 4, y2: height - 16, stroke: GREY }));
    if (panel.alarm !== undefined && panel.alarm > 0) {
      const at = x + panelWidth * panel.alarm / top_;
      parts.push(element('line', { x1: at, x2: at, y1: top - 4, y2: height - 16, stroke: ALARM, 'stroke-dasharray': '4 3' }));
    }
    panel.values.forEach((value, i) => {
      const y = top + i * lineHeight;
      const long = value === null ? 0 : Math.max(value > 0 ? 1 : 0, panelWidth * value / top_);
      const color = panel.alarm !== undefined && (value ?? 0) > panel.alarm ? ALARM : COLORS[p % COLORS.length] ?? GREY;
      if (value !== null) parts.push(element('rect', { x, y: y + 2, width: round(long), height: lineHeight - 10, fill: color }));
      parts.push(text(round(x + long + 6), y + 15, value === null ? 'not measured' : figure(value) + panel.unit, { fill: value === null ? GREY : '#0f172a' }));
    });
  });
  return svg(title, width, height, parts);
}

/**
 * Lines over a number.
 * @param {string} title
 * @param {string} xTitle
 * @param {string} yTitle
 * @param {{name: string, points: {x: number, y: number, marked: boolean}[]}[]} series
 * @param {string} note what a hollow point means
 */
export function lines(title, xTitle, yTitle, series, note) {
  const [width, height, left, right, top, bottom] = [760, 420, 70, 190, 60, 70];
  const all = series.flatMap((s) => s.points);
  const xMax = ceiling(Math.max(0, ...all.map((p) => p.x)));
  const yMax = ceiling(Math.max(0, ...all.map((p) => p.y)));
  const x = (/** @type {number} */ v) => round(left + (width - left - right) * v / xMax);
  const y = (/** @type {number} */ v) => round(height - bottom - (height - top - bottom) * v / yMax);
  const parts = [];
  for (let i = 0; i <= 4; i++) {
    parts.push(element('line', { x1: left, x2: width - right, y1: y(yMax * i / 4), y2: y(yMax * i / 4), stroke: '#e2e8f0' }));
    parts.push(text(left - 8, y(yMax * i / 4) + 4, figure(yMax * i / 4), { 'text-anchor': 'end', fill: GREY }));
    parts.push(text(x(xMax * i / 4), height - bottom + 20, figure(xMax * i / 4), { 'text-anchor': 'middle', fill: GREY }));
  }
  parts.push(text(left, top - 10, yTitle, { fill: GREY }));
  parts.push(text((left + width - right) / 2, height - 24, xTitle, { 'text-anchor': 'middle', fill: GREY }));
  parts.push(text(left, height - 6, note, { fill: GREY, 'font-size': 11 }));
  series.forEach((s, i) => {
    const color = COLORS[i % COLORS.length] ?? GREY;
    const points = s.points.map((p) => `${x(p.x)},${y(p.y)}`).join(' ');
    if (s.points.length > 1) parts.push(element('polyline', { points, fill: 'none', stroke: color, 'stroke-width': 2 }));
    for (const p of s.points) {
      parts.push(element('circle', { cx: x(p.x), cy: y(p.y), r: 4, fill: p.marked ? '#ffffff' : color, stroke: color, 'stroke-width': 2 }));
    }
    parts.push(element('rect', { x: width - right + 16, y: top + 22 * i - 10, width: 12, height: 12, fill: color }));
    parts.push(text(width - right + 34, top + 22 * i, s.points.length > 0 ? s.name : s.name + ' (none)', {}));
  });
  return svg(title, width, height, parts);
}

/**
 * @param {string} title
 * @param {number} width
 * @param {number} height
 * @param {string[]} parts
 */
function svg(title, width, height, parts) {
  return element('svg', {
    xmlns: 'http://www.w3.org/2000/svg', viewBox: `0 0 ${width} ${height}`, width, height, role: 'img',
    'font-family': 'system-ui, sans-serif', 'font-size': 13,
  }, `\n<title>${escape(title)}</title>\n${element('rect', { width, height, fill: '#ffffff' })}\n`
    + text(16, 26, title, { 'font-size': 16, 'font-weight': 'bold' }) + '\n' + parts.join('\n') + '\n') + '\n';
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string} words
 * @param {Record<string, string | number>} attributes
 */
function text(x, y, words, attributes) {
  return element('text', { x, y, ...attributes }, escape(words));
}

/** @param {number} v */
const round = (v) => Math.round(v * 10) / 10;

/** @param {number} v */
const figure = (v) => (v === 0 ? '0' : v >= 100 ? v.toFixed(0) : v >= 1 ? v.toFixed(1) : v.toPrecision(2));

/** The next of 1, 2, 2.5, 5, 10, ... times a power of ten. @param {number} v */
function ceiling(v) {
  if (v <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(v));
  return power * ([1, 2, 2.5, 5, 10].find((m) => m * power >= v) ?? 10);
}
