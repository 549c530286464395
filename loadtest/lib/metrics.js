// @ts-check
// The metrics of all scripts. Tags: variant on each; outcome on those of the
// first group; step (capacity.js), phase (soak.js) and case (smoke.js) where a
// variant has several.
import { Counter, Rate, Trend } from 'k6/metrics';

/** One a purchase: what became of it in the end. */
export const purchases = new Counter('fs_purchases');
/** One a purchase request, those repeated after a 423 included. */
export const attempts = new Counter('fs_attempts');
/** What a buyer waits, from the first request of a purchase to its answer, ms. */
export const purchaseMs = new Trend('fs_purchase_ms', true);
/** What the server says of its lock (Server-Timing), ms. */
export const lockWaitMs = new Trend('fs_lock_wait_ms', true);
export const lockHoldMs = new Trend('fs_lock_hold_ms', true);
/** Requests for which the server asked for a lock, and the share of them that did not get it. */
export const acquisitions = new Counter('fs_acquisitions');
export const failedAcquisitions = new Rate('fs_failed_acquisitions');

/** From the start of the race or the scenario to a user's first request, and to the last answer, ms. */
export const startedMs = new Trend('fs_started_ms', true);
export const finishedMs = new Trend('fs_finished_ms', true);

/** Answers that were just as they must be, one a case of smoke.js. */
export const outcomes = new Counter('fs_outcomes');
/** Purchases repeated with their key, and those that were not answered as the first time. */
export const replays = new Counter('fs_replays');
export const replayFaults = new Counter('fs_replay_faults');

/** Audits that were read to the end. */
export const audits = new Counter('fs_audits');
/** Audits that have settled: nothing is in flight. */
export const settled = new Counter('fs_settled');
/** Audits that contradict themselves or the sale that was asked for. */
export const auditFaults = new Counter('fs_audit_faults');
/** The audit's figures, in units; one sample a sale. */
export const audited = {
  accepted: new Counter('fs_accepted'),
  cancelled: new Counter('fs_cancelled'),
  oversold: new Counter('fs_oversold'),
  lost_updates: new Counter('fs_lost_updates'),
  undersold: new Counter('fs_undersold'),
  duplicates: new Counter('fs_duplicates'),
  persisted: new Counter('fs_persisted'),
  rejected: new Counter('fs_rejected'),
  in_flight: new Counter('fs_in_flight'),
};
/** Units left though they were wanted; of a race alone. */
export const unsold = new Counter('fs_unsold');
