// @ts-check
// The verdicts as JUnit XML, for CI systems: a test case a threshold.
import { describe } from './summary.js';
import { element } from './xml.js';

/**
 * @typedef {object} Suite
 * @property {string} name
 * @property {import('./summary.js').Judged[]} thresholds
 * @property {string[]} faults what else is wrong: contradictions, a run that left no report
 */

/** @param {Suite[]} suites */
export function junit(suites) {
  const body = suites.map(({ name, thresholds, faults }) => {
    const cases = [
      ...thresholds.map((t) => testCase(name, `${t.metric} ${t.expression}`,
        t.ok === null ? element('skipped', { message: 'not known: this shape of summary does not say' })
          : t.ok ? undefined : element('failure', { message: describe(t), type: 'threshold' }))),
      ...faults.map((fault) => testCase(name, fault, element('failure', { message: fault, type: 'fault' }))),
    ];
    return element('testsuite', {
      name, tests: cases.length, failures: thresholds.filter((t) => t.ok === false).length + faults.length,
      errors: 0, skipped: thresholds.filter((t) => t.ok === null).length,
    }, '\n' + cases.join('') );
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${body.join('\n')}\n</testsuites>\n`;
}

/**
 * @param {string} suite
 * @param {string} name
 * @param {string} [content]
 */
function testCase(suite, name, content) {
  return '  ' + element('testcase', { classname: suite, name }, content) + '\n';
}

