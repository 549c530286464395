// @ts-check
// The articles' load: 100 users for 5 minutes; each takes the lock, works for
// 50 to 200 ms, releases it, and starts again. It passes when every response
// takes less than 1 s, the lock wait's P99 is below 500 ms, the hold's P99
// below 1 s, and less than 1 % of the acquisitions fail.
//
//   SKUS=1 loadtest/run.sh article-100x5m     cannot pass, and says why
//   SKUS=40 loadtest/run.sh article-100x5m    can
//
// There is stock for everybody, so that nothing sells out; then units sold
// twice don't show as oversold but as lost updates: more was accepted than is
// gone from the stock.
import exec from 'k6/execution';
import * as api from './lib/api.js';
import { auditAll } from './lib/audit.js';
import { buy } from './lib/buyer.js';
import { Settings, destination as destinationFrom, newRun, target as targetFrom, words } from './lib/config.js';
import { report } from './lib/report.js';
import { Thresholds } from './lib/thresholds.js';

const settings = new Settings(__ENV);
const target = targetFrom(settings);
const variant = settings.variant('VARIANT', 'watchdog');
const unsafe = settings.variants('UNSAFE', 'none', true).includes(variant);
const users = settings.integer('USERS', 100, 1, 20_000);
const durationMs = settings.duration('DURATION', '5m', 1000, 86_400_000);
const skus = settings.integer('SKUS', 40, 1, 1000); // items, each with a sale and a lock of its own
const workMin = settings.integer('WORK_MIN_MS', 50, 0, 10_000);
const workMax = settings.integer('WORK_MAX_MS', 200, 0, 10_000);
const timeoutMs = settings.integer('TIMEOUT_MS', 15_000, 100, 60_000); // of a request, the lock's wait included
// the limits of the articles
const maxResponseMs = settings.integer('MAX_RESPONSE_MS', 1000, 1, 60_000); // of every single one
const maxWaitMs = settings.integer('MAX_WAIT_P99_MS', 500, 1, 60_000);
const maxHoldMs = settings.integer('MAX_HOLD_P99_MS', 1000, 1, 60_000);
const auditWaitS = settings.integer('AUDIT_WAIT_S', 30, 0, 60);
const destination = destinationFrom(settings, 'article-100x5m');
if (workMin > workMax) settings.faults.push(`WORK_MIN_MS is ${workMin} and WORK_MAX_MS ${workMax}; the first must not be the greater one`);
if (users < skus) settings.faults.push(`USERS is ${users} and SKUS ${skus}; every item needs a user`);
settings.done();

const tags = { variant };
const locked = !unsafe; // the unsafe variant has no lock to measure
// Nobody can buy more often than once in workMin, nor 10,000 times a second.
const stock = Math.ceil(Math.ceil(users / skus) * durationMs / Math.max(workMin, 0.1)) + 1000;

// Why it can or can't pass, before a single request is sent.
const meanMs = (workMin + workMax) / 2;
const rivals = Math.ceil(users / skus) - 1; // at a user's lock, besides itself
const feasible = rivals * meanMs < maxWaitMs;
const reason = `A lock that is held for ${meanMs} ms on average serves ${(1000 / Math.max(meanMs, 0.001)).toFixed(1)} purchases/s at most, whatever kind of lock it is. `
  + `Here ${rivals + 1} users share one, so each waits for ${rivals} others: about ${(rivals * meanMs / 1000).toFixed(2)} s, `
  + (feasible
    ? `which is within the limit of ${maxWaitMs} ms. The run can pass.`
    : `or until the API gives up waiting. The limit is ${maxWaitMs} ms: the run cannot pass with any lock. More items (SKUS), fewer users or shorter work can.`);

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: {
    article: {
      executor: 'constant-vus', exec: 'buyAgain', vus: users, duration: `${durationMs}ms`, gracefulStop: `${timeoutMs + 1000}ms`, tags,
    },
  },
  setupTimeout: `${60 + 2 * skus}s`,
  teardownTimeout: `${60 + auditWaitS + 10 * skus}s`,
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  thresholds: thresholds(),
};

function thresholds() {
  const t = new Thresholds();
  t.must('http_req_failed', {}, 'rate==0');
  // it happened: every user was there, and was sold something
  t.must('fs_purchases', tags, `count>=${users}`).must('fs_purchases', { variant, outcome: 'accepted' }, `count>=${skus}`);
  t.must('fs_purchases', { variant, outcome: 'sold_out' }, 'count==0');
  t.must('fs_purchase_ms', tags, `max<${maxResponseMs}`);
  if (locked) {
    t.must('fs_acquisitions', tags, `count>=${users}`).must('fs_failed_acquisitions', tags, 'rate<0.01');
    t.must('fs_lock_wait_ms', tags, `p(99)<${maxWaitMs}`);
    t.must('fs_lock_hold_ms', tags, `p(99)<${maxHoldMs}`);
  }
  if (unsafe) t.must('fs_lost_updates', tags, 'count>0'); // or the load was too gentle to tell anything
  t.audits(tags, skus, !unsafe).purchases(tags);
  return t.all;
}

/** @returns {{run: string, sales: string[]}} */
export function setup() {
  console.info(reason);
  const run = newRun();
  const sales = [];
  for (let i = 0; i < skus; i++) {
    sales.push(api.createSale(target, {
      ...api.terms(`article-${run}-${i}`, variant, stock), work_ms: { min: workMin, max: workMax },
    }));
  }
  return { run, sales };
}

/**
 * A user's purchase of a unit of its item. To the API it is a new user each
 * time, since a user buys once in a sale.
 * @param {ReturnType<typeof setup>} data
 */
export function buyAgain(data) {
  // VUs are numbered from 1 without gaps, so all items have equally many users
  const sku = (exec.vu.idInTest - 1) % skus;
  buy(target, {
    sale: data.sales[sku] ?? '', user: `${data.run}-${exec.scenario.iterationInTest}`, tags,
    start: exec.scenario.startTime, retryUntil: 0, timeoutMs,
  });
}

/** @param {ReturnType<typeof setup>} data */
export function teardown(data) {
  auditAll(target, data.sales.map((id) => ({ id, variant, stock, tags })), auditWaitS);
}

/** @param {unknown} data */
export function handleSummary(data) {
  return report(data, {
    script: 'article-100x5m',
    settings: { users, items: skus, duration: words(durationMs), work: `${workMin}-${workMax} ms` },
    cases: [{ label: `${variant}, ${skus} ${skus === 1 ? 'item' : 'items'}`, variant, model: 'closed', tags, safe: !unsafe, sales: skus, users, stock: stock * skus }],
    thresholds: /** @type {Record<string, string[]>} */ (options.thresholds),
    destination,
    remarks: () => [reason],
  });
}
