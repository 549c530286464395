// @ts-check
// Settings come from the environment (k6 run -e NAME=value). Each is checked
// before anything is sent, and all faults are reported at once.

// Which variants there are is the API's business: a sale of an unknown one is
// refused in setup, with the list of those that are offered. Only what would
// break the selector of a threshold is refused here.
const VARIANT = /^[a-z][a-z0-9-]{0,63}$/;

/** @type {Record<string, number>} */
const UNITS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000 };

/** Reads settings, remembers what is wrong with them, and says so in done(). */
export class Settings {
  /** @param {Record<string, string | undefined>} env */
  constructor(env) {
    this.env = env;
    /** @type {string[]} */
    this.faults = [];
  }

  /**
   * A string that matches pattern. Without a fallback it must be set.
   * @param {string} name
   * @param {string | undefined} fallback
   * @param {RegExp} pattern
   * @param {string} allowed what pattern means, for people
   */
  text(name, fallback, pattern, allowed) {
    const value = this.env[name] ?? fallback;
    if (value === undefined || !pattern.test(value)) this.fault(name, allowed);
    return value ?? '';
  }

  /**
   * A secret: like text, but its value is never printed.
   * @param {string} name
   * @param {string} allowed
   */
  secret(name, allowed) {
    const value = this.env[name] ?? '';
    if (!/^[\x21-\x7e]+$/.test(value)) {
      this.faults.push(`${name} is ${value === '' ? 'not set' : 'not usable'}; allowed: ${allowed}`);
    }
    return value;
  }

  /**
   * @param {string} name
   * @param {number} fallback
   * @param {number} min
   * @param {number} max
   */
  integer(name, fallback, min, max) {
    const text = this.env[name] ?? String(fallback);
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      this.fault(name, `a whole number from ${min} to ${max}`);
    }
    return value;
  }

  /**
   * Whole numbers, separated by commas, each greater than the one before it.
   * @param {string} name
   * @param {string} fallback
   * @param {number} min
   * @param {number} max
   */
  integers(name, fallback, min, max) {
    const texts = (this.env[name] ?? fallback).split(',');
    const list = texts.map(Number);
    const good = texts.every((text) => /^\d+$/.test(text))
      && list.every((n, i) => n >= min && n <= max && (i === 0 || n > (list[i - 1] ?? 0)));
    if (!good) this.fault(name, `whole numbers from ${min} to ${max}, separated by commas, growing`);
    return list;
  }

  /**
   * A length of time as k6 writes them, in ms.
   * @param {string} name
   * @param {string} fallback
   * @param {number} minMs
   * @param {number} maxMs
   */
  duration(name, fallback, minMs, maxMs) {
    const text = this.env[name] ?? fallback;
    let ms = 0;
    for (const [, number, unit] of text.matchAll(/(\d+)(ms|s|m|h)/g)) ms += Number(number) * (UNITS[unit ?? ''] ?? 0);
    if (!/^(\d+(ms|s|m|h))+$/.test(text) || ms < minMs || ms > maxMs) {
      this.fault(name, `a duration as 90s or 1h30m, from ${words(minMs)} to ${words(maxMs)}`);
    }
    return ms;
  }

  /**
   * Distinct variant names, separated by commas.
   * @param {string} name
   * @param {string} fallback
   * @param {boolean} mayBeEmpty
   */
  variants(name, fallback, mayBeEmpty) {
    const text = this.env[name] ?? fallback;
    const list = text === '' ? [] : text.split(',');
    const good = list.every((v, i) => VARIANT.test(v) && list.indexOf(v) === i);
    if (!good || (list.length === 0 && !mayBeEmpty)) {
      this.fault(name, 'distinct names of variants, separated by commas');
    }
    return list;
  }

  /**
   * The name of one variant.
   * @param {string} name
   * @param {string} fallback
   */
  variant(name, fallback) {
    return this.text(name, fallback, VARIANT, 'the name of one variant');
  }

  /**
   * @param {string} name
   * @param {string} allowed
   */
  fault(name, allowed) {
    const value = this.env[name];
    this.faults.push(`${name} is ${value === undefined ? 'not set' : JSON.stringify(value)}; allowed: ${allowed}`);
  }

  /** Throws when anything was wrong. */
  done() {
    if (this.faults.length > 0) throw new Error('settings:\n  ' + this.faults.join('\n  '));
  }
}

/** Where the API is; every script has it. @param {Settings} settings */
export function target(settings) {
  return {
    baseURL: settings.text('BASE_URL', 'http://127.0.0.1:8080', /^https?:\/\/[^\s/?#]+$/,
      'a URL of scheme, host and port, without a path'),
    token: settings.secret('ADMIN_TOKEN', 'the admin token of the API (it prints one at its start if none was given)'),
  };
}

/**
 * Where the report goes; every script has it.
 * @param {Settings} settings
 * @param {string} script
 */
export function destination(settings, script) {
  return {
    out: settings.text('OUT', '', /^[^\0]*$/, 'an existing folder, or nothing'),
    name: settings.text('REPORT_NAME', script, /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/, 'a file name without extension'),
  };
}

/** A run's own part of IDs, so that no two runs share a sale or a buyer. */
export function newRun() {
  return Date.now().toString(36) + Math.floor(Math.random() * 36 ** 4).toString(36).padStart(4, '0');
}

/** @param {number} ms */
export function words(ms) {
  if (ms % 60_000 === 0 && ms > 0) return `${ms / 60_000}m`;
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
