/** `dxpu status` and `dxpu tables`: the pool in numbers, and what each process here does. */
import { DxpuError } from '#base/errors';
import { GetStatusResponseSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { combined } from '../control-client.ts';
import { printData, printLine } from '../output.ts';
import { hasManager, poolFailure, type PoolOptions, withPool } from '../pool-connection.ts';
import { knownLogFile } from '../pool-folder.ts';
import { plainOf } from '../pool-plain.ts';
import { stateFolder } from '../state-folder.ts';
import { poolSummary } from '../pool-summary.ts';
import {
  allStatus,
  isProxy,
  plainTable,
  type ProcessSelection,
  type ProcessStatus,
} from '../status-report.ts';
import { statusText, tableText } from '../status-text.ts';

type StatusOptions = ProcessSelection & PoolOptions;

/** The manager is asked once; one that takes longer is in trouble. */
const ANSWER_WITHIN_MS = 5000;

interface PoolStatus {
  readonly text: string;
  readonly plain: object;
}

export async function status(options: StatusOptions): Promise<void> {
  const problems: DxpuError[] = [];
  const note = (thrown: unknown): undefined => {
    problems.push(DxpuError.from(thrown));
    return undefined;
  };
  const wantsPool = options.process === undefined && hasManager(options);
  const [pool, processes] = await Promise.all([
    wantsPool ? poolStatus(options).catch(note) : undefined,
    // A manager elsewhere has nothing to do with what runs here.
    options.manager === undefined ? allStatus(options).catch(note) : undefined,
  ]);
  const statuses = processes?.statuses ?? [];
  problems.push(...(processes?.problems ?? []));
  if (options.output !== 'table') {
    const ofPool = pool === undefined ? {} : { pool: pool.plain };
    const withLogs = statuses.map((one) => ({ ...one, log: logOf(options, one) }));
    await printData({ ...ofPool, processes: withLogs }, options.output);
  } else {
    const texts = statuses.map((one) => statusText(one, logOf(options, one)));
    const parts = [...(pool === undefined ? [] : [pool.text]), ...texts];
    if (parts.length > 0) printLine(parts.join('\n\n'));
  }
  failFor(problems);
}

function poolStatus(options: StatusOptions): Promise<PoolStatus> {
  return withPool(options, async (pool) => {
    try {
      const answer = await pool.pool.getStatus({}, { timeoutMs: ANSWER_WITHIN_MS });
      return {
        text: poolSummary(answer, pool.address),
        plain: { manager: pool.address, ...plainOf(GetStatusResponseSchema, answer) },
      };
    } catch (error) {
      throw poolFailure(error, pool);
    }
  });
}

function logOf(options: ProcessSelection, { kind, id }: ProcessStatus): string | undefined {
  return knownLogFile(stateFolder(options.state), `${kind}-${id}`);
}

export async function tables(options: StatusOptions): Promise<void> {
  const { statuses, problems } = await allStatus(options);
  const proxies = statuses.filter(isProxy);
  if (options.output !== 'table') {
    await printData({ tables: proxies.map(plainTable) }, options.output);
  } else if (proxies.length > 0) {
    const texts = proxies.map((one) => `${one.kind} ${one.id}\n${tableText(one)}`);
    printLine(texts.join('\n\n'));
  }
  failFor(problems);
}

/** What could be had has been printed; the rest is an error. */
function failFor(problems: readonly DxpuError[]): void {
  const error = combined(problems);
  if (error !== undefined) throw error;
}
