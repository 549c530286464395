// @ts-check
// What the sales' audits say: the same that the demo and people read.
import * as api from './api.js';
import * as metrics from './metrics.js';

/**
 * @typedef {object} Sale
 * @property {string} id
 * @property {string} variant
 * @property {number} stock
 * @property {number} [wanted] units that buyers certainly wanted; without it nothing is said of unsold ones
 * @property {import('./thresholds.js').Tags} tags of the samples
 */

/**
 * Audits every sale. One that can't be read is missing in fs_audits.
 * @param {api.Target} target
 * @param {Sale[]} sales
 * @param {number} waitSeconds
 */
export function auditAll(target, sales, waitSeconds) {
  for (const sale of sales) {
    try {
      const audit = api.audit(target, sale.id, waitSeconds);
      const figures = Object.entries(metrics.audited).map(([name]) =>
        /** @type {[string, number]} */ ([name, audit[/** @type {'accepted'} */ (name)]]));
      for (const [name, value] of figures) {
        if (!Number.isInteger(value) || value < 0) throw new Error(`${name} is ${value}`);
      }
      for (const [name, value] of figures) metrics.audited[/** @type {'accepted'} */ (name)].add(value, sale.tags);
      if (sale.wanted !== undefined) {
        metrics.unsold.add(Math.max(0, Math.min(sale.stock, sale.wanted) - audit.accepted), sale.tags);
      }
      const faults = faultsOf(audit, sale);
      metrics.auditFaults.add(faults.length, sale.tags);
      faults.forEach((fault) => console.error(`${sale.variant}: audit: ${fault}`));
      metrics.settled.add(audit.settled === true ? 1 : 0, sale.tags);
      metrics.audits.add(1, sale.tags);
    } catch (error) {
      console.error(`${sale.variant}: ${error}`);
    }
  }
}

/**
 * What an audit says about itself must hold whatever the variant does.
 * @param {api.Audit} audit
 * @param {Sale} sale
 */
function faultsOf(audit, sale) {
  const net = audit.accepted - audit.cancelled;
  return [
    audit.sale_id === sale.id && audit.variant === sale.variant || `is of ${audit.sale_id} (${audit.variant})`,
    audit.initial === sale.stock || `initial is ${audit.initial}, the sale was created with ${sale.stock}`,
    audit.oversold === Math.max(0, net - audit.initial) || `oversold is ${audit.oversold} of ${net} sold`,
    audit.lost_updates === Math.max(0, net - (audit.initial - audit.remaining)) || `lost_updates is ${audit.lost_updates}`,
    audit.rejected === audit.oversold || `rejected is ${audit.rejected}, oversold ${audit.oversold}`,
    !audit.redis_lost || 'redis_lost: Redis lost the sale, and its sums began anew',
  ].filter((fault) => fault !== true);
}
