// @ts-check
// The end of a run: a table for people, and Markdown, JSON, JUnit XML and SVG
// in the folder OUT.
import { junit } from './junit.js';
import { contradictions, row } from './rows.js';
import { describe, Summary } from './summary.js';
import { LOOKS } from './tables.js';

/**
 * @typedef {import('./rows.js').Row} Row
 *
 * @typedef {object} Run
 * @property {string} script whose look the report has
 * @property {Record<string, string | number>} settings
 * @property {import('./rows.js').Case[]} [cases] a row each
 * @property {(summary: Summary) => any[]} [rows] instead of cases: rows of another kind
 * @property {Record<string, string[]>} thresholds options.thresholds
 * @property {{out: string, name: string}} destination
 * @property {(rows: Row[]) => string[]} [remarks]
 *
 * @typedef {object} Report
 * @property {string} script
 * @property {string} title
 * @property {Record<string, string | number>} settings
 * @property {Row[]} rows
 * @property {import('./summary.js').Judged[]} thresholds
 * @property {string[]} failed_thresholds
 * @property {string[]} faults
 * @property {string[]} remarks
 */

/**
 * What handleSummary returns.
 * @param {unknown} data
 * @param {Run} run
 * @returns {Record<string, string>}
 */
export function report(data, run) {
  const summary = new Summary(data);
  /** @type {Row[]} */
  const rows = run.rows?.(summary) ?? (run.cases ?? []).map((about) => row(summary, about));
  const thresholds = summary.judge(run.thresholds);
  return outputs(run.destination, {
    script: run.script,
    title: LOOKS[run.script]?.title ?? run.script,
    settings: run.settings,
    rows,
    thresholds,
    failed_thresholds: thresholds.filter((t) => t.ok === false).map(describe),
    faults: run.rows ? [] : rows.flatMap(contradictions),
    remarks: run.remarks?.(rows) ?? [],
  });
}

/**
 * @param {{out: string, name: string}} destination
 * @param {Report} r
 * @returns {Record<string, string>}
 */
export function outputs({ out, name }, r) {
  const look = LOOKS[r.script];
  const table = look === undefined ? [] : [look.columns.map(([title]) => title), ...r.rows.map((of) => look.columns.map(([, cell]) => cell(of)))];
  /** @type {Record<string, string>} */
  const files = { stdout: '\n' + aligned(table) + '\n' + [...r.remarks.map((s) => s + '\n'), verdict(r)].join('') + '\n' };
  if (out === '') return files;
  files[`${out}/${name}.json`] = JSON.stringify(r, null, 2) + '\n';
  files[`${out}/${name}.md`] = markdown(name, r, table);
  files[`${out}/${name}.xml`] = junit([{ name, thresholds: r.thresholds, faults: r.faults }]);
  files[`${out}/${name}.svg`] = look === undefined ? '' : look.chart(r.rows);
  return files;
}

/**
 * @param {string} name
 * @param {Report} r
 * @param {string[][]} table
 */
export function markdown(name, r, table) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((cell) => cell.replace(/\|/g, '\\|')).join(' | ')} |\n`;
  return [
    `# ${r.title}\n\n`,
    `Settings: ${Object.entries(r.settings).map(([key, value]) => `${key} ${value}`).join(', ')}.`,
    ` Model: ${LOOKS[r.script]?.model ?? 'none'}.\n\n`,
    ...table.map((cells, i) => line(cells) + (i === 0 ? line(cells.map((_, c) => (c === 0 ? '---' : '---:'))) : '')),
    '\naccepted/s is goodput: 201 answers by the time from the start to the last answer. Latencies are of accepted purchases.\n',
    ...r.remarks.map((remark) => `\n> ${remark}\n`),
    `\n![chart](${name}.svg)\n`,
    `\n## Verdict\n\n`,
    ...verdict(r).split('\n').filter((s) => s !== '').map((s) => (s.startsWith('  ') ? `- \`${s.trim()}\`\n` : `${s}\n\n`)),
  ].join('');
}

/** @param {Report} r */
function verdict(r) {
  const list = (/** @type {string} */ title, /** @type {string[]} */ lines) =>
    (lines.length === 0 ? '' : `${title}\n${lines.map((s) => `  ${s}\n`).join('')}`);
  const unknown = r.thresholds.filter((t) => t.ok === null).map((t) => `${t.metric} ${t.expression}`);
  const text = list('Thresholds that failed:', r.failed_thresholds)
    + list('Thresholds that this shape of summary says nothing about (the exit code does: 99):', unknown)
    + list('Contradictions:', r.faults);
  return text === '' ? `Every threshold holds (${r.thresholds.length}).\n` : text;
}

/** A table whose columns line up. @param {string[][]} lines */
export function aligned(lines) {
  const widths = (lines[0] ?? []).map((_, i) => Math.max(...lines.map((cells) => cells[i]?.length ?? 0)));
  return lines.map((cells) =>
    cells.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ') + '\n').join('');
}
