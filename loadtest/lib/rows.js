// @ts-check
// A row of the table: the figures of one variant, or of one step of it.

/**
 * @typedef {object} Case what a row is about
 * @property {string} label
 * @property {string} variant
 * @property {string} model
 * @property {import('./thresholds.js').Tags} tags of its samples
 * @property {string} [scenario] of an open model, for dropped_iterations
 * @property {boolean} safe
 * @property {number} sales
 * @property {number} users 0: an open model
 * @property {number} stock of all its sales
 * @property {number} [rate] offered, arrivals/s
 * @property {number} [planned] arrivals
 * @property {number} [spanMs] the time its purchases are counted in, if not from the start to the last answer
 */

/**
 * The keys are those of flashsale's own reports, and some more. Null stands for
 * what was not measured.
 * @param {import('./summary.js').Summary} summary
 * @param {Case} about
 */
export function row(summary, about) {
  const get = (/** @type {string} */ name, /** @type {string} */ stat, /** @type {string} */ outcome = '') =>
    summary.get(name, stat, outcome === '' ? about.tags : { ...about.tags, outcome });
  // a counter's own rate divides by the time of the whole test
  const makespanMs = about.spanMs ?? get('fs_finished_ms', 'max');
  const makespanS = (makespanMs ?? 0) / 1000;
  const perSecond = (/** @type {number | null} */ count) =>
    count === null || makespanS <= 0 ? null : count / makespanS;

  const audited = get('fs_audits', 'count') === about.sales;
  const units = (/** @type {string} */ name) => (audited ? get(name, 'count') : null);
  const sold = units('fs_accepted');
  const oversold = units('fs_oversold');
  const answered = (get('fs_purchases', 'count', 'accepted') ?? 0) > 0; // a trend without samples is 0
  const percentile = (/** @type {string} */ stat) => (answered ? get('fs_purchase_ms', stat, 'accepted') : null);
  const asked = (get('fs_acquisitions', 'count') ?? 0) > 0;
  const locked = asked && answered;
  const open = about.scenario !== undefined;
  return {
    label: about.label,
    variant: about.variant,
    model: about.model,
    safe: about.safe,
    users: about.users,
    sales: about.sales,
    stock: about.stock,
    rate: about.rate ?? null,
    planned: about.planned ?? null,
    started: get('fs_purchases', 'count'),
    dropped_iterations: open ? summary.get('dropped_iterations', 'count', { scenario: about.scenario ?? '' }) : null,
    attempts: get('fs_attempts', 'count'),
    accepted: get('fs_attempts', 'count', 'accepted'),
    sold_out: get('fs_attempts', 'count', 'sold_out'),
    busy: get('fs_attempts', 'count', 'busy'),
    failed: get('fs_purchases', 'count', 'failed'), // never repeated, so requests and purchases are the same
    gave_up: get('fs_purchases', 'count', 'busy'),
    accepted_per_s: perSecond(get('fs_attempts', 'count', 'accepted')),
    attempts_per_s: perSecond(get('fs_attempts', 'count')),
    makespan_ms: makespanMs,
    start_spread_ms: get('fs_started_ms', 'max'),
    audit_accepted: sold,
    oversold,
    oversell_rate: oversold === null || sold === null ? null : sold === 0 ? 0 : oversold / sold,
    unsold: units('fs_unsold'),
    undersold: units('fs_undersold'),
    lost_updates: units('fs_lost_updates'),
    duplicates: units('fs_duplicates'),
    cancelled: units('fs_cancelled'),
    p50_ms: percentile('med'),
    p95_ms: percentile('p(95)'),
    p99_ms: percentile('p(99)'),
    response_max_ms: (get('fs_purchases', 'count') ?? 0) > 0 ? get('fs_purchase_ms', 'max') : null,
    lock_wait_p99_ms: locked ? get('fs_lock_wait_ms', 'p(99)', 'accepted') : null,
    lock_hold_p99_ms: locked ? get('fs_lock_hold_ms', 'p(99)', 'accepted') : null,
    lock_wait_all_p99_ms: asked ? get('fs_lock_wait_ms', 'p(99)') : null, // those that failed included
    failed_acquisition_rate: asked ? get('fs_failed_acquisitions', 'rate') : null,
    persisted: units('fs_persisted'),
    rejected: units('fs_rejected'),
    settled: audited ? get('fs_settled', 'count') === about.sales : null,
  };
}

/** @typedef {ReturnType<typeof row>} Row */

/**
 * What a row contradicts. Answers of 201 and the audit's accepted are counted
 * at two ends: without lost answers they are the same number.
 * @param {Row} r
 */
export function contradictions(r) {
  const list = [];
  if (r.accepted !== null && r.audit_accepted !== null && r.failed === 0 && r.accepted !== r.audit_accepted) {
    list.push(`${r.label}: ${r.accepted} answers were 201, and the audit has ${r.audit_accepted} accepted`);
  }
  if (r.planned !== null && r.started !== null && r.dropped_iterations !== null
    && Math.abs(r.planned - r.started - r.dropped_iterations) > Math.max(2, r.planned / 50)) {
    list.push(`${r.label}: ${r.planned} arrivals were planned, ${r.started} began and ${r.dropped_iterations} were dropped`);
  }
  return list;
}
