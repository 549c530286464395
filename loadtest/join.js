// @ts-check
// Joins the reports of several runs of one script into one table, one chart,
// one JUnit file. run.sh runs it at the end; it sends nothing.
//
//   REPORTS  the .json files, absolute, separated by commas
//   MISSING  runs that left no report, as NAME:EXITCODE, separated by commas
import { Counter } from 'k6/metrics';
import { Settings, destination as destinationFrom } from './lib/config.js';
import { junit } from './lib/junit.js';
import { outputs } from './lib/report.js';
import { LOOKS } from './lib/tables.js';
import { Thresholds } from './lib/thresholds.js';

/** @typedef {import('./lib/report.js').Report} Report */

const settings = new Settings(__ENV);
const files = settings.text('REPORTS', '', /^(\/[^,\0]+\.json(,\/[^,\0]+\.json)*)?$/, 'absolute paths of .json files, separated by commas');
const missing = settings.text('MISSING', '', /^([A-Za-z0-9._-]+:\d+(,[A-Za-z0-9._-]+:\d+)*)?$/, 'NAME:EXITCODE, separated by commas');
const script = settings.text('SCRIPT', undefined, /^[a-z0-9-]+$/, "the name of the runs' script");
const destination = destinationFrom(settings, script);
settings.done();

/** @type {{name: string, report: Report}[]} */
const runs = list(files).map((path) => ({ name: path.replace(/^.*\/|\.json$/g, ''), report: JSON.parse(open(path)) }));
const lost = list(missing).map((of) => of.split(':')).map(([name, code]) => `${name} left no report, its exit code was ${code}`);

const joined = new Counter('fs_joined_reports');
const faults = new Counter('fs_report_faults');

/** @type {import('k6/options').Options} */
export const options = {
  scenarios: { join: { executor: 'shared-iterations', exec: 'count', vus: 1, iterations: 1, maxDuration: '60s' } },
  thresholds: new Thresholds()
    .must('fs_joined_reports', {}, `count==${list(files).length + lost.length}`)
    .must('fs_report_faults', {}, 'count==0').all,
};

/** What the runs themselves cannot fail for, since it is seen only in the summary. */
export function count() {
  joined.add(runs.filter(({ report }) => report.script === script).length);
  faults.add(lost.length + runs.reduce((sum, { report }) => sum + report.faults.length, 0));
}

export function handleSummary() {
  const first = runs[0]?.report;
  /** @type {Report} */
  const all = {
    script,
    title: LOOKS[script]?.title ?? script,
    settings: first?.settings ?? {},
    rows: runs.flatMap(({ report }) => report.rows),
    thresholds: runs.flatMap(({ report }) => report.thresholds),
    failed_thresholds: runs.flatMap(({ report }) => report.failed_thresholds),
    faults: [...runs.flatMap(({ report }) => report.faults), ...lost],
    remarks: [...new Set(runs.flatMap(({ report }) => report.remarks))],
  };
  const written = outputs(destination, all);
  if (destination.out !== '') {
    written[`${destination.out}/${destination.name}.xml`] = junit([
      ...runs.map(({ name, report }) => ({ name, thresholds: report.thresholds, faults: report.faults })),
      ...(lost.length > 0 ? [{ name: 'runs without a report', thresholds: [], faults: lost }] : []),
    ]);
  }
  return written;
}

/** @param {string} text */
function list(text) {
  return text === '' ? [] : text.split(',');
}
