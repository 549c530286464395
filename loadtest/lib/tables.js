// @ts-check
// How each script's rows are shown: columns of the table, and the chart.
import { bars, lines } from './chart.js';

/**
 * @typedef {import('./rows.js').Row} Row
 * @typedef {[string, (r: Row) => string]} Column
 */

/**
 * @param {number | null} value
 * @param {number} digits
 */
export function number(value, digits = 0) {
  return value === null || value === undefined ? '-' : value.toFixed(digits);
}

/** @param {number | null} share */
function percent(share, digits = 1) {
  return share === null || share === undefined ? '-' : (100 * share).toFixed(digits) + ' %';
}

/** @type {Record<string, Column>} */
const C = {
  variant: ['variant', (r) => r.label],
  goodput: ['accepted/s', (r) => number(r.accepted_per_s, (r.accepted_per_s ?? 0) < 100 ? 1 : 0)],
  attempts: ['attempts/s', (r) => number(r.attempts_per_s, (r.attempts_per_s ?? 0) < 100 ? 1 : 0)],
  p50: ['p50 ms', (r) => number(r.p50_ms, 1)],
  p95: ['p95 ms', (r) => number(r.p95_ms, 1)],
  p99: ['p99 ms', (r) => number(r.p99_ms, 1)],
  max: ['max ms', (r) => number(r.response_max_ms, 1)],
  wait: ['lock wait p99', (r) => number(r.lock_wait_p99_ms, 1)],
  waitAll: ['lock wait p99', (r) => number(r.lock_wait_all_p99_ms, 1)],
  hold: ['lock hold p99', (r) => number(r.lock_hold_p99_ms, 1)],
  failedLocks: ['not acquired', (r) => percent(r.failed_acquisition_rate)],
  sold: ['sold', (r) => `${number(r.audit_accepted)} of ${r.stock}`],
  soldUnits: ['sold', (r) => number(r.audit_accepted)],
  oversold: ['oversold', (r) => number(r.oversold)],
  rate: ['rate', (r) => percent(r.oversell_rate)],
  unsold: ['unsold', (r) => number(r.unsold)],
  lost: ['lost updates', (r) => number(r.lost_updates)],
  persisted: ['persisted', (r) => number(r.persisted)],
  rejected: ['rejected', (r) => number(r.rejected)],
  soldOut: ['sold out', (r) => number(r.sold_out)],
  busy: ['busy', (r) => number(r.busy)],
  gaveUp: ['gave up', (r) => number(r.gave_up)],
  failed: ['failed', (r) => number(r.failed)],
  offered: ['offered/s', (r) => number(r.rate)],
  dropped: ['dropped iterations', (r) => number(r.dropped_iterations)],
};

/** @param {(keyof typeof C)[]} names @returns {Column[]} */
const columns = (...names) => names.map((name) => /** @type {Column} */ (C[name]));

const oversellBesideGoodput = (/** @type {Row[]} */ rows) => bars('Oversell beside goodput', rows.map((r) => r.label), [
  { title: 'oversold, % of sold', unit: '%', values: rows.map((r) => (r.oversell_rate === null ? null : 100 * r.oversell_rate)), alarm: 0 },
  { title: 'accepted/s', unit: '', values: rows.map((r) => r.accepted_per_s) },
]);

/**
 * @typedef {object} Look
 * @property {string} title
 * @property {string} model what kind of load it is, for people
 * @property {Column[]} columns
 * @property {(rows: Row[]) => string} chart SVG
 *
 * @typedef {object} SmokeRow
 * @property {string} label
 * @property {string} expected
 * @property {number} right answers that were as expected
 * @property {number} wanted
 * @property {number | null} ms the slowest
 */

/** @type {Record<string, any>} */
const smoke = {
  title: 'Smoke: every answer once',
  model: 'one user after the other, and two at once for the lock',
  columns: /** @type {[string, (r: SmokeRow) => string][]} */ ([
    ['case', (r) => r.label],
    ['answer', (r) => r.expected],
    ['seen', (r) => `${r.right} of ${r.wanted}`],
    ['ms', (r) => number(r.ms, 1)],
  ]),
  chart: (/** @type {SmokeRow[]} */ rows) => bars('Answers and how long they took', rows.map((r) => r.label), [
    { title: 'missing answers', unit: '', values: rows.map((r) => Math.abs(r.wanted - r.right)), alarm: 0 },
    { title: 'slowest, ms', unit: '', values: rows.map((r) => r.ms) },
  ]),
};

/** @type {Record<string, Look>} */
export const LOOKS = {
  smoke: /** @type {Look} */ (smoke),
  race: {
    title: 'Race: more users than units',
    model: 'closed; each user buys once, all at one instant, and repeats what was answered 423',
    columns: columns('variant', 'goodput', 'attempts', 'p50', 'p95', 'p99', 'wait', 'sold', 'oversold', 'rate', 'unsold', 'lost',
      'persisted', 'rejected', 'gaveUp', 'failed'),
    chart: oversellBesideGoodput,
  },
  capacity: {
    title: 'Capacity: arrivals at a rate, whatever the answers take',
    model: 'open; arrivals at a rate, each buys once and does not repeat. A percentile beside dropped iterations is of the arrivals that were sent alone',
    columns: columns('variant', 'offered', 'dropped', 'p50', 'p95', 'p99', 'goodput', 'attempts', 'busy', 'soldOut', 'failed', 'soldUnits',
      'oversold', 'lost', 'persisted'),
    chart: (rows) => lines('P99 of accepted purchases at each offered rate', 'offered arrivals/s', 'ms',
      [...new Set(rows.map((r) => r.variant))].map((variant) => ({
        name: variant,
        points: rows.filter((r) => r.variant === variant && r.p99_ms !== null).map((r) => ({
          x: r.rate ?? 0, y: r.p99_ms ?? 0, marked: (r.dropped_iterations ?? 0) > 0,
        })),
      })), 'hollow: iterations were dropped, so not all of the offered load was sent'),
  },
  'article-100x5m': {
    title: "The articles' load: users in a closed loop, 50-200 ms of work in the lock",
    model: 'closed; each user buys again as soon as it is answered, and does not repeat what was answered 423',
    columns: columns('variant', 'goodput', 'attempts', 'p50', 'p95', 'p99', 'max', 'waitAll', 'hold', 'failedLocks', 'soldUnits', 'oversold', 'lost',
      'persisted', 'failed'),
    chart: (rows) => bars('Against the limits of the articles', rows.map((r) => r.label), [
      { title: 'slowest response, ms', unit: '', values: rows.map((r) => r.response_max_ms), alarm: 1000 },
      { title: 'lock wait P99, ms', unit: '', values: rows.map((r) => r.lock_wait_all_p99_ms), alarm: 500 },
      { title: 'not acquired, %', unit: '%', values: rows.map((r) => (r.failed_acquisition_rate === null ? null : 100 * r.failed_acquisition_rate)), alarm: 1 },
    ]),
  },
  soak: {
    title: 'Soak: a moderate load for long',
    model: 'closed; users with pauses between their purchases',
    columns: columns('variant', 'goodput', 'p50', 'p95', 'p99', 'max', 'wait', 'busy', 'failed', 'soldUnits', 'oversold', 'lost', 'persisted'),
    chart: (rows) => bars('Does it get slower?', rows.map((r) => r.label), [
      { title: 'P50, ms', unit: '', values: rows.map((r) => r.p50_ms) },
      { title: 'P99, ms', unit: '', values: rows.map((r) => r.p99_ms) },
    ]),
  },
};
