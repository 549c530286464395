// @ts-check
// Soak: a moderate load for long. Does anything grow: latency, what is on its
// way to the ledger, the number of answers that go wrong?
//
//   DURATION=2h loadtest/run.sh soak
//
// The first and the last quarter of the plateau are measured apart. Every tenth
// purchase is sent once more with its key, and must be the same purchase.
import exec from 'k6/execution';
import { sleep } from 'k6';
import * as api from './lib/api.js';
import { auditAll } from './lib/audit.js';
import { buy } from './lib/buyer.js';
import { Settings, destination as destinationFrom, newRun, target as targetFrom, words } from './lib/config.js';
import * as metrics from './lib/metrics.js';
import { number } from './lib/tables.js';
import { report } from './lib/report.js';
import { Thresholds } from './lib/thresholds.js';

const settings = new Settings(__ENV);
const target = targetFrom(settings);
const variant = settings.variant('VARIANT', 'atomic');
const unsafe = settings.variants('UNSAFE', 'none', true).includes(variant);
const users = settings.integer('USERS', 20, 1, 20_000);
const durationMs = settings.duration('DURATION', '30m', 5000, 7 * 86_400_000);
const pauseMs = settings.integer('PAUSE_MS', 200, 0, 60_000); // a user's pause, on average
const stock = settings.integer('STOCK', 10_000_000, 1, 1_000_000_000);
const retryMs = settings.integer('RETRY_MS', 10_000, 0, 60_000);
const timeoutMs = settings.integer('TIMEOUT_MS', 5000, 100, 60_000);
const maxP99Ms = settings.integer('MAX_P99_MS', 1000, 1, 60_000);
const auditWaitS = settings.integer('AUDIT_WAIT_S', 60, 0, 60);
const destination = destinationFrom(settings, 'soak');
settings.done();

const rampMs = Math.ceil(durationMs / 10);
const plateauMs = durationMs - 2 * rampMs;
const graceMs = retryMs + timeoutMs + 1000;
const phases = ['first', 'middle', 'last'];

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: {
    soak: {
      executor: 'ramping-vus', exec: 'buyNow', startVUs: 1,
      stages: [
        { target: users, duration: `${rampMs}ms` },
        { target: users, duration: `${plateauMs}ms` },
        { target: 0, duration: `${rampMs}ms` },
      ],
      gracefulRampDown: `${graceMs}ms`, gracefulStop: `${graceMs}ms`, tags: { variant },
    },
  },
  setupTimeout: '60s',
  teardownTimeout: `${10 + auditWaitS + 10}s`,
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  thresholds: thresholds(),
};

function thresholds() {
  const tags = { variant };
  const t = new Thresholds();
  t.must('http_req_failed', {}, 'rate==0').must('fs_purchases', tags, `count>=${users}`);
  t.must('fs_purchases', { variant, outcome: 'sold_out' }, 'count==0').must('fs_purchases', { variant, outcome: 'accepted' }, 'count>0');
  t.must('fs_replays', tags, 'count>0').must('fs_replay_faults', tags, 'count==0');
  for (const phase of phases) {
    const of = { variant, phase };
    if (phase !== 'middle') {
      t.must('fs_purchases', { ...of, outcome: 'accepted' }, 'count>0');
      t.must('fs_purchase_ms', { ...of, outcome: 'accepted' }, `p(99)<${maxP99Ms}`);
    }
    t.purchases(of);
  }
  t.purchases(tags).audits(tags, 1, !unsafe);
  return t.all;
}

/** @returns {{run: string, sale: string}} */
export function setup() {
  const run = newRun();
  return { run, sale: api.createSale(target, api.terms(`soak-${run}`, variant, stock)) };
}

/**
 * A purchase by a user who was never here, and a pause.
 * @param {ReturnType<typeof setup>} data
 */
export function buyNow(data) {
  const began = Date.now();
  const user = `${data.run}-${exec.scenario.iterationInTest}`;
  const answer = buy(target, {
    sale: data.sale, user, tags: { variant, phase: phaseAt(began - exec.scenario.startTime) },
    start: exec.scenario.startTime, retryUntil: began + retryMs, timeoutMs,
  });
  if (answer.outcome === 'accepted' && exec.scenario.iterationInTest % 10 === 0) {
    const again = api.purchase(target, data.sale, user, timeoutMs);
    metrics.replays.add(1, { variant });
    // busy is no answer to the purchase: the lock was not had
    const same = again.outcome === 'busy' || again.outcome === 'accepted' && again.purchaseID === answer.purchaseID && again.purchaseID !== undefined;
    metrics.replayFaults.add(same ? 0 : 1, { variant });
    if (!same) console.error(`${user}: was ${answer.purchaseID}, repeated ${again.outcome} ${again.purchaseID}`);
  }
  sleep(pauseMs * 2 * Math.random() / 1000);
}

/** @param {number} ms since the start */
function phaseAt(ms) {
  const part = (ms - rampMs) / plateauMs;
  return part < 0 || part > 1 ? 'middle' : part < 0.25 ? 'first' : part >= 0.75 ? 'last' : 'middle';
}

/** @param {ReturnType<typeof setup>} data */
export function teardown(data) {
  auditAll(target, [{ id: data.sale, variant, stock, tags: { variant } }], auditWaitS);
}

/** @param {unknown} data */
export function handleSummary(data) {
  const about = { variant, model: 'closed', safe: !unsafe, sales: 1, users, stock };
  return report(data, {
    script: 'soak',
    settings: { users, duration: words(durationMs), 'mean pause': `${pauseMs} ms` },
    cases: [
      { ...about, label: variant, tags: { variant } },
      ...['first', 'last'].map((phase) => ({ ...about, label: `${variant}, ${phase} quarter`, tags: { variant, phase }, spanMs: plateauMs / 4 })),
    ],
    thresholds: /** @type {Record<string, string[]>} */ (options.thresholds),
    destination,
    remarks: ([, first, last]) => (first?.p99_ms && last?.p99_ms
      ? [`P99 of the last quarter to the first: ${number(last.p99_ms / first.p99_ms, 2)}; P50: ${number((last.p50_ms ?? 0) / (first.p50_ms || 1), 2)}.`]
      : ['There is no purchase in the first or the last quarter to compare.']),
  });
}
