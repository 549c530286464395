// @ts-check
// What k6 hands to handleSummary, read.
import { alwaysHolds, sub } from './thresholds.js';

/**
 * @typedef {Record<string, number | undefined>} Values
 *
 * @typedef {object} Judged one threshold
 * @property {string} metric
 * @property {string} expression
 * @property {boolean | null} ok null: neither k6 nor the figures say
 * @property {number | null} seen
 */

/** The figures of a run. */
export class Summary {
  /** @param {any} data */
  constructor(data) {
    /** @type {any} */
    this.data = data;
    /** @type {Map<string, Values>} */
    this.values = valuesOf(data);
  }

  /**
   * A figure of a sub-metric, null when k6 has none. A trend or a rate without
   * samples has figures that mean nothing: ask for a count first.
   * @param {string} name
   * @param {string} stat
   * @param {import('./thresholds.js').Tags} tags
   * @returns {number | null}
   */
  get(name, stat, tags = {}) {
    const value = this.values.get(sub(name, tags))?.[stat];
    return Number.isFinite(value) ? value ?? null : null;
  }

  /**
   * Every threshold that can fail, with what was seen.
   * @param {Record<string, string[]>} thresholds options.thresholds
   * @returns {Judged[]}
   */
  judge(thresholds) {
    return Object.entries(thresholds).flatMap(([metric, expressions]) =>
      expressions.filter((expression) => !alwaysHolds(expression)).map((expression) => {
        const seen = this.get(metric, /^[a-z]+(\([0-9.]+\))?/.exec(expression)?.[0] ?? '');
        const said = this.data?.metrics?.[metric]?.thresholds?.[expression]?.ok;
        return { metric, expression, ok: typeof said === 'boolean' ? said : holds(seen, expression), seen };
      })).sort((a, b) => (a.metric < b.metric ? -1 : a.metric > b.metric ? 1 : 0));
  }
}

/**
 * k6 has two shapes of summary data: metrics by name, and (the "machine
 * readable" one) a list below results, without p(99) and verdicts.
 * @param {any} data
 * @returns {Map<string, Values>}
 */
function valuesOf(data) {
  const list = data?.results?.metrics;
  if (Array.isArray(list)) return new Map(list.map((m) => [m.name, m.values ?? {}]));
  return new Map(Object.entries(data?.metrics ?? {}).map(([name, m]) => [name, m?.values ?? {}]));
}

/**
 * Whether an expression holds, where k6 does not say.
 * @param {number | null} seen
 * @param {string} expression
 * @returns {boolean | null}
 */
function holds(seen, expression) {
  const [, operator, text] = /(<=|<|>=|>|===|==|!=)\s*([0-9.]+)$/.exec(expression) ?? [];
  if (seen === null || operator === undefined) return null;
  const bound = Number(text);
  switch (operator) {
    case '<': return seen < bound;
    case '<=': return seen <= bound;
    case '>': return seen > bound;
    case '>=': return seen >= bound;
    case '!=': return seen !== bound;
    default: return seen === bound;
  }
}

/** @param {Judged} judged */
export function describe({ metric, expression, seen }) {
  const stat = /^[a-z]+(\([0-9.]+\))?/.exec(expression)?.[0] ?? '';
  return `${metric} ${expression} (${stat} was ${seen === null ? 'not there' : seen})`;
}
