import { DxpuError } from '#base/errors';
import { formatBdf } from '#base/units';
import type { RunEvent, RunParams, RunResult } from '../accel-jobs.ts';
import { callProcess, findProcess } from '../control-client.ts';
import { type OutputFormat, printData, printLine, UsageError } from '../output.ts';
import { formatDuration } from '../quantity.ts';
import { stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';

export interface AccelRunOptions extends ProcessSelection {
  readonly output: OutputFormat;
  readonly slot: number;
  readonly size?: number;
  readonly m?: number;
  readonly n?: number;
  readonly k?: number;
  readonly seed: number;
  readonly iterations: number;
}

const DEFAULT_SGEMM_SIZE = 128;
const DEFAULT_SAXPY_SIZE = 65_536;

export async function accelRun(kernel: string, options: AccelRunOptions): Promise<void> {
  const params = runParams(kernel, options);
  const host = await findProcess(stateFolder(options.state), options.process, 'host');
  const many = params.iterations > 1 && options.output === 'table';
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  process.once('SIGINT', onSignal);
  let result: RunResult;
  try {
    result = (await callProcess(host, 'run', params, {
      signal: stop.signal,
      onEvent: (event) => {
        const { iteration, timeNs } = event as RunEvent;
        if (many) printLine(`${iteration + 1}: ${formatDuration(timeNs)}`);
      },
    })) as RunResult;
  } catch (error) {
    // Ctrl-C is no error of anybody's: say nothing more.
    if (stop.signal.aborted) {
      process.exitCode = 130;
      return;
    }
    throw DxpuError.from(error);
  } finally {
    process.removeListener('SIGINT', onSignal);
  }
  if (options.output !== 'table') {
    await printData({ ...params, ...result, bdf: formatBdf(result.bdf) }, options.output);
    return;
  }
  const sorted = [...result.timesNs].sort((a, b) => a - b);
  const median = sorted[sorted.length >> 1] ?? 0;
  const shape =
    params.kernel === 'sgemm' ? `${params.m}x${params.n}x${params.k}` : `${params.n} elements`;
  printLine(
    `${kernel} ${shape} on slot ${result.slot} (${formatBdf(result.bdf)}): correct, ` +
      (params.iterations === 1
        ? formatDuration(median)
        : `median ${formatDuration(median)} of ${params.iterations}`) +
      ' with upload and download',
  );
}

function runParams(kernel: string, options: AccelRunOptions): RunParams {
  const { slot, seed, iterations, size } = options;
  if (kernel === 'saxpy') {
    if (options.m !== undefined || options.k !== undefined) {
      throw new UsageError('saxpy has one size: give --size or -n');
    }
    const n = options.n ?? size ?? DEFAULT_SAXPY_SIZE;
    return { kernel: 'saxpy', slot, n, seed, iterations };
  }
  const side = size ?? DEFAULT_SGEMM_SIZE;
  return {
    kernel: 'sgemm',
    slot,
    m: options.m ?? side,
    n: options.n ?? side,
    k: options.k ?? side,
    seed,
    iterations,
  };
}
