// Runs child processes for the other scripts: one at a time, in this process
// group, with signals passed on and the child's exit status taken over.

import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';

/** @typedef {{ status: number, signal: NodeJS.Signals | null, output: string }} Outcome */

const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']);
const FROM_KEYBOARD = new Set(['SIGINT', 'SIGQUIT']);

/**
 * What to do before this process ends by a signal.
 * @type {Set<() => void>}
 */
export const cleanUps = new Set();

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

// npm killed outright cannot pass a signal on: notice that it is gone. (It is our
// parent, since the scripts in package.json begin with `exec`; a shell between
// us would swallow signals.)
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
  for (const cleanUp of cleanUps) cleanUp();
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

/**
 * Runs a script of package.json as npm would, but without npm and a shell in
 * between, which drop signals and outlive them.
 * @param {string} name
 * @param {readonly string[]} args
 * @param {Parameters<typeof run>[2]} options
 */
export function runScript(name, args, options) {
  const manifest = JSON.parse(readFileSync(path.join(options.cwd, 'package.json'), 'utf8'));
  const script = String(manifest.scripts[name]).replace(/^exec /, '');
  const bin = path.join(options.cwd, 'node_modules', '.bin');
  const env = {
    ...process.env,
    ...options.env,
    PATH: `${bin}${path.delimiter}${process.env.PATH}`,
  };
  return run('sh', ['-c', `exec ${script} "$@"`, name, ...args], { ...options, env });
}

/**
 * Kills what a finished command left running: every process whose environment
 * has `mark` ("NAME=value", unique to that command). Linux only; elsewhere finds
 * nothing.
 * @param {string} mark
 * @param {number} graceMs how long they may take to end by themselves
 * @returns {Promise<string[]>} command lines of those killed
 */
export async function reap(mark, graceMs) {
  const deadlineMs = performance.now() + graceMs;
  let left = marked(mark);
  while (left.length > 0 && performance.now() < deadlineMs) {
    await new Promise((resolve) => setTimeout(resolve, 100));
    left = marked(mark);
  }
  for (const { pid } of left) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Ended by itself meanwhile.
    }
  }
  return left.map(({ command }) => command);
}

/** @param {string} mark */
function marked(mark) {
  /** @type {{ pid: number, command: string }[]} */
  const found = [];
  for (const entry of process.platform === 'linux' ? readdirSync('/proc') : []) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const environment = readFileSync(`/proc/${entry}/environ`, 'utf8').split('\0');
      if (!environment.includes(mark)) continue;
      const command = readFileSync(`/proc/${entry}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
      if (command !== '') found.push({ pid: Number(entry), command });
    } catch {
      // Gone, or another user's.
    }
  }
  return found;
}
