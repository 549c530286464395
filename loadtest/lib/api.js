// @ts-check
// The API's calls, as the scripts need them.
import http from 'k6/http';

/** Statuses that are answers to a purchase; anything else is a failure (http_req_failed). */
export const PURCHASE_STATUSES = http.expectedStatuses(201, 409, 423);

/**
 * @typedef {object} Target
 * @property {string} baseURL
 * @property {string} token
 *
 * @typedef {object} SaleTerms
 * @property {string} id
 * @property {string} item_id
 * @property {string} title
 * @property {number} price_cents
 * @property {number} stock
 * @property {string} variant
 * @property {number} per_user_limit
 * @property {string} [starts_at]
 * @property {{min: number, max: number}} [work_ms]
 *
 * @typedef {object} Answer
 * @property {string} outcome accepted, the API's code, or failed
 * @property {number} status 0 when there was no answer
 * @property {number} ms response time
 * @property {string | undefined} purchaseID of an accepted one
 * @property {number | undefined} lockWaitMs
 * @property {number | undefined} lockHoldMs
 *
 * @typedef {object} Audit
 * @property {string} sale_id
 * @property {string} variant
 * @property {number} initial
 * @property {number} remaining
 * @property {number} accepted
 * @property {number} cancelled
 * @property {number} persisted
 * @property {number} rejected
 * @property {number} in_flight
 * @property {number} oversold
 * @property {number} lost_updates
 * @property {number} undersold
 * @property {number} duplicates
 * @property {boolean} settled
 * @property {boolean} [redis_lost] Redis lost the sale and it was loaded again: the sums began anew
 */

/**
 * The terms of a sale of one item at 1.00, one unit a buyer.
 * @param {string} id
 * @param {string} variant
 * @param {number} stock
 * @returns {SaleTerms}
 */
export function terms(id, variant, stock) {
  return { id, item_id: id, title: `Load test, ${variant}`, price_cents: 100, stock, variant, per_user_limit: 1 };
}

/**
 * Creates a sale or throws, so that setup fails with the API's own words.
 * @param {Target} target
 * @param {SaleTerms} sale
 */
export function createSale(target, sale) {
  const res = http.post(`${target.baseURL}/v1/sales`, JSON.stringify(sale), {
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${target.token}` },
    responseCallback: http.expectedStatuses(201),
    tags: { name: 'create sale' },
  });
  if (res.status !== 201) throw new Error(`sale ${sale.id}: ${describe(res)}`);
  return sale.id;
}

/**
 * Reads a sale; used to open a user's connection before the start.
 * @param {Target} target
 * @param {string} saleID
 */
export function readSale(target, saleID) {
  return http.get(`${target.baseURL}/v1/sales/${saleID}`, {
    responseCallback: http.expectedStatuses(200),
    tags: { name: 'read sale' },
  }).status;
}

/**
 * One purchase request for one unit. The key is the user's: a repetition is the same purchase.
 * @param {Target} target
 * @param {string} saleID
 * @param {string} userID
 * @param {number} timeoutMs
 * @returns {Answer}
 */
export function purchase(target, saleID, userID, timeoutMs) {
  const res = http.post(
    `${target.baseURL}/v1/sales/${saleID}/purchases`,
    JSON.stringify({ user_id: userID, quantity: 1 }),
    {
      headers: { 'Content-Type': 'application/json', 'Idempotency-Key': userID },
      responseCallback: PURCHASE_STATUSES,
      tags: { name: 'purchase' },
      timeout: `${timeoutMs}ms`,
    },
  );
  const timing = res.headers['Server-Timing'] ?? '';
  return {
    outcome: outcomeOf(res.status, res.headers['X-Outcome']),
    status: res.status,
    ms: res.timings.duration,
    purchaseID: res.status === 201 ? (/"purchase_id":"([^"]+)"/.exec(String(res.body)) ?? [])[1] : undefined,
    lockWaitMs: duration(timing, 'lock_wait'),
    lockHoldMs: duration(timing, 'lock_hold'),
  };
}

/**
 * The audit once it has settled, or as it stands after waitSeconds. Throws when there is none.
 * @param {Target} target
 * @param {string} saleID
 * @param {number} waitSeconds
 * @returns {Audit}
 */
export function audit(target, saleID, waitSeconds) {
  const res = http.get(`${target.baseURL}/v1/sales/${saleID}/audit?wait=${waitSeconds}s`, {
    responseCallback: http.expectedStatuses(200),
    tags: { name: 'audit' },
    timeout: `${waitSeconds + 10}s`,
  });
  if (res.status !== 200) throw new Error(`audit of ${saleID}: ${describe(res)}`);
  return /** @type {Audit} */ (/** @type {unknown} */ (res.json()));
}

/**
 * Only a status that belongs to it makes an outcome believable.
 * @param {number} status
 * @param {string | undefined} header X-Outcome
 */
function outcomeOf(status, header) {
  if (status === 201) return 'accepted';
  if (status === 423) return 'busy';
  if (status === 409) return header ?? 'conflict';
  return 'failed';
}

/**
 * @param {string} timing value of Server-Timing
 * @param {string} name
 */
function duration(timing, name) {
  const found = new RegExp(`(?:^|,)\\s*${name};dur=([0-9.]+)`).exec(timing);
  return found ? Number(found[1]) : undefined;
}

/** @param {{status: number, error: string, body: unknown}} res */
export function describe(res) {
  return res.status === 0 ? `no answer (${res.error})` : `status ${res.status}: ${String(res.body).slice(0, 500)}`;
}
