// @ts-check
// The end of a run: a table for people, JSON for everything else.

/**
 * @typedef {Record<string, number | undefined>} Values
 *
 * @typedef {object} Run
 * @property {string} script
 * @property {string[]} variants
 * @property {string[]} unsafe
 * @property {number} users
 * @property {number} stock
 * @property {string} out an existing folder, or ''
 */

/**
 * What handleSummary returns: the table on stdout, and <out>/<script>.json.
 * @param {unknown} data
 * @param {Run} run
 * @returns {Record<string, string>}
 */
export function report(data, run) {
  const values = valuesOf(data);
  const rows = run.variants.map((variant) => row(values, variant, run));
  const failed = failedThresholds(data);
  /** @type {Record<string, string>} */
  const outputs = { stdout: '\n' + table(rows) + '\n' + verdict(failed) + '\n' };
  if (run.out !== '') {
    const { script, users, stock, unsafe } = run;
    outputs[`${run.out}/${script}.json`] =
      JSON.stringify({ script, users, stock, unsafe, rows, failed_thresholds: failed }, null, 2) + '\n';
  }
  return outputs;
}

/**
 * k6 has two shapes of summary data: metrics by name, and (the "machine
 * readable" one) a list below results, without p(99).
 * @param {any} data
 * @returns {Map<string, Values>}
 */
function valuesOf(data) {
  const list = data?.results?.metrics;
  if (Array.isArray(list)) return new Map(list.map((m) => [m.name, m.values ?? {}]));
  return new Map(Object.entries(data?.metrics ?? {}).map(([name, m]) => [name, m?.values ?? {}]));
}

/**
 * Only the shape by name tells which thresholds failed; null: unknown.
 * @param {any} data
 * @returns {string[] | null}
 */
function failedThresholds(data) {
  if (Array.isArray(data?.results?.metrics)) return null;
  return Object.entries(data?.metrics ?? {}).flatMap(([name, metric]) =>
    Object.entries(metric?.thresholds ?? {})
      .filter(([, threshold]) => !threshold.ok)
      .map(([expression]) => `${name} ${expression} (${seen(expression, metric.values)})`)).sort();
}

/**
 * @param {string} expression
 * @param {Values} values
 */
function seen(expression, values) {
  const name = /^[a-z]+(\([0-9.]+\))?/.exec(expression)?.[0] ?? '';
  return `${name} was ${values?.[name] ?? 'not there'}`;
}

/**
 * The keys are those of flashsale's own reports, and some more. Null stands for
 * what was not measured.
 * @param {Map<string, Values>} values
 * @param {string} variant
 * @param {Run} run
 */
function row(values, variant, run) {
  const get = (/** @type {string} */ name, /** @type {string} */ stat, /** @type {string} */ outcome = '') =>
    values.get(`${name}{variant:${variant}${outcome === '' ? '' : `,outcome:${outcome}`}}`)?.[stat] ?? null;
  // a counter's own rate divides by the time of the whole test
  const makespanS = (get('fs_finished_ms', 'max') ?? 0) / 1000;
  const perSecond = (/** @type {number | null} */ count) =>
    count === null || makespanS <= 0 ? null : count / makespanS;

  const audited = get('fs_audits', 'count') === 1;
  const units = (/** @type {string} */ name) => (audited ? get(name, 'count') : null);
  const accepted = units('fs_accepted');
  const oversold = units('fs_oversold');
  const answered = (get('fs_purchases', 'count', 'accepted') ?? 0) > 0; // a trend without samples is 0
  const percentile = (/** @type {string} */ stat) => (answered ? get('fs_purchase_ms', stat, 'accepted') : null);
  const locked = (get('fs_lock_hold_ms', 'max', 'accepted') ?? 0) > 0;
  return {
    variant,
    model: 'race',
    users: run.users,
    stock: run.stock,
    attempts: get('fs_attempts', 'count'),
    accepted: get('fs_attempts', 'count', 'accepted'),
    sold_out: get('fs_attempts', 'count', 'sold_out'),
    busy: get('fs_attempts', 'count', 'busy'),
    failed: get('fs_purchases', 'count', 'failed'), // never repeated, so requests and purchases are the same
    gave_up: get('fs_purchases', 'count', 'busy'),
    accepted_per_s: perSecond(get('fs_attempts', 'count', 'accepted')),
    attempts_per_s: perSecond(get('fs_attempts', 'count')),
    makespan_ms: get('fs_finished_ms', 'max'),
    start_spread_ms: get('fs_started_ms', 'max'),
    audit_accepted: accepted,
    oversold,
    oversell_rate: oversold === null || accepted === null ? null : accepted === 0 ? 0 : oversold / accepted,
    unsold: units('fs_unsold'),
    undersold: units('fs_undersold'),
    lost_updates: units('fs_lost_updates'),
    duplicates: units('fs_duplicates'),
    cancelled: units('fs_cancelled'),
    p50_ms: percentile('med'),
    p95_ms: percentile('p(95)'),
    p99_ms: percentile('p(99)'),
    lock_wait_p99_ms: locked ? get('fs_lock_wait_ms', 'p(99)', 'accepted') : null,
    lock_hold_p99_ms: locked ? get('fs_lock_hold_ms', 'p(99)', 'accepted') : null,
    persisted: units('fs_persisted'),
    rejected: units('fs_rejected'),
    settled: audited ? get('fs_settled', 'count') === 1 : null,
  };
}

/** @typedef {ReturnType<typeof row>} Row */

/** @type {[string, (r: Row) => string][]} */
const COLUMNS = [
  ['variant', (r) => r.variant],
  ['accepted/s', (r) => number(r.accepted_per_s)],
  ['attempts/s', (r) => number(r.attempts_per_s)],
  ['p50 ms', (r) => number(r.p50_ms, 1)],
  ['p95 ms', (r) => number(r.p95_ms, 1)],
  ['p99 ms', (r) => number(r.p99_ms, 1)],
  ['lock wait p99', (r) => number(r.lock_wait_p99_ms, 1)],
  ['sold', (r) => `${number(r.audit_accepted)} of ${r.stock}`],
  ['oversold', (r) => number(r.oversold)],
  ['rate', (r) => (r.oversell_rate === null ? '-' : (100 * r.oversell_rate).toFixed(1) + ' %')],
  ['unsold', (r) => number(r.unsold)],
  ['lost updates', (r) => number(r.lost_updates)],
  ['persisted', (r) => number(r.persisted)],
  ['rejected', (r) => number(r.rejected)],
  ['gave up', (r) => number(r.gave_up)],
  ['failed', (r) => number(r.failed)],
];

/** @param {Row[]} rows */
function table(rows) {
  const lines = [COLUMNS.map(([title]) => title), ...rows.map((r) => COLUMNS.map(([, cell]) => cell(r)))];
  const widths = COLUMNS.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)));
  return lines.map((line) =>
    line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i] ?? 0) : cell.padStart(widths[i] ?? 0))).join('  ') + '\n').join('');
}

/** @param {string[] | null} failed */
function verdict(failed) {
  if (failed === null) return 'This shape of summary does not say which thresholds failed; the exit code does (99).\n';
  if (failed.length === 0) return 'Every threshold holds.\n';
  return 'Thresholds that failed:\n' + failed.map((line) => `  ${line}\n`).join('');
}

/**
 * @param {number | null} value
 * @param {number} digits
 */
function number(value, digits = 0) {
  return value === null ? '-' : value.toFixed(digits);
}
