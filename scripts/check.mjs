// All checks of the project, one after another, each a script of package.json.
// The last line printed is the verdict: "N passed, N failed, N skipped".

import * as fs from 'node:fs';
import * as path from 'node:path';
import { root } from './prepare.mjs';
import { reap, runScript, stopped } from './run.mjs';

const STATIC = ['format:check', 'lint', 'contract', 'types', 'boundaries', 'deadcode', 'build'];

/** @param {string} line */
const say = (line) => process.stdout.write(`${line}\n`);

/** @param {number} sinceMs */
const took = (sinceMs) => `${((performance.now() - sinceMs) / 1000).toFixed(1)} s`;

/**
 * Runs everything. Static checks count as one test each.
 * @param {readonly string[]} vitestArgs
 * @returns {Promise<number>} exit status: 0 if all passed, 1 if not
 */
export async function check(vitestArgs) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  /** @type {string[]} */
  const problems = [];
  const startMs = performance.now();

  for (const [index, name] of STATIC.entries()) {
    if (stopped()) break;
    const stepMs = performance.now();
    process.stdout.write(`[${index + 1}/${STATIC.length + 1}] ${name} ... `);
    const { status, output } = await runScript(name, [], { cwd: root, capture: true });
    const ok = status === 0;
    say(`${ok ? 'ok' : 'FAILED'} (${took(stepMs)})`);
    if (!ok) {
      say(output.trimEnd());
      problems.push(`${name}: see above, or run: npm run ${name}`);
    }
    total[ok ? 'passed' : 'failed'] += 1;
  }

  if (!stopped()) {
    say(`[${STATIC.length + 1}/${STATIC.length + 1}] vitest`);
    const stepMs = performance.now();
    const tests = await runVitest(vitestArgs);
    for (const key of /** @type {const} */ (['passed', 'failed', 'skipped'])) {
      total[key] += tests[key];
    }
    problems.push(...tests.problems);
    say(`vitest: ${tests.problems.length === 0 ? 'ok' : 'FAILED'} (${took(stepMs)})`);
  }

  if (stopped()) {
    total.failed += 1;
    problems.push('stopped by a signal before the end');
  }
  for (const problem of problems) say(`FAILED ${problem}`);
  say(`total ${took(startMs)}`);
  say(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`);
  return total.failed === 0 ? 0 : 1;
}

/** @param {readonly string[]} args */
async function runVitest(args) {
  const reportFile = path.join('.dxpu', `vitest-${process.pid}.json`);
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`];
  fs.mkdirSync(path.join(root, '.dxpu'), { recursive: true });
  // Workers and what tests started outlive a vitest that is told to stop.
  const run = `${process.pid}-${Date.now()}`;
  const { status } = await runScript('vitest', [...reporters, ...args], {
    cwd: root,
    env: { DXPU_TEST_RUN: run },
  });
  for (const command of await reap(`DXPU_TEST_RUN=${run}`, stopped() ? 0 : 2000)) {
    say(`vitest: killed a process left behind: ${command.slice(0, 120)}`);
  }
  return count(path.join(root, reportFile), status);
}

/**
 * @param {string} reportFile
 * @param {number} status vitest's exit status
 */
function count(reportFile, status) {
  const none = { passed: 0, failed: 1, skipped: 0 };
  let report;
  try {
    report = JSON.parse(fs.readFileSync(reportFile, 'utf8'));
  } catch {
    return { ...none, problems: [`vitest: left no report (exit status ${status})`] };
  } finally {
    fs.rmSync(reportFile, { force: true });
  }

  /** @type {string[]} */
  const problems = [];
  let failed = 0;
  for (const file of report.testResults) {
    const name = path.relative(root, file.name);
    const tests = file.assertionResults.filter((/** @type {any} */ t) => t.status === 'failed');
    problems.push(...tests.map((/** @type {any} */ t) => `${name}: ${t.fullName}`));
    failed += tests.length;
    // It did not load, or a hook threw.
    if (file.status === 'failed' && tests.length === 0) {
      problems.push(`${name}: ${String(file.message).split('\n')[0]}`);
      failed += 1;
    }
  }
  const passed = report.numPassedTests;
  if (failed === 0 && passed === 0) {
    problems.push('vitest: no test was executed');
    failed = 1;
  } else if (failed === 0 && status !== 0) {
    problems.push(`vitest: exit status ${status} without a failed test: an unhandled error?`);
    failed = 1;
  }
  return { passed, failed, skipped: report.numPendingTests + report.numTodoTests, problems };
}
