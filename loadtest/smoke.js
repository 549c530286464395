// @ts-check
// Smoke: every answer of the API once, and that it says what the contract says:
// status, code, X-Outcome, and what stands in the body.
//
//   loadtest/run.sh smoke
//   k6 run --new-machine-readable-summary=false -e ADMIN_TOKEN=... smoke.js
//
// Not here, since nobody outside can bring them about without breaking a store:
// 500, and the codes of 503 (unavailable, lock_lost, outcome_unknown, draining).
import exec from 'k6/execution';
import http from 'k6/http';
import * as api from './lib/api.js';
import { auditAll } from './lib/audit.js';
import { Settings, destination as destinationFrom, newRun, target as targetFrom } from './lib/config.js';
import * as metrics from './lib/metrics.js';
import { report } from './lib/report.js';
import { Thresholds } from './lib/thresholds.js';

const settings = new Settings(__ENV);
const target = targetFrom(settings);
const variant = settings.variant('VARIANT', 'watchdog');
// 423 needs a lock that is held for longer than the API waits for it (FLASHSALE_LOCK_WAIT, 2 s by default)
const busyVariant = settings.variant('BUSY_VARIANT', 'watchdog');
const busyWorkMs = settings.integer('BUSY_WORK_MS', 4000, 100, 10_000);
const auditWaitS = settings.integer('AUDIT_WAIT_S', 30, 0, 60);
const destination = destinationFrom(settings, 'smoke');
settings.done();

const STOCK = 3;

/**
 * A case: how it is called, its status, and its outcome: accepted or a code.
 * @typedef {{name: string, status: number, outcome: string, wanted?: number}} Case
 */

/** @type {Case[]} */
const CASES = [
  { name: 'healthy', status: 200, outcome: 'ok' },
  { name: 'ready', status: 200, outcome: 'ok' },
  { name: 'create again', status: 201, outcome: 'ok' },
  { name: 'create without the token', status: 401, outcome: 'unauthorized' },
  { name: 'create with other terms', status: 409, outcome: 'sale_exists' },
  { name: 'buy', status: 201, outcome: 'accepted' },
  { name: 'buy again, same key', status: 201, outcome: 'accepted' },
  { name: 'other quantity, same key', status: 422, outcome: 'idempotency_key_reused' },
  { name: 'buy again, other key', status: 409, outcome: 'already_bought' },
  { name: 'over the limit', status: 422, outcome: 'invalid' },
  { name: 'quantity 0', status: 422, outcome: 'invalid' },
  { name: 'unknown field', status: 422, outcome: 'invalid' },
  { name: 'more than is left', status: 409, outcome: 'sold_out' },
  { name: 'buy the last one', status: 201, outcome: 'accepted' },
  { name: 'nothing left', status: 409, outcome: 'sold_out' },
  { name: 'malformed', status: 400, outcome: 'malformed_json' },
  { name: 'not JSON', status: 415, outcome: 'unsupported_media_type' },
  { name: 'too large', status: 413, outcome: 'too_large' },
  { name: 'no such sale', status: 404, outcome: 'sale_not_found' },
  { name: 'no such purchase', status: 404, outcome: 'purchase_not_found' },
  { name: 'no such path', status: 404, outcome: 'not_found' },
  { name: 'no such method', status: 405, outcome: 'method_not_allowed' },
  { name: 'before the start', status: 409, outcome: 'sale_not_started' },
  { name: 'close', status: 200, outcome: 'ok' },
  { name: 'after the end', status: 409, outcome: 'sale_closed' },
  { name: 'look up the purchase', status: 200, outcome: 'ok' },
  { name: 'look up the buyer', status: 200, outcome: 'ok' },
  { name: 'two at one lock', status: 201, outcome: 'accepted' },
  { name: 'two at one lock, the other', status: 423, outcome: 'busy' },
];
const tagsOf = (/** @type {Case} */ c) => ({ variant, case: c.name.replace(/[^a-z0-9]+/gi, '-'), outcome: c.outcome });

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: {
    answers: { executor: 'shared-iterations', exec: 'answers', vus: 1, iterations: 1, maxDuration: '60s', gracefulStop: '0s' },
    lock: { executor: 'per-vu-iterations', exec: 'rival', vus: 2, iterations: 1, maxDuration: '60s', gracefulStop: '0s' },
  },
  setupTimeout: '60s',
  teardownTimeout: `${10 + auditWaitS + 10}s`,
  summaryTrendStats: ['avg', 'min', 'med', 'max', 'p(90)', 'p(95)', 'p(99)'],
  thresholds: thresholds(),
};

function thresholds() {
  const t = new Thresholds();
  t.must('http_req_failed', {}, 'rate==0').must('fs_outcomes', {}, `count==${CASES.length}`);
  for (const c of CASES) t.must('fs_outcomes', tagsOf(c), 'count==1').show('max', ['fs_purchase_ms'], tagsOf(c));
  t.audits({ variant }, 1, true).must('fs_accepted', { variant }, `count==${STOCK}`).must('fs_persisted', { variant }, `count==${STOCK}`);
  return t.all;
}

/** @returns {Record<'run' | 'open' | 'later' | 'busy', string>} */
export function setup() {
  const run = newRun();
  const open = api.createSale(target, saleOf(run));
  const later = api.createSale(target, {
    ...api.terms(`smoke-later-${run}`, variant, 1), starts_at: new Date(Date.now() + 3_600_000).toISOString(),
  });
  const busy = api.createSale(target, { ...api.terms(`smoke-busy-${run}`, busyVariant, 2), work_ms: { min: busyWorkMs, max: busyWorkMs } });
  return { run, open, later, busy };
}

/** @param {string} run */
const saleOf = (run) => ({ ...api.terms(`smoke-${run}`, variant, STOCK), per_user_limit: 2 });

/**
 * All cases but those of the lock.
 * @param {ReturnType<typeof setup>} data
 */
export function answers({ run, open, later }) {
  get('healthy', '/healthz');
  get('ready', '/readyz');
  post('create again', '/v1/sales', saleOf(run), admin(), (body) => body.id === open && body.stock === STOCK && body.state === 'open');
  post('create without the token', '/v1/sales', saleOf(run), {});
  post('create with other terms', '/v1/sales', { ...saleOf(run), stock: STOCK + 1 }, admin());

  const [anna, bert, carl] = [`${run}-anna`, `${run}-bert`, `${run}-carl`];
  const buy = (/** @type {string} */ name, /** @type {object} */ body, /** @type {string} */ key, /** @type {Right} */ right = undefined, sale = open) =>
    post(name, `/v1/sales/${sale}/purchases`, body, { 'Idempotency-Key': key }, right);
  let id = '';
  buy('buy', { user_id: anna, quantity: 2 }, anna, (body) => {
    id = body.purchase_id;
    return id.startsWith(`${open}.`) && body.sale_id === open && body.quantity === 2 && body.remaining === STOCK - 2;
  });
  buy('buy again, same key', { user_id: anna, quantity: 2 }, anna, (body) => body.purchase_id === id && body.remaining === STOCK - 2);
  buy('other quantity, same key', { user_id: anna, quantity: 1 }, anna);
  buy('buy again, other key', { user_id: anna, quantity: 1 }, `${anna}-2`, (body) => body.purchase_id === id);
  const quantityIsWrong = (/** @type {any} */ body) => body.errors.length === 1 && body.errors[0].field === 'quantity' && body.errors[0].allowed !== '';
  buy('over the limit', { user_id: bert, quantity: 3 }, bert, quantityIsWrong);
  buy('quantity 0', { user_id: bert, quantity: 0 }, bert, quantityIsWrong);
  buy('unknown field', { user_id: bert, quantity: 1, colour: 'red' }, bert, (body) => body.errors[0].field === 'colour');
  buy('more than is left', { user_id: bert, quantity: 2 }, `${bert}-2`);
  buy('buy the last one', { user_id: bert, quantity: 1 }, `${bert}-1`, (body) => body.remaining === 0);
  buy('nothing left', { user_id: carl, quantity: 1 }, carl);

  const path = `/v1/sales/${open}/purchases`;
  send('malformed', 'POST', path, '{"user_id":', json());
  send('not JSON', 'POST', path, `user_id=${carl}`, { 'Content-Type': 'application/x-www-form-urlencoded' });
  send('too large', 'POST', path, `{"user_id":"${'x'.repeat(17 * 1024)}"}`, json());
  buy('no such sale', { user_id: carl, quantity: 1 }, carl, undefined, `smoke-none-${run}`);
  get('no such purchase', `/v1/purchases/${open}.none`);
  get('no such path', '/v1/nothing');
  send('no such method', 'PUT', '/v1/sales', '{}', json());
  buy('before the start', { user_id: carl, quantity: 1 }, carl, undefined, later);
  get('look up the purchase', `/v1/purchases/${id}`, (body) => body.user_id === anna && body.quantity === 2 && ['pending', 'persisted'].includes(body.status));
  get('look up the buyer', `${path}?user_id=${anna}`, (body) => body.purchases.length === 1 && body.purchases[0].purchase_id === id);
  post('close', `/v1/sales/${open}/close`, {}, admin(), (body) => body.state === 'closed' && body.remaining === 0);
  buy('after the end', { user_id: carl, quantity: 1 }, `${carl}-2`);
}

/**
 * Two users want the lock at once. Whoever gets it works for longer than the
 * API lets the other wait, so exactly one of them is busy.
 * @param {ReturnType<typeof setup>} data
 */
export function rival({ run, busy }) {
  const user = `${run}-rival-${exec.scenario.iterationInTest}`;
  const res = http.post(`${target.baseURL}/v1/sales/${busy}/purchases`, JSON.stringify({ user_id: user, quantity: 1 }), {
    headers: { ...json(), 'Idempotency-Key': user }, responseCallback: http.expectedStatuses(201, 423), tags: { name: 'rival' },
    timeout: `${busyWorkMs + 20_000}ms`,
  });
  judge(res.status === 423 ? 'two at one lock, the other' : 'two at one lock', res,
    (body) => res.status === 201 ? body.remaining === 1 : res.headers['Retry-After'] !== undefined && /lock_wait;dur=/.test(res.headers['Server-Timing'] ?? ''));
}

/** @param {ReturnType<typeof setup>} data */
export function teardown(data) {
  auditAll(target, [{ id: data.open, variant, stock: STOCK, tags: { variant } }], auditWaitS);
}

/** @typedef {((body: any) => boolean) | undefined} Right what else must be right of a body */

const json = () => ({ 'Content-Type': 'application/json' });
const admin = () => ({ Authorization: `Bearer ${target.token}` });

/**
 * @param {string} name
 * @param {string} path
 * @param {object} body
 * @param {Record<string, string>} headers
 * @param {Right} [right]
 */
function post(name, path, body, headers, right) {
  send(name, 'POST', path, JSON.stringify(body), { ...json(), ...headers }, right);
}

/**
 * @param {string} name
 * @param {string} path
 * @param {Right} [right]
 */
function get(name, path, right) {
  send(name, 'GET', path, null, {}, right);
}

/**
 * @param {string} name
 * @param {string} method
 * @param {string} path
 * @param {string | null} body
 * @param {Record<string, string>} headers
 * @param {Right} [right]
 */
function send(name, method, path, body, headers, right) {
  const wanted = CASES.find((c) => c.name === name)?.status ?? 0;
  judge(name, http.request(method, target.baseURL + path, body, {
    headers, responseCallback: http.expectedStatuses(wanted), tags: { name },
  }), right);
}

/**
 * Counts an answer that is in every way as it must be.
 * @param {string} name
 * @param {import('k6/http').Response} res
 * @param {Right} right
 */
function judge(name, res, right) {
  const wanted = CASES.find((c) => c.name === name);
  if (wanted === undefined) throw new Error(`no case ${name}`);
  /** @type {any} */
  let body = {};
  try {
    if (/json/.test(res.headers['Content-Type'] ?? '')) body = res.json();
  } catch (error) { // it isn't JSON; the body says so below
    body = {};
  }
  const purchase = /\/purchases$/.test(res.url ?? '') && res.request?.method === 'POST';
  const refused = wanted.status >= 400;
  let faults = [
    res.status === wanted.status || `the status is ${res.status}, not ${wanted.status}`,
    !refused || body.code === wanted.outcome || `the code is ${body.code}, not ${wanted.outcome}`,
    !refused || body.status === wanted.status || `the problem's status is ${body.status}`,
    !refused || /^application\/problem\+json/.test(res.headers['Content-Type'] ?? '') || `the type is ${res.headers['Content-Type']}`,
    !purchase || res.headers['X-Outcome'] === wanted.outcome || `X-Outcome is ${res.headers['X-Outcome']}`,
  ].filter((fault) => fault !== true);
  try {
    if (faults.length === 0 && right !== undefined && !right(body)) faults = ['the body is wrong'];
  } catch (error) {
    faults = [`the body is wrong (${error})`];
  }
  if (faults.length > 0) return console.error(`${name}: ${faults.join(', ')}: ${api.describe(res)}`);
  metrics.outcomes.add(1, tagsOf(wanted));
  metrics.purchaseMs.add(res.timings.duration, tagsOf(wanted));
}

/** @param {unknown} data */
export function handleSummary(data) {
  return report(data, {
    script: 'smoke',
    settings: { variant },
    rows: (summary) => CASES.map((c) => {
      const right = summary.get('fs_outcomes', 'count', tagsOf(c)) ?? 0;
      return { label: c.name, expected: `${c.status} ${c.outcome}`, right, wanted: 1, ms: right > 0 ? summary.get('fs_purchase_ms', 'max', tagsOf(c)) : null };
    }),
    thresholds: /** @type {Record<string, string[]>} */ (options.thresholds),
    destination,
  });
}
