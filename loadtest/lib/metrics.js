// @ts-check
// The metrics of all scripts. Tags: variant on each, outcome on those of the first group.
import { Counter, Trend } from 'k6/metrics';

/** One a purchase: what became of it in the end. */
export const purchases = new Counter('fs_purchases');
/** One a purchase request, those repeated after a 423 included. */
export const attempts = new Counter('fs_attempts');
/** What a buyer waits, from the first request of a purchase to its answer, ms. */
export const purchaseMs = new Trend('fs_purchase_ms', true);
/** What the server says of its lock (Server-Timing), ms. */
export const lockWaitMs = new Trend('fs_lock_wait_ms', true);
export const lockHoldMs = new Trend('fs_lock_hold_ms', true);

/** From the common start instant to a user's first request, and to the last answer, ms. */
export const startedMs = new Trend('fs_started_ms', true);
export const finishedMs = new Trend('fs_finished_ms', true);

/** Audits that were read to the end. */
export const audits = new Counter('fs_audits');
/** Audits that have settled: nothing is in flight. */
export const settled = new Counter('fs_settled');
/** Audits that contradict themselves or the sale that was asked for. */
export const auditFaults = new Counter('fs_audit_faults');
/** The audit's figures, in units; one sample a variant. */
export const audited = {
  accepted: new Counter('fs_accepted'),
  cancelled: new Counter('fs_cancelled'),
  oversold: new Counter('fs_oversold'),
  unsold: new Counter('fs_unsold'),
  lost_updates: new Counter('fs_lost_updates'),
  undersold: new Counter('fs_undersold'),
  duplicates: new Counter('fs_duplicates'),
  persisted: new Counter('fs_persisted'),
  rejected: new Counter('fs_rejected'),
  in_flight: new Counter('fs_in_flight'),
};
