/** Real `dxpu` processes for end-to-end tests: started, watched, and gone when the test is. */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { callProcess, findProcess } from '#cli/control-client';
import { openPool, type PoolConnection } from '#cli/pool-connection';
import { all, type BindingFilter, bindingPages } from '#cli/pool-lists';
import { initAuthorityFiles, issueFiles } from '#identity/certificates';
import type { Binding } from '#proto/generated/dxpu/pool/v1/pool_pb';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
export const MAIN = path.join(ROOT, 'dist/cli/main.js');

/** Builds dist unless it is of this very source. Call it once in a file, before all else. */
export async function buildDist(): Promise<void> {
  await promisify(execFile)(process.execPath, ['scripts/bootstrap.mjs', 'build'], { cwd: ROOT });
}

export interface Outcome {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A running `dxpu`. */
export class Running {
  readonly child: ChildProcess;
  readonly ended: Promise<Outcome>;
  stdout = '';
  stderr = '';

  /** `stdoutFile` is opened for stdout, which is then not seen here. */
  constructor(args: readonly string[], input?: string, stdoutFile?: string) {
    const out = stdoutFile === undefined ? undefined : openSync(stdoutFile, 'w');
    const child = spawn(process.execPath, [MAIN, ...args], {
      cwd: ROOT,
      stdio: ['pipe', out ?? 'pipe', 'pipe'],
    });
    if (out !== undefined) closeSync(out);
    this.child = child;
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.stdout += text;
    });
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.stderr += text;
    });
    child.stdin?.on('error', () => {}); // A process may end without reading it.
    child.stdin?.end(input ?? '');
    this.ended = new Promise((resolve) => {
      child.once('close', (status, signal) =>
        resolve({ status, signal, stdout: this.stdout, stderr: this.stderr }),
      );
    });
  }

  get pid(): number {
    return this.child.pid ?? 0;
  }

  /** Waits until stdout or stderr has it. */
  async says(pattern: RegExp, withinMs = 20_000): Promise<RegExpExecArray> {
    return until(
      () => {
        const found = pattern.exec(this.stdout) ?? pattern.exec(this.stderr);
        if (found === null && this.child.exitCode !== null) {
          throw new Error(`ended before it said ${pattern}:\n${this.stdout}${this.stderr}`);
        }
        return found ?? undefined;
      },
      `${pattern} in\n`,
      withinMs,
      () => this.stdout + this.stderr,
    );
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Outcome> {
    if (this.child.exitCode === null && this.child.signalCode === null) this.child.kill(signal);
    return this.ended;
  }
}

/** Looks again and again until `look` gives something. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: string,
  withinMs = 20_000,
  detail: () => string = () => '',
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what}${detail()}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  // A zombie is as good as gone: its parent only has not looked yet.
  let stat = '';
  try {
    stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  } catch {
    return false; // It went between the two looks.
  }
  return stat.slice(stat.lastIndexOf(')') + 2, stat.lastIndexOf(')') + 3) !== 'Z';
}

export async function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** A folder with a CA, a box `b1` of two accelerators and a host `h1`, and their processes. */
export class Pool {
  readonly folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-e2e-'));
  readonly state = path.join(this.folder, 'state');
  readonly #running: Running[] = [];
  port = 0;

  async prepare(): Promise<void> {
    mkdirSync(this.state);
    const nowMs = Date.now();
    await initAuthorityFiles(this.folder, 'end to end', { nowMs });
    await issueFiles(this.folder, { kind: 'box', id: 'b1' }, { nowMs });
    await issueFiles(this.folder, { kind: 'host', id: 'h1' }, { nowMs });
    this.port = await freePort();
    this.write({});
  }

  file(name: string): string {
    return path.join(this.folder, name);
  }

  /** Writes both configurations. */
  write(change: { generation?: number; boxExtra?: string; hostExtra?: string }): void {
    const generation = change.generation ?? 1;
    writeFileSync(
      this.file('box.yaml'),
      `box: b1
certificates: { ca: ca.pem, cert: box-b1.pem, key: box-b1-key.pem }
listen: ["127.0.0.1:${this.port}"]
devices:
  - { slot: 0, kind: accel, memory: 16MiB }
  - { slot: 1, kind: accel, memory: 16MiB }
table:
  - { slot: 0, host: h1, path: p, generation: ${generation} }
  - { slot: 1, host: h1, path: p, generation: ${generation} }
${change.boxExtra ?? ''}`,
    );
    writeFileSync(
      this.file('host.yaml'),
      `host: h1
certificates: { ca: ca.pem, cert: host-h1.pem, key: host-h1-key.pem }
paths:
  - { name: p, box: b1, address: "127.0.0.1:${this.port}" }
slots:
  - slot: 0
    secondaryBus: 1
    nonPrefetchable: { base: 0xe0000000, size: 1MiB }
    prefetchable: { base: 0x4000000000, size: 16MiB }
  - slot: 1
    secondaryBus: 2
    nonPrefetchable: { base: 0xe0100000, size: 1MiB }
    prefetchable: { base: 0x4001000000, size: 16MiB }
memory:
  - { base: 0, size: 32MiB }
table:
  - { virtualSlot: 0, box: b1, slot: 0, path: p, generation: ${generation} }
  - { virtualSlot: 1, box: b1, slot: 1, path: p, generation: ${generation} }
${change.hostExtra ?? ''}`,
    );
  }

  start(kind: 'box' | 'host', config = `${kind}.yaml`): Running {
    const running = new Running([
      kind,
      '--config',
      this.file(config),
      '--state',
      this.state,
      '--log-format',
      'text',
    ]);
    this.#running.push(running);
    return running;
  }

  /** Both, with both accelerators usable. */
  async startPair(): Promise<{ box: Running; host: Running }> {
    const box = this.start('box');
    await box.says(/ready control=/);
    const host = this.start('host');
    await host.says(/function added slot=0/);
    await host.says(/function added slot=1/);
    return { box, host };
  }

  /** A command that talks to the processes of this pool, still running. */
  begin(...args: string[]): Running {
    const running = new Running([...args, '--state', this.state]);
    this.#running.push(running);
    return running;
  }

  run(...args: string[]): Promise<Outcome> {
    return this.begin(...args).ended;
  }

  async end(): Promise<void> {
    await Promise.all(this.#running.map((running) => running.stop('SIGKILL')));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A whole pool as `dxpu up` makes it: a manager, boxes and hosts of their own, and its state folder. */
export class ManagedPool {
  readonly state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-pool-'));
  readonly #running: Running[] = [];
  #client: PoolConnection | undefined;

  /** Starts what does not run. */
  async up(...args: string[]): Promise<Outcome> {
    return this.run('up', ...args);
  }

  begin(...args: string[]): Running {
    const running = new Running([...args, '--state', this.state]);
    this.#running.push(running);
    return running;
  }

  run(...args: string[]): Promise<Outcome> {
    return this.begin(...args).ended;
  }

  /** What a command prints with `--output json`, which must not fail. */
  async json(...args: string[]): Promise<unknown> {
    const { status, stdout, stderr } = await this.run(...args, '--output', 'json');
    if (status !== 0) throw new Error(`dxpu ${args.join(' ')} ended with ${status}:\n${stderr}`);
    return JSON.parse(stdout);
  }

  /** As `json`, of a command that prints a line an item. */
  async jsonLines(...args: string[]): Promise<Record<string, unknown>[]> {
    const { status, stdout, stderr } = await this.run(...args, '--output', 'json');
    if (status !== 0) throw new Error(`dxpu ${args.join(' ')} ended with ${status}:\n${stderr}`);
    const lines = stdout.split('\n').filter((line) => line !== '');
    return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  /** Without a command: for looking again and again. */
  async bindings(filter: BindingFilter): Promise<Binding[]> {
    this.#client ??= await openPool({ state: this.state });
    return all(bindingPages(this.#client, filter));
  }

  /** A small one, its result checked; fails as the command would. */
  async sgemm(host: string, slot: number): Promise<void> {
    const target = await findProcess(this.state, `host-${host}`, 'host');
    const params = { kernel: 'sgemm', slot, m: 32, n: 32, k: 32, seed: 1, iterations: 1 };
    await callProcess(target, 'run', params);
  }

  pid(name: string): number {
    return Number(readFileSync(path.join(this.state, `${name}.pid`), 'utf8'));
  }

  file(name: string): string {
    return path.join(this.state, 'pool', name);
  }

  /** Ends it as a power cut would. */
  async kill(name: string): Promise<void> {
    const pid = this.pid(name);
    process.kill(pid, 'SIGKILL');
    await until(() => (isAlive(pid) ? undefined : true), `the end of ${name}`);
  }

  async end(): Promise<void> {
    this.#client?.close();
    await Promise.all(this.#running.map((running) => running.stop('SIGKILL')));
    await dxpu(['down', '--state', this.state]);
    rmSync(this.state, { recursive: true, force: true });
  }
}

/** A command without a pool. */
export function dxpu(args: readonly string[], input?: string): Promise<Outcome> {
  return new Running(args, input).ended;
}

/** As `dxpu`, with stdout going to a file. */
export function dxpuTo(file: string, args: readonly string[], input?: string): Promise<Outcome> {
  return new Running(args, input, file).ended;
}
