// @ts-check
// Race: more users than units, all at the same instant, one purchase a user.
// Who sells a unit twice, and who leaves one unsold?
//
//   loadtest/run.sh race                  a k6 process a variant, one table
//   k6 run --new-machine-readable-summary=false -e ADMIN_TOKEN=... race.js
//
// Several variants in one process run in turn, each as a scenario with a start
// time of its own, so a slot is as long as its slowest case.
import exec from 'k6/execution';
import { sleep } from 'k6';
import * as api from './lib/api.js';
import { auditAll } from './lib/audit.js';
import { buy as buyOnce } from './lib/buyer.js';
import { Settings, destination as destinationFrom, newRun, target as targetFrom } from './lib/config.js';
import { report } from './lib/report.js';
import { Thresholds } from './lib/thresholds.js';

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
const destination = destinationFrom(settings, 'race');
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

function thresholds() {
  const t = new Thresholds();
  t.must('http_req_failed', {}, 'rate==0');
  t.must('fs_purchases', {}, `count==${users * variants.length}`).must('fs_audits', {}, `count==${variants.length}`);
  for (const variant of variants) {
    const tags = { variant };
    const safe = !unsafe.includes(variant);
    const accepted = safe ? `count==${stock}` : `count>${stock}`;
    // it happened
    t.must('fs_purchases', tags, `count==${users}`).must('fs_attempts', tags, `count>=${users}`);
    // it went as it must
    t.must('fs_accepted', tags, accepted).must('fs_purchases', { variant, outcome: 'accepted' }, accepted);
    t.must('fs_persisted', tags, `count==${stock}`).must('fs_unsold', tags, 'count==0');
    if (!safe) for (const name of ['fs_oversold', 'fs_lost_updates', 'fs_rejected']) t.must(name, tags, 'count>0');
    t.audits(tags, 1, safe).purchases(tags);
  }
  return t.all;
}

/**
 * Creates a sale for each variant, with IDs that no other run has.
 * @returns {{run: string, sales: Record<string, string>}}
 */
export function setup() {
  const run = newRun();
  /** @type {Record<string, string>} */
  const sales = {};
  for (const variant of variants) sales[variant] = api.createSale(target, api.terms(`race-${variant}-${run}`, variant, stock));
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
  buyOnce(target, { sale, user, tags: { variant }, start, retryUntil: start + retryMs, timeoutMs });
}

/** @param {ReturnType<typeof setup>} data */
export function teardown(data) {
  auditAll(target, variants.map((variant) => ({
    id: data.sales[variant] ?? '', variant, stock, wanted: users, tags: { variant },
  })), auditWaitS);
}

/** @param {unknown} data */
export function handleSummary(data) {
  return report(data, {
    script: 'race',
    settings: { users, stock },
    cases: variants.map((variant) => ({
      label: variant, variant, model: 'race', tags: { variant },
      safe: !unsafe.includes(variant), sales: 1, users, stock,
    })),
    thresholds: /** @type {Record<string, string[]>} */ (options.thresholds),
    destination,
  });
}
