/** `dxpu up`: a whole pool on this machine, as processes that go on when this one has ended. */
import { DxpuError } from '#base/errors';
import { GetStatusResponseSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { askProcess, combined } from '../control-client.ts';
import { startDetached } from '../detached-process.ts';
import { formatTable, type OutputFormat, printData, printLine, printNote } from '../output.ts';
import { withPool } from '../pool-connection.ts';
import { poolProcesses, type PoolSizes, preparePool } from '../pool-files.ts';
import { logFile, poolFolder } from '../pool-folder.ts';
import { lockPool } from '../pool-lock.ts';
import { plainOf } from '../pool-plain.ts';
import { poolIsWhole } from '../pool-ready.ts';
import { shellWords } from '../shell-words.ts';
import { type KnownProcess, makeStateFolder, stateFolder } from '../state-folder.ts';
import { poolSummary } from '../pool-summary.ts';

export interface UpOptions extends Partial<PoolSizes> {
  readonly state?: string;
  readonly output: OutputFormat;
}

const WHOLE_WITHIN_MS = 60_000;
/** Processes being started at once. */
const SIDE_BY_SIDE = 4;

export interface Started {
  readonly name: string;
  readonly pid: number;
  /** Here and now; otherwise it ran already. */
  readonly started: boolean;
  readonly log: string;
}

export async function up(options: UpOptions): Promise<void> {
  const state = stateFolder(options.state);
  makeStateFolder(state);
  const lock = await lockPool(state);
  try {
    const { boxes, gpus, hosts, slots } = options;
    const { sizes, processes } = await startPool(state, { boxes, gpus, hosts, slots });
    await withPool({ output: options.output, state }, async (pool) => {
      const status = await poolIsWhole(pool, sizes, WHOLE_WITHIN_MS);
      if (options.output !== 'table') {
        const plain = plainOf(GetStatusResponseSchema, status);
        await printData(
          { folder: state, manager: pool.address, processes, pool: plain },
          options.output,
        );
        return;
      }
      printLine(startedTable(processes));
      printLine(`\n${poolSummary(status, pool.address)}`);
      printLine(advice(options));
    });
  } finally {
    lock.close();
  }
}

export function startedTable(processes: readonly Started[]): string {
  const rows = processes.map((one) => [
    one.name,
    one.pid,
    one.started ? 'started' : 'ran already',
    one.log,
  ]);
  return formatTable(['process', 'pid', '', 'log'], rows);
}

/** Starts what does not run of the pool of `state`; makes one where there is none. */
export async function startPool(
  state: string,
  asked: { readonly [Size in keyof PoolSizes]?: number | undefined },
): Promise<{ readonly sizes: PoolSizes; readonly processes: readonly Started[] }> {
  const given = Object.entries(asked).filter(([, count]) => count !== undefined);
  const { sizes, isNew } = await preparePool(state, Object.fromEntries(given));
  if (isNew) printNote(`certificates and configurations in ${poolFolder(state)}`);
  return { sizes, processes: await startAll(state, poolProcesses(state, sizes)) };
}

/** The manager first; then the others, some at a time. */
async function startAll(state: string, processes: readonly KnownProcess[]): Promise<Started[]> {
  const [manager, ...others] = processes;
  const started: Started[] = [];
  if (manager !== undefined) started.push(await startOne(state, manager));
  const problems: DxpuError[] = [];
  for (let begin = 0; begin < others.length; begin += SIDE_BY_SIDE) {
    const portion = others.slice(begin, begin + SIDE_BY_SIDE).map((one) => startOne(state, one));
    for (const result of await Promise.allSettled(portion)) {
      if (result.status === 'fulfilled') started.push(result.value);
      else problems.push(DxpuError.from(result.reason));
    }
  }
  const error = combined(problems);
  if (error === undefined) return started;
  throw new DxpuError(
    error.code,
    `${error.message}\nwhat was started runs on: dxpu up starts the rest once this is mended, ` +
      'dxpu down ends all of it',
    { details: error.details, cause: error },
  );
}

/** Starts one process of the pool, if it does not run. */
export async function startOne(state: string, target: KnownProcess): Promise<Started> {
  const { name } = target;
  const log = logFile(state, name);
  const running = await askProcess(target, 'ping', {}).catch((error: unknown) => {
    // Nobody there is what is wanted; one that is stuck is in the way.
    if (DxpuError.from(error).code !== 'unavailable') throw error;
    return undefined;
  });
  if (running !== undefined) {
    return { name, pid: (running as { pid: number }).pid, started: false, log };
  }
  return { name, pid: await startDetached(state, target), started: true, log };
}

function advice(options: UpOptions): string {
  const dxpu = shellWords(options.state);
  return `
To go on:
  ${dxpu('get gpus')}
  ${dxpu('bind --gpus 2 --host h1 --wait')}
  ${dxpu('accel run sgemm --process host-h1 --slot 0')}
  ${dxpu('status')}
  ${dxpu('down')}`;
}
