import { callProcess } from '../control-client.ts';
import { type OutputFormat, printJson, printLine, UsageError } from '../output.ts';
import { formatDuration } from '../quantity.ts';
import type { ProcessSelection } from '../status-report.ts';
import { selected } from './lifecycle.ts';

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
  const targets = await selected(options);
  const results = await Promise.all(
    targets.map(async (target) => ({
      process: target.name,
      faults: await callProcess(target, 'fault', params),
    })),
  );
  if (options.output === 'json') {
    printJson({ results });
    return;
  }
  const said = [
    ...(clear === true ? ['earlier faults cleared'] : []),
    ...(cut === undefined ? [] : [`connections cut for ${formatDuration(cut)}`]),
    ...(delay === undefined ? [] : [`frames delayed by ${formatDuration(delay)} each way`]),
    ...(drop === undefined ? [] : [`${(drop * 100).toFixed(2)} % of the frames lost each way`]),
  ];
  printLine(`${targets.map((target) => target.name).join(', ')}: ${said.join(', ')}`);
}
