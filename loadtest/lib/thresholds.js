// @ts-check
// Thresholds, and the names of sub-metrics.
//
// Two things about k6 shape them. A threshold on a metric without samples may
// pass: what must have happened is a threshold too, as a count. And a
// sub-metric is in the summary only if a threshold names it: what is to be
// shown is named with a threshold that always holds.

/** @typedef {Record<string, string>} Tags */

/**
 * The name of a sub-metric.
 * @param {string} name
 * @param {Tags} tags
 */
export function sub(name, tags) {
  const pairs = Object.entries(tags).map(([key, value]) => `${key}:${value}`);
  return pairs.length === 0 ? name : `${name}{${pairs.join(',')}}`;
}

/** True of a threshold that only names a sub-metric. @param {string} expression */
export function alwaysHolds(expression) {
  return /^(count|max|rate)>=0$/.test(expression);
}

/** Collects options.thresholds. */
export class Thresholds {
  constructor() {
    /** @type {Record<string, string[]>} */
    this.all = {};
  }

  /**
   * @param {string} name
   * @param {Tags} tags
   * @param {string[]} expressions
   */
  must(name, tags, ...expressions) {
    const key = sub(name, tags);
    this.all[key] = [...(this.all[key] ?? []), ...expressions];
    return this;
  }

  /** @param {'count' | 'max' | 'rate'} stat @param {string[]} names @param {Tags} tags */
  show(stat, names, tags) {
    for (const name of names) if (this.all[sub(name, tags)] === undefined) this.must(name, tags, `${stat}>=0`);
    return this;
  }

  /**
   * What every row of a table needs, and what no purchase may end as.
   * @param {Tags} tags
   */
  purchases(tags) {
    const with_ = (/** @type {string} */ outcome) => ({ ...tags, outcome });
    for (const outcome of ['failed', 'already_bought', 'conflict']) this.must('fs_purchases', with_(outcome), 'count==0');
    this.show('max', ['fs_started_ms', 'fs_finished_ms', 'fs_lock_wait_ms', 'fs_lock_hold_ms'], tags);
    this.show('count', ['fs_attempts', 'fs_purchases', 'fs_acquisitions'], tags).show('rate', ['fs_failed_acquisitions'], tags);
    for (const outcome of ['accepted', 'sold_out', 'busy']) this.show('count', ['fs_attempts', 'fs_purchases'], with_(outcome));
    return this.show('max', ['fs_purchase_ms', 'fs_lock_wait_ms', 'fs_lock_hold_ms'], with_('accepted'));
  }

  /**
   * What the audits of so many sales must say. A safe variant neither oversells
   * nor loses an update.
   * @param {Tags} tags
   * @param {number} sales
   * @param {boolean} safe
   */
  audits(tags, sales, safe) {
    this.must('fs_audits', tags, `count==${sales}`).must('fs_settled', tags, `count==${sales}`);
    if (safe) for (const name of ['fs_oversold', 'fs_lost_updates', 'fs_rejected']) this.must(name, tags, 'count==0');
    for (const name of ['fs_undersold', 'fs_duplicates', 'fs_cancelled', 'fs_in_flight', 'fs_audit_faults']) {
      this.must(name, tags, 'count==0');
    }
    return this.show('count', ['fs_accepted', 'fs_oversold', 'fs_lost_updates', 'fs_rejected', 'fs_persisted'], tags);
  }
}
