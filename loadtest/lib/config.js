// @ts-check
// Settings come from the environment (k6 run -e NAME=value). Each is checked
// before anything is sent, and all faults are reported at once.

/** Every variant a sale can have. */
export const VARIANTS = [
  'none', 'setnx-bare', 'setnx-expire', 'setnx-getdel', 'setnx', 'watchdog', 'watchdog-cohort',
  'watchdog-combining', 'redlock', 'fair', 'function', 'etcd', 'zookeeper', 'mysql-row', 'local',
  'atomic', 'striped', 'mysql-optimistic', 'mysql-conditional',
];

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
   * Distinct variant names, separated by commas.
   * @param {string} name
   * @param {string} fallback
   * @param {boolean} mayBeEmpty
   */
  variants(name, fallback, mayBeEmpty) {
    const text = this.env[name] ?? fallback;
    const list = text === '' ? [] : text.split(',');
    const good = list.every((v, i) => VARIANTS.includes(v) && list.indexOf(v) === i);
    if (!good || (list.length === 0 && !mayBeEmpty)) {
      this.fault(name, `distinct names, separated by commas, of ${VARIANTS.join(' ')}`);
    }
    return list;
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
