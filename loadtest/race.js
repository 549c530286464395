// @ts-check
// Race: more users than units, all at the same instant, one purchase a user.
// Who sells a unit twice, and who leaves one unsold?
//
//   k6 run --new-machine-readable-summary=false -e ADMIN_TOKEN=... race.js     (README.md: all settings)
//
// The variants run in turn inside one process, each as a scenario with a start
// time of its own. One process a variant would start the next one sooner, but
// then a run would have no single exit code, and no table that joins the
// variants. The price is that a slot is as long as its slowest case.
import exec from 'k6/execution';
import { sleep } from 'k6';
import * as api from './lib/api.js';
import { Settings, target as targetFrom } from './lib/config.js';
import * as metrics from './lib/metrics.js';
import { report } from './lib/report.js';

const settings = new Settings(__ENV);
const target = targetFrom(settings);
const variants = settings.variants('VARIANTS', 'none,setnx,watchdog,atomic', false);
// Those of the variants that must oversell. All others must sell exactly the stock.
const unsafe = settings.variants('UNSAFE', 'none', true);
const stock = settings.integer('STOCK', 100, 1, 1_000_000);
const users = settings.integer('USERS', 300, 2, 20_000);
const leadMs = settings.integer('LEAD_MS', 1000, 50, 60_000); // for every user to connect before the start
const retryMs = settings.integer('RETRY_MS', 10_000, 0, 60_000); // how long a user goes on after 423
const timeoutMs = settings.integer('TIMEOUT_MS', 5000, 100, 60_000); // of one purchase request
const auditWaitS = settings.integer('AUDIT_WAIT_S', 30, 0, 60);
const out = settings.text('OUT', '', /^[^\0]*$/, 'an existing folder, or nothing');
if (users <= stock) settings.faults.push(`USERS is ${users} and STOCK ${stock}; a race needs more users than units`);
settings.done();

// A user's last request starts within retryMs and ends within timeoutMs, so
// no iteration is cut off by the end of its slot and slots never overlap.
const slotMs = leadMs + retryMs + timeoutMs + 1000;
const graceMs = 1000;

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: Object.fromEntries(variants.map((variant, i) => [variant, {
    executor: 'per-vu-iterations',
    exec: 'buy',
    vus: users,
    iterations: 1,
    startTime: `${i * (slotMs + graceMs)}ms`,
    maxDuration: `${slotMs}ms`,
    gracefulStop: `${graceMs}ms`,
    tags: { variant },
  }])),
  setupTimeout: `${10 + 60 * variants.length}s`,
  teardownTimeout: `${10 + (auditWaitS + 10) * variants.length}s`,
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  thresholds: thresholds(),
};

/**
 * A threshold on a metric without samples may pass, so the counts of what must
 * have happened are thresholds too. A sub-metric is in the summary only if a
 * threshold names it: the table's columns are named with one that always holds.
 * @returns {Record<string, string[]>}
 */
function thresholds() {
  /** @type {Record<string, string[]>} */
  const all = { http_req_failed: ['rate==0'], fs_purchases: [`count==${users * variants.length}`], fs_audits: [`count==${variants.length}`] };
  for (const variant of variants) {
    const of = (/** @type {string} */ name, /** @type {string} */ outcome = '') =>
      outcome === '' ? `${name}{variant:${variant}}` : `${name}{variant:${variant},outcome:${outcome}}`;
    const exact = !unsafe.includes(variant);

    // it happened
    all[of('fs_audits')] = ['count==1'];
    all[of('fs_purchases')] = [`count==${users}`];
    all[of('fs_attempts')] = [`count>=${users}`];
    all[of('fs_started_ms')] = ['min>=0'];
    all[of('fs_finished_ms')] = ['max>=0'];

    // it went as it must
    all[of('fs_accepted')] = [exact ? `count==${stock}` : `count>${stock}`];
    all[of('fs_purchases', 'accepted')] = [exact ? `count==${stock}` : `count>${stock}`];
    all[of('fs_oversold')] = [exact ? 'count==0' : 'count>0'];
    all[of('fs_lost_updates')] = [exact ? 'count==0' : 'count>0'];
    all[of('fs_persisted')] = [`count==${stock}`];
    all[of('fs_rejected')] = [exact ? 'count==0' : 'count>0'];
    all[of('fs_settled')] = ['count==1'];
    for (const name of ['fs_unsold', 'fs_undersold', 'fs_duplicates', 'fs_cancelled', 'fs_in_flight', 'fs_audit_faults']) {
      all[of(name)] = ['count==0'];
    }
    for (const outcome of ['failed', 'already_bought', 'conflict']) all[of('fs_purchases', outcome)] = ['count==0'];

    // to be in the table
    all[of('fs_purchases', 'busy')] = ['count>=0'];
    for (const outcome of ['accepted', 'sold_out', 'busy']) all[of('fs_attempts', outcome)] = ['count>=0'];
    for (const name of ['fs_purchase_ms', 'fs_lock_wait_ms', 'fs_lock_hold_ms']) all[of(name, 'accepted')] = ['max>=0'];
  }
  return all;
}

/**
 * Creates a sale for each variant, with IDs that no other run has.
 * @returns {{run: string, sales: Record<string, string>}}
 */
export function setup() {
  const run = Date.now().toString(36) + Math.floor(Math.random() * 36 ** 4).toString(36).padStart(4, '0');
  /** @type {Record<string, string>} */
  const sales = {};
  for (const variant of variants) {
    const id = `race-${variant}-${run}`;
    api.createSale(target, {
      id, item_id: id, title: `Race, ${variant}`, price_cents: 100, stock, variant, per_user_limit: 1,
    });
    sales[variant] = id;
  }
  return { run, sales };
}

/**
 * One user's purchase.
 * @param {ReturnType<typeof setup>} data
 */
export function buy(data) {
  const variant = exec.scenario.name;
  const sale = data.sales[variant] ?? '';
  // unique in its scenario, and a sale has one scenario
  const user = `${data.run}-${exec.scenario.iterationInTest}`;

  api.readSale(target, sale);
  // k6 gives startTime in fractions of a millisecond, Date.now() has none
  const start = Math.ceil(exec.scenario.startTime) + leadMs;
  sleep(Math.max(0, start - Date.now()) / 1000);
  metrics.startedMs.add(Date.now() - start, { variant });

  const firstSent = Date.now();
  let answer, tags, lastSent;
  for (;;) {
    lastSent = Date.now();
    answer = api.purchase(target, sale, user, timeoutMs);
    tags = { variant, outcome: answer.outcome };
    metrics.attempts.add(1, tags);
    if (answer.lockWaitMs !== undefined) metrics.lockWaitMs.add(answer.lockWaitMs, tags);
    if (answer.lockHoldMs !== undefined) metrics.lockHoldMs.add(answer.lockHoldMs, tags);
    const pauseMs = 5 + 20 * Math.random();
    if (answer.outcome !== 'busy' || Date.now() + pauseMs > start + retryMs) break;
    sleep(pauseMs / 1000);
  }
  metrics.purchases.add(1, tags);
  metrics.purchaseMs.add(lastSent - firstSent + answer.ms, tags); // k6 has no finer clock than ms but for requests
  metrics.finishedMs.add(Date.now() - start, { variant });
  if (answer.outcome === 'failed') console.error(`${variant}: ${user}: status ${answer.status}`);
}

/**
 * Audits every sale. One that can't be read is missing in fs_audits.
 * @param {ReturnType<typeof setup>} data
 */
export function teardown(data) {
  for (const variant of variants) {
    try {
      const audit = api.audit(target, data.sales[variant] ?? '', auditWaitS);
      const unsold = Math.max(0, Math.min(stock, users) - audit.accepted);
      for (const [name, metric] of Object.entries(metrics.audited)) {
        const value = name === 'unsold' ? unsold : audit[/** @type {'accepted'} */ (name)];
        if (!Number.isInteger(value) || value < 0) throw new Error(`${name} is ${value}`);
        metric.add(value, { variant });
      }
      const faults = faultsOf(audit, variant, data.sales[variant] ?? '');
      metrics.auditFaults.add(faults.length, { variant });
      faults.forEach((fault) => console.error(`${variant}: audit: ${fault}`));
      metrics.settled.add(audit.settled === true ? 1 : 0, { variant });
      metrics.audits.add(1, { variant });
    } catch (error) {
      console.error(`${variant}: ${error}`);
    }
  }
}

/**
 * What an audit says about itself must hold whatever the variant does.
 * @param {api.Audit} audit
 * @param {string} variant
 * @param {string} sale
 */
function faultsOf(audit, variant, sale) {
  const net = audit.accepted - audit.cancelled;
  return [
    audit.sale_id === sale && audit.variant === variant || `is of ${audit.sale_id} (${audit.variant})`,
    audit.initial === stock || `initial is ${audit.initial}, the sale was created with ${stock}`,
    audit.oversold === Math.max(0, net - audit.initial) || `oversold is ${audit.oversold} of ${net} sold`,
    audit.lost_updates === Math.max(0, net - (audit.initial - audit.remaining)) || `lost_updates is ${audit.lost_updates}`,
    audit.rejected === audit.oversold || `rejected is ${audit.rejected}, oversold ${audit.oversold}`,
  ].filter((fault) => fault !== true);
}

/** @param {unknown} data */
export function handleSummary(data) {
  return report(data, { script: 'race', variants, unsafe, users, stock, out });
}
