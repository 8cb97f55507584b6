/** `dxpu start`: a box and a host on this machine, put through their paces, then left running. */
import { mkdtempSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { formatBdf } from '#base/units';
import type { RunResult } from './accel-jobs.ts';
import { ProxyChild } from './child-process.ts';
import { callProcess, findProcess } from './control-client.ts';
import { type ControlServer, startControlServer } from './control-server.ts';
import type { EchoPorts } from './echo-server.ts';
import { type OutputFormat, printData, printLine } from './output.ts';
import { formatDuration } from './quantity.ts';
import type { RoundTrips } from './round-trip.ts';
import { BOX_ID, HOST_ID, writeStartFiles } from './start-files.ts';
import { type KnownProcess, makeStateFolder, socketPath, stateFolder } from './state-folder.ts';
import type { BoxStatus, HostStatus } from './status-report.ts';
import { countsText, indent, linkText, tableText } from './status-text.ts';

export interface StartOptions {
  readonly once?: boolean;
  readonly state?: string;
  readonly size: number;
  readonly output: OutputFormat;
}

const SLOTS = [0, 1];
/** A socket that is there while a start is at work; no process is found under its name. */
const LOCK = 'start.sock';
const PLUG_TIMEOUT_MS = 30_000;
const ROUND_TRIP_SAMPLES = 1000;

export async function start(options: StartOptions): Promise<void> {
  // What runs once needs no place where others find it: it must not be in the way of one that stays.
  const temporary = options.once === true && options.state === undefined;
  const folder = temporary
    ? mkdtempSync(path.join(os.tmpdir(), 'dxpu-'))
    : stateFolder(options.state);
  const attempt = new Attempt();
  const { told } = attempt;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => attempt.stop(128 + os.constants.signals[signal]));
  }
  watchNpm(() => attempt.stop(128 + os.constants.signals.SIGHUP));
  // A reader that has gone ends us as a signal does: there are processes to end before us.
  process.stdout.removeAllListeners('error');
  process.stdout.on('error', () => attempt.stop(128 + os.constants.signals.SIGPIPE));

  let isProven = false;
  const running = run(options, folder, attempt).then(() => {
    isProven = true;
  });
  try {
    await Promise.race([running, told]);
    if (options.once !== true && !attempt.isStopped) {
      if (options.output === 'table') printLine(advice(options));
      await Promise.race([told, attempt.watch()]);
      if (!attempt.isStopped && options.output === 'table') {
        printLine('stopped by dxpu stop, or by a signal to one of the two');
      }
    }
  } finally {
    // What is under way ends with its processes; one may be about to start another.
    attempt.stop();
    await attempt.end();
    await running.catch(() => {});
    await attempt.end();
    if (temporary) rmSync(folder, { recursive: true, force: true });
  }
  // After the results Ctrl-C is the usual way out.
  if (attempt.status !== undefined) process.exit(isProven ? 0 : attempt.status);
}

/** What one start has begun, and whether it is to go on. */
class Attempt {
  readonly told: Promise<void>;
  readonly #children: ProxyChild[] = [];
  #lock: ControlServer | undefined;
  #isStopped = false;
  #tell = (): void => {};
  /** The exit status that being told to stop asks for. */
  status: number | undefined;

  constructor() {
    this.told = new Promise((resolve) => {
      this.#tell = resolve;
    });
  }

  get isStopped(): boolean {
    return this.#isStopped;
  }

  stop(status?: number): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.status = status;
    this.#tell();
  }

  /** Between two steps: fails when there shall be no next one. */
  check(): void {
    if (this.#isStopped) throw new DxpuError('cancelled', 'told to stop');
  }

  /** Keeps other starts out of `folder`. */
  async lock(folder: string): Promise<void> {
    try {
      this.#lock = await startControlServer(path.join(folder, LOCK), {});
    } catch (error) {
      if (DxpuError.from(error).code !== 'already_exists') throw error;
      throw new DxpuError(
        'already_exists',
        `another dxpu start is at work in ${folder}: wait for it, or choose another folder with --state`,
        { details: { folder }, cause: error },
      );
    }
  }

  add(child: ProxyChild): void {
    this.#children.push(child);
  }

  /** Resolves when one of the processes was stopped, rejects when one failed. */
  watch(): Promise<void> {
    return Promise.race(this.#children.map((child) => child.watch()));
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
    this.#lock?.close();
  }
}

/** npm killed outright passes no signal on: its end is the order to stop. */
function watchNpm(stop: () => void): void {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  setInterval(() => {
    if (process.ppid !== parent) stop();
  }, 1000).unref();
}

async function run(options: StartOptions, folder: string, attempt: Attempt): Promise<void> {
  const say = (line: string): void => {
    if (options.output === 'table') printLine(line);
  };
  makeStateFolder(folder);
  for (const identity of [
    { kind: 'host', id: HOST_ID },
    { kind: 'box', id: BOX_ID },
  ] as const) {
    await refuseRunning(folder, socketPath(folder, identity), `${identity.kind}-${identity.id}`);
  }
  // Before anything is written: of two that start at once, one has the folder.
  await attempt.lock(folder);
  const own = path.join(folder, 'start');
  const port = await freePort();
  const files = await writeStartFiles(own, port);
  say(`certificates and configurations in ${own}`);

  for (const [kind, config] of [
    ['box', files.boxConfig],
    ['host', files.hostConfig],
  ] as const) {
    attempt.check();
    const log = path.join(own, `${kind}.log`);
    const args = [kind, '--config', config, '--state', folder, '--log-format', 'text'];
    const child = new ProxyChild(kind, args, log);
    attempt.add(child);
    await child.ready();
    say(`${kind} proxy: process ${child.pid}, log in ${log}`);
  }
  const ended = attempt.watch().then(() => {
    throw new DxpuError('cancelled', 'stopped before it was done');
  });
  await Promise.race([prove(options, folder, port, say), ended]);
}

/** Everything `start` shows, once both processes serve. */
async function prove(
  options: StartOptions,
  folder: string,
  port: number,
  say: (line: string) => void,
): Promise<void> {
  const host = await findProcess(folder, `host-${HOST_ID}`, 'host');
  const box = await findProcess(folder, `box-${BOX_ID}`, 'box');
  await callProcess(host, 'wait', { slots: SLOTS, withinMs: PLUG_TIMEOUT_MS });
  say(`mutual TLS 1.3 on 127.0.0.1:${port}; the soft host has enumerated two accelerators`);

  const runs: RunResult[] = [];
  for (const slot of SLOTS) {
    const n = options.size;
    const params = { kernel: 'sgemm', slot, m: n, n, k: n, seed: slot + 1, iterations: 1 };
    const result = (await callProcess(host, 'run', params)) as RunResult;
    runs.push(result);
    say(
      `sgemm ${n}x${n}x${n} on ${formatBdf(result.bdf)}: all ${result.elements} elements equal ` +
        `a plain computation, ${formatDuration(result.timesNs[0] ?? 0)} with upload and download`,
    );
  }
  const roundTrips = await measure(host, box);
  const hostStatus = (await callProcess(host, 'status', {})) as HostStatus;
  const boxStatus = (await callProcess(box, 'status', {})) as BoxStatus;
  if (options.output !== 'table') {
    const results = { folder, port, runs, roundTrips, host: hostStatus, box: boxStatus };
    await printData(results, options.output);
    return;
  }
  printLine(`\nMapping table of host ${HOST_ID}\n${indent(tableText(hostStatus))}`);
  printLine(`\nMapping table of box ${BOX_ID}\n${indent(tableText(boxStatus))}`);
  printLine(`\nTLPs the host proxy passed\n${indent(countsText(hostStatus))}`);
  printLine(`\n${roundTripText(roundTrips)}`);
  for (const link of hostStatus.links) printLine(`  ${linkText(link)}`);
}

async function measure(host: KnownProcess, box: KnownProcess): Promise<RoundTrips> {
  const done = new AbortController();
  return new Promise((resolve, reject) => {
    // The echo servers live as long as this call.
    callProcess(
      box,
      'echo',
      {},
      {
        signal: done.signal,
        onEvent: (event) => {
          const ports = event as EchoPorts;
          const params = { slot: SLOTS[0], samples: ROUND_TRIP_SAMPLES, ...ports };
          callProcess(host, 'round-trip', params)
            .then((result) => resolve(result as RoundTrips), reject)
            .finally(() => done.abort());
        },
      },
    ).catch(reject); // Rejects with the abort too, when everything is settled.
  });
}

function roundTripText(trips: RoundTrips): string {
  const line = (name: string, ns: number): string =>
    `  ${name.padEnd(46)} ${formatDuration(ns).padStart(8)}`;
  const { mmioReadNs, tcpEchoNs, tlsEchoNs, echoBytes } = trips;
  return [
    `Round trips, medians of ${trips.samples} taken in turns`,
    line('MMIO read through both proxies over mutual TLS', mmioReadNs),
    line(`raw TLS socket, ${echoBytes} bytes each way`, tlsEchoNs),
    line(`raw TCP socket, ${echoBytes} bytes each way`, tcpEchoNs),
    `  the read takes ${(mmioReadNs / tlsEchoNs).toFixed(2)} times the TLS echo`,
  ].join('\n');
}

/** A port of the loopback address that nobody has at the moment. */
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as net.AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

/** Before anything is written: an earlier start that still runs keeps its files. */
function refuseRunning(folder: string, socket: string, name: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = net.connect(socket, () => {
      probe.destroy();
      reject(
        new DxpuError(
          'already_exists',
          `${name} is running already in ${folder}: see dxpu status, end it with dxpu stop, ` +
            'or choose another folder with --state',
        ),
      );
    });
    probe.on('error', () => resolve());
  });
}

/** Commands that work as they stand, from where this one was started. */
function advice(options: StartOptions): string {
  const main = process.argv[1] ?? 'dxpu';
  const dxpu = path.basename(main) === 'dxpu' ? 'dxpu' : `node ${quoted(path.relative('', main))}`;
  const state = options.state === undefined ? '' : ` --state ${quoted(options.state)}`;
  const capture = quoted(path.join(os.tmpdir(), 'dxpu-sgemm.pcapng'));
  return `
Running until Ctrl-C. To try in another terminal:
  ${dxpu} status${state}
  ${dxpu} accel run sgemm --slot 1 --size 256${state}
  ${dxpu} capture 0 -o ${capture} --for 3s${state} & sleep 1; ${dxpu} accel run sgemm${state}; wait
  ${dxpu} decode ${capture} | head -40
  ${dxpu} replay ${capture}
  ${dxpu} fault link --cut 2s${state}; ${dxpu} accel run sgemm${state}`;
}

function quoted(text: string): string {
  return /^[\w./@:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
