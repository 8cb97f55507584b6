import { DxpuError } from '#base/errors';
import { askProcess, combined } from '../control-client.ts';
import { type OutputFormat, printData, printLine, UsageError } from '../output.ts';
import { formatDuration } from '../quantity.ts';
import type { ProcessSelection } from '../status-report.ts';
import { PROXIES, selected } from './lifecycle.ts';

export interface FaultOptions extends ProcessSelection {
  readonly output: OutputFormat;
  /** Nanoseconds. */
  readonly cut?: number;
  readonly delay?: number;
  readonly drop?: number;
  readonly clear?: boolean;
}

export async function faultLink(options: FaultOptions): Promise<void> {
  const { cut, delay, drop, clear } = options;
  if (cut === undefined && delay === undefined && drop === undefined && clear !== true) {
    throw new UsageError('nothing to do: give --cut, --delay, --drop or --clear');
  }
  const params = {
    ...(cut === undefined ? {} : { cutNs: cut }),
    ...(delay === undefined ? {} : { delayNs: delay }),
    ...(drop === undefined ? {} : { dropProbability: drop }),
    ...(clear === undefined ? {} : { clear }),
  };
  const { running, unreachable } = await selected(options, PROXIES);
  const problems = unreachable.map(({ error }) => error);
  const results: { process: string; faults: unknown }[] = [];
  const answers = await Promise.allSettled(
    running.map((target) => askProcess(target, 'fault', params)),
  );
  for (const [index, answer] of answers.entries()) {
    if (answer.status === 'rejected') problems.push(DxpuError.from(answer.reason));
    else results.push({ process: running[index]?.name ?? '', faults: answer.value });
  }
  const said = [
    ...(clear === true ? ['earlier faults cleared'] : []),
    ...(cut === undefined ? [] : [`connections cut for ${formatDuration(cut)}`]),
    ...(delay === undefined ? [] : [`frames delayed by ${formatDuration(delay)} each way`]),
    ...(drop === undefined ? [] : [`${(drop * 100).toFixed(2)} % of the frames lost each way`]),
  ];
  if (options.output !== 'table') await printData({ results }, options.output);
  else if (results.length > 0) {
    printLine(`${results.map((one) => one.process).join(', ')}: ${said.join(', ')}`);
  }
  const error = combined(problems);
  if (error !== undefined) throw error;
}
