// @ts-check
// A buyer's purchase: requests until there is an answer other than 423, and
// the samples of it.
import { sleep } from 'k6';
import * as api from './api.js';
import * as metrics from './metrics.js';

/**
 * @typedef {object} Wish
 * @property {string} sale
 * @property {string} user also the Idempotency-Key
 * @property {import('./thresholds.js').Tags} tags of every sample
 * @property {number} start instant that times are counted from, Unix ms
 * @property {number} retryUntil instant after which a 423 is the end of it; 0: at once
 * @property {number} timeoutMs of one request
 */

/**
 * Buys one unit.
 * @param {api.Target} target
 * @param {Wish} wish
 * @returns {api.Answer}
 */
export function buy(target, wish) {
  const firstSent = Date.now();
  metrics.startedMs.add(Math.max(0, firstSent - wish.start), wish.tags);
  let answer, tags, lastSent;
  for (;;) {
    lastSent = Date.now();
    answer = api.purchase(target, wish.sale, wish.user, wish.timeoutMs);
    tags = { ...wish.tags, outcome: answer.outcome };
    metrics.attempts.add(1, tags);
    if (answer.lockWaitMs !== undefined) {
      metrics.lockWaitMs.add(answer.lockWaitMs, tags);
      metrics.acquisitions.add(1, tags);
      metrics.failedAcquisitions.add(answer.outcome === 'busy', tags);
    }
    if (answer.lockHoldMs !== undefined) metrics.lockHoldMs.add(answer.lockHoldMs, tags);
    const pauseMs = 5 + 20 * Math.random();
    if (answer.outcome !== 'busy' || Date.now() + pauseMs > wish.retryUntil) break;
    sleep(pauseMs / 1000);
  }
  metrics.purchases.add(1, tags);
  metrics.purchaseMs.add(lastSent - firstSent + answer.ms, tags); // k6 has no finer clock than ms but for requests
  metrics.finishedMs.add(Math.max(0, Date.now() - wish.start), wish.tags);
  if (answer.outcome === 'failed') console.error(`${wish.tags.variant}: ${wish.user}: status ${answer.status}`);
  return answer;
}
