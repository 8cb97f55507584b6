// Runs child processes for the other scripts: one at a time, in this process
// group, with signals passed on and the child's exit status taken over.

import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';

/** @typedef {{ status: number, signal: NodeJS.Signals | null, output: string }} Outcome */

const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);
const FROM_KEYBOARD = new Set(['SIGINT', 'SIGQUIT']);

/** @type {import('node:child_process').ChildProcess | undefined} */
let current;
/** @type {NodeJS.Signals | undefined} */
let received;

for (const signal of SIGNALS) {
  process.on(signal, () => {
    received ??= signal;
    if (current === undefined) dieBy(signal);
    // Ctrl-C reaches the whole foreground group, the child included; a second
    // copy would look to it like an impatient user.
    if (FROM_KEYBOARD.has(signal) && inForeground()) return;
    current.kill(signal);
  });
}

// npm killed outright cannot pass a signal on: notice that it is gone.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid === parent) return;
    received ??= 'SIGTERM';
    if (current === undefined) dieBy('SIGTERM');
    current.kill('SIGTERM');
  }, 1000).unref();
}

/** Whether this process group is the one that its terminal sends Ctrl-C to. */
function inForeground() {
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // After "(comm)": state ppid pgrp session tty_nr tpgid
    const [, , pgrp, , tty, tpgid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return tty !== '0' && pgrp === tpgid;
  } catch {
    return process.stdin.isTTY === true;
  }
}

/**
 * Ends this process by `signal`, so that the caller sees the same cause.
 * @param {NodeJS.Signals} signal
 * @returns {never}
 */
export function dieBy(signal) {
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
  // A signal is delivered on the way out of the system call; this is for one
  // that is blocked or ignored.
  process.exit(1);
}

/**
 * Runs a command to its end. With `capture`, its output is returned rather than
 * shown. Does not return if a signal told us to stop meanwhile.
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ cwd: string, capture?: boolean, toStderr?: boolean, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<Outcome>}
 */
export function run(command, args, { cwd, capture = false, toStderr = false, env }) {
  return new Promise((resolve, reject) => {
    const out = capture ? 'pipe' : toStderr ? 2 : 'inherit';
    const child = spawn(command, args, {
      cwd,
      env: env ?? process.env,
      stdio: [capture ? 'ignore' : 'inherit', out, capture ? 'pipe' : 'inherit'],
    });
    current = child;
    /** @type {Buffer[]} */
    const chunks = [];
    child.stdout?.on('data', (chunk) => chunks.push(chunk));
    child.stderr?.on('data', (chunk) => chunks.push(chunk));
    child.once('error', (error) => {
      current = undefined;
      reject(error);
    });
    child.once('close', (code, signal) => {
      current = undefined;
      if (received !== undefined && signal !== null) dieBy(received);
      resolve({
        status: code ?? 1,
        signal,
        output: Buffer.concat(chunks).toString('utf8'),
      });
    });
  });
}

/** Whether a signal asked this process to stop. */
export function stopped() {
  return received !== undefined;
}

/**
 * Runs npm itself: the one that started us where there is one.
 * @param {readonly string[]} args
 * @param {Parameters<typeof run>[2]} options
 */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  return cli !== undefined && /npm-cli\.[cm]?js$/.test(cli)
    ? run(process.execPath, [cli, ...args], options)
    : run('npm', args, options);
}
