/** `dxpu start`: a whole pool on this machine, put through its paces, then left running until Ctrl-C. */
import { mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { type ControlServer, connectFailure } from './control-server.ts';
import { type OutputFormat, printLine } from './output.ts';
import { OwnProcess } from './own-process.ts';
import { type PoolConnection, withPool } from './pool-connection.ts';
import { poolProcesses, preparePool } from './pool-files.ts';
import { poolFolder } from './pool-folder.ts';
import { lockPool } from './pool-lock.ts';
import { poolIsWhole } from './pool-ready.ts';
import { USUAL_SIZES } from './pool-words.ts';
import { quoted, shellWords } from './shell-words.ts';
import { bindMissing } from './start-bindings.ts';
import { prove } from './start-proof.ts';
import { type KnownProcess, makeStateFolder, stateFolder } from './state-folder.ts';

export interface StartOptions {
  readonly once?: boolean;
  readonly state?: string;
  readonly size: number;
  readonly output: OutputFormat;
}

const WHOLE_WITHIN_MS = 30_000;

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
        printLine('stopped by dxpu down or stop, or by a signal to one of its processes');
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
  readonly #children: OwnProcess[] = [];
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
    this.#lock = await lockPool(folder);
  }

  unlock(): void {
    this.#lock?.close();
    this.#lock = undefined;
  }

  add(child: OwnProcess): void {
    this.#children.push(child);
  }

  /** Resolves when one of the processes was stopped, rejects when one failed. */
  watch(): Promise<void> {
    return Promise.race(this.#children.map((child) => child.watch()));
  }

  async end(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.stop()));
    this.unlock();
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
  const processes = poolProcesses(folder, USUAL_SIZES);
  for (const one of processes) await refuseRunning(folder, one);
  // Before anything is written: of two that start at once, one has the folder.
  await attempt.lock(folder);
  const { isNew } = await preparePool(folder, USUAL_SIZES);
  say(
    `${isNew ? 'certificates and configurations' : 'the pool as it was'} in ${poolFolder(folder)}`,
  );

  const [manager, ...others] = processes;
  if (manager !== undefined) await startChild(folder, attempt, manager, say);
  await Promise.all(others.map((one) => startChild(folder, attempt, one, say)));
  // From here on whoever comes finds the processes themselves.
  attempt.unlock();
  const ended = attempt.watch().then(() => {
    throw new DxpuError('cancelled', 'stopped before it was done');
  });
  const shown = withPool({ output: options.output, state: folder }, (pool) =>
    show(options, folder, pool, isNew, say),
  );
  await Promise.race([shown, ended]);
}

async function startChild(
  folder: string,
  attempt: Attempt,
  target: KnownProcess,
  say: (line: string) => void,
): Promise<void> {
  attempt.check();
  const child = new OwnProcess(folder, target);
  attempt.add(child);
  await child.ready();
  say(`${target.name}: process ${child.pid}, log in ${child.logFile}`);
}

/** Everything `start` shows, once all processes serve. */
async function show(
  options: StartOptions,
  folder: string,
  pool: PoolConnection,
  isNew: boolean,
  say: (line: string) => void,
): Promise<void> {
  const { gpus } = await poolIsWhole(pool, USUAL_SIZES, WHOLE_WITHIN_MS);
  say(
    `manager at ${pool.address}: ${USUAL_SIZES.boxes} boxes with ${gpus} GPU nodes and ` +
      `${USUAL_SIZES.hosts} hosts are connected, each over mutual TLS 1.3`,
  );
  const bindings = await bindMissing(pool, isNew, say);
  await prove(options, folder, pool, bindings, say);
}

/** Before anything is written: an earlier start that still runs keeps its files. */
async function refuseRunning(folder: string, { name, socket }: KnownProcess): Promise<void> {
  if ((await connectFailure(socket)) !== '') return;
  throw new DxpuError(
    'already_exists',
    `${name} is running already in ${folder}: see dxpu status, end it with dxpu down, ` +
      'or choose another folder with --state',
  );
}

function advice({ state }: StartOptions): string {
  const dxpu = shellWords(state);
  const capture = quoted(path.join(os.tmpdir(), 'dxpu-sgemm.pcapng'));
  const run = dxpu('accel run sgemm --process host-h1');
  return `
Running until Ctrl-C. To try in another terminal:
  ${dxpu('get gpus')}
  ${dxpu('bind --gpus 2 --host h2 --nvlink --wait')}
  ${dxpu('accel run sgemm --process host-h2 --slot 1 --size 256')}
  ${dxpu('explain --gpus 4 --host h1 --same-box')}
  ${dxpu('events --last 20')}
  ${dxpu(`capture 0 --process host-h1 -o ${capture} --for 3s`)} & sleep 1; ${run}; wait
  ${shellWords(undefined)(`decode ${capture}`)} | head -40
  ${dxpu('fault link --cut 2s')}; ${run}
  ${dxpu('status')}`;
}
