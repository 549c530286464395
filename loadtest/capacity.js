// @ts-check
// Capacity: buyers arrive at a rate, whether or not the earlier ones have been
// answered (open model). How long do they wait at each rate, and from which
// rate on do answers not keep up?
//
//   loadtest/run.sh capacity              a k6 process a variant, one table
//   k6 run --new-machine-readable-summary=false -e ADMIN_TOKEN=... -e VARIANT=atomic capacity.js
//
// Each rate is a scenario with a sale of its own. k6 drops an iteration when no
// VU is free: then the load that was offered was not sent, and percentiles
// flatter. So dropped_iterations stands beside them. All VUs are allocated
// before the start, since k6 also drops while it makes one.
import exec from 'k6/execution';
import * as api from './lib/api.js';
import { auditAll } from './lib/audit.js';
import { buy } from './lib/buyer.js';
import { Settings, destination as destinationFrom, newRun, target as targetFrom } from './lib/config.js';
import { report } from './lib/report.js';
import { Thresholds } from './lib/thresholds.js';

const settings = new Settings(__ENV);
const target = targetFrom(settings);
const variant = settings.variant('VARIANT', 'atomic');
const unsafe = settings.variants('UNSAFE', 'none', true).includes(variant);
const rates = settings.integers('RATES', '100,200,400,800', 1, 100_000); // arrivals/s, a step each
const durationMs = settings.duration('DURATION', '20s', 1000, 3_600_000); // of a step
const warmUpMs = settings.duration('WARM_UP', '5s', 1000, 600_000); // up to the first rate, not measured
const pauseMs = settings.duration('PAUSE', '3s', 0, 600_000); // between steps, for queues to empty
const vus = settings.integer('VUS', 200, 1, 20_000); // of a step; each has one request under way
const timeoutMs = settings.integer('TIMEOUT_MS', 5000, 100, 60_000);
const auditWaitS = settings.integer('AUDIT_WAIT_S', 30, 0, 60);
const maxP99Ms = settings.integer('MAX_P99_MS', 0, 0, 60_000); // of the lowest rate; 0: not judged
const destination = destinationFrom(settings, 'capacity');
settings.done();

const graceMs = timeoutMs + 1000; // for the last request of a step
const slotMs = durationMs + graceMs + pauseMs;
const steps = rates.map((rate, i) => ({
  rate,
  name: `at-${rate}`, // the scenario, and the tag step
  startMs: warmUpMs + graceMs + i * slotMs,
  planned: Math.round(rate * durationMs / 1000),
}));
const stockOf = (/** @type {number} */ planned) => 2 * planned + 100; // nothing sells out

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: {
    'warm-up': {
      executor: 'ramping-arrival-rate', exec: 'arrive', startRate: 1, timeUnit: '1s',
      stages: [{ target: rates[0] ?? 1, duration: `${warmUpMs}ms` }],
      preAllocatedVUs: vus, maxVUs: vus, gracefulStop: `${graceMs}ms`, tags: { variant, step: 'warm-up' },
    },
    ...Object.fromEntries(steps.map((step) => [step.name, /** @type {import('k6/options').Scenario} */ ({
      executor: 'constant-arrival-rate', exec: 'arrive', rate: step.rate, timeUnit: '1s', duration: `${durationMs}ms`,
      startTime: `${step.startMs}ms`, preAllocatedVUs: vus, maxVUs: vus, gracefulStop: `${graceMs}ms`, tags: { variant, step: step.name },
    })])),
  },
  setupTimeout: `${60 + 10 * rates.length}s`,
  teardownTimeout: `${10 + (auditWaitS + 10) * rates.length}s`,
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  thresholds: thresholds(),
};

function thresholds() {
  const t = new Thresholds();
  t.must('http_req_failed', {}, 'rate==0').must('fs_audits', {}, `count==${steps.length}`).show('count', ['dropped_iterations'], {});
  steps.forEach((step, i) => {
    const tags = { variant, step: step.name };
    // At the lowest rate everything must have been sent (k6 may begin one more
    // or less than rate x duration); above it, as much as there are VUs for.
    t.must('fs_purchases', tags, i === 0 ? `count>=${Math.floor(step.planned * 0.98) - 1}` : 'count>0');
    t.must('fs_attempts', { ...tags, outcome: 'accepted' }, 'count>0');
    t.must('fs_attempts', { ...tags, outcome: 'sold_out' }, 'count==0');
    if (i === 0) t.must('dropped_iterations', { scenario: step.name }, `count<=${Math.ceil(step.planned / 100)}`);
    if (i === 0 && maxP99Ms > 0) t.must('fs_purchase_ms', { ...tags, outcome: 'accepted' }, `p(99)<${maxP99Ms}`);
    t.show('count', ['dropped_iterations'], { scenario: step.name });
    t.purchases(tags).audits(tags, 1, !unsafe);
  });
  return t.all;
}

/** @returns {{run: string, sales: Record<string, string>}} */
export function setup() {
  const run = newRun();
  /** @type {Record<string, string>} */
  const sales = {};
  for (const { name, planned } of [...steps, { name: 'warm-up', planned: (rates[0] ?? 1) * warmUpMs / 1000 }]) {
    sales[name] = api.createSale(target, api.terms(`capacity-${name}-${run}`, variant, Math.ceil(stockOf(planned))));
  }
  return { run, sales };
}

/**
 * One arrival: a user who was never here buys one unit.
 * @param {ReturnType<typeof setup>} data
 */
export function arrive(data) {
  const step = exec.scenario.name;
  buy(target, {
    sale: data.sales[step] ?? '', user: `${data.run}-${exec.scenario.iterationInTest}`, tags: { variant, step },
    start: exec.scenario.startTime, retryUntil: 0, timeoutMs,
  });
}

/** @param {ReturnType<typeof setup>} data */
export function teardown(data) {
  auditAll(target, steps.map((step) => ({
    id: data.sales[step.name] ?? '', variant, stock: stockOf(step.planned), tags: { variant, step: step.name },
  })), auditWaitS);
}

/** @param {unknown} data */
export function handleSummary(data) {
  return report(data, {
    script: 'capacity',
    settings: { 'seconds a rate': durationMs / 1000, VUs: vus },
    cases: steps.map((step) => ({
      label: variant, variant, model: 'open', tags: { variant, step: step.name }, scenario: step.name, safe: !unsafe,
      sales: 1, users: 0, stock: stockOf(step.planned), rate: step.rate, planned: step.planned,
    })),
    thresholds: /** @type {Record<string, string[]>} */ (options.thresholds),
    destination,
    remarks: (rows) => rows.filter((r) => (r.dropped_iterations ?? 0) > 0).map((r) =>
      `${r.label} at ${r.rate}/s: ${r.dropped_iterations} of ${r.planned} arrivals were not sent, since all ${vus} VUs were waiting for an answer. `
      + 'The percentiles leave them out; the rate is beyond what this API, or this generator, takes.'),
  });
}
