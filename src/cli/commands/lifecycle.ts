import { DxpuError } from '#base/errors';
import {
  askProcess,
  combined,
  findProcess,
  someProcesses,
  type Survey,
  waitForEnd,
} from '../control-client.ts';
import { errorObject, type OutputFormat, printData, printLine } from '../output.ts';
import type { ReloadResult } from '../daemon-process.ts';
import { type KnownProcess, type ProcessKind, stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';

type LifecycleOptions = ProcessSelection & { readonly output: OutputFormat };

/** Reloading a table resets and scrubs devices. */
const RELOAD_WITHIN_MS = 30_000;
const STOP_WITHIN_MS = 10_000;

export async function reload(options: LifecycleOptions): Promise<void> {
  const proxies = options.process === undefined ? PROXIES : undefined;
  await forEach(options, proxies, async (target) => {
    const result = (await askProcess(target, 'reload', {}, RELOAD_WITHIN_MS)) as ReloadResult;
    return { result, text: reloadText(target.name, result) };
  });
}

export function reloadText(name: string, { rows, contained, ignored }: ReloadResult): string {
  const lines = [
    `${name}: ${rows} ${rows === 1 ? 'row' : 'rows'} in force` +
      (contained.length === 0 ? '' : `, ${contained.length} contained`) +
      (ignored === undefined ? '' : `; ${ignored}`),
    ...contained.map(({ slot, reason }) => `  slot ${slot} is contained: ${reason}`),
  ];
  return lines.join('\n');
}

/** Returns when they have ended. */
export async function stop(options: LifecycleOptions): Promise<void> {
  await forEach(options, undefined, async (target) => {
    let result: { readonly pid?: number } = {};
    try {
      result = (await askProcess(target, 'stop', {})) as typeof result;
    } catch (error) {
      // It may end before it is asked: a start ends its other process with the first.
      if (DxpuError.from(error).code !== 'unavailable') throw error;
    }
    await waitForEnd(target, result.pid, STOP_WITHIN_MS);
    return { result, text: `${target.name}: stopped` };
  });
}

/** Those with tables and links. */
export const PROXIES: readonly ProcessKind[] = ['host', 'box'];

/**
 * The processes meant: the named one, or all of the state folder, of `kinds` where given; managers
 * first, then boxes.
 */
export async function selected(
  options: ProcessSelection,
  kinds?: readonly ProcessKind[],
): Promise<Survey> {
  const folder = stateFolder(options.state);
  if (options.process !== undefined) {
    return { running: [await findProcess(folder, options.process, undefined)], unreachable: [] };
  }
  const { running, unreachable } = await someProcesses(folder);
  const isMeant = ({ kind }: KnownProcess): boolean => kinds?.includes(kind) !== false;
  return {
    // A box's row comes before the host's row of the same binding.
    running: running.filter(isMeant).reverse(),
    unreachable: unreachable.filter(({ target }) => isMeant(target)),
  };
}

/** Asks each process in turn; one that refuses does not keep the others from being asked. */
async function forEach(
  options: LifecycleOptions,
  kinds: readonly ProcessKind[] | undefined,
  ask: (target: KnownProcess) => Promise<{ result: unknown; text: string }>,
): Promise<void> {
  const { running, unreachable } = await selected(options, kinds);
  const problems: DxpuError[] = [];
  const results: unknown[] = [];
  for (const target of running) {
    try {
      const { result, text } = await ask(target);
      results.push({ process: target.name, result });
      if (options.output === 'table') printLine(text);
    } catch (thrown) {
      const error = DxpuError.from(thrown);
      results.push({ process: target.name, error: errorObject(error) });
      const message = error.message.startsWith(target.name)
        ? error.message
        : `${target.name}: ${error.message}`;
      problems.push(new DxpuError(error.code, message, { details: error.details, cause: error }));
    }
  }
  for (const { target, error } of unreachable) {
    results.push({ process: target.name, error: errorObject(error) });
    problems.push(error);
  }
  if (options.output !== 'table') await printData({ results }, options.output);
  const error = combined(problems);
  if (error !== undefined) throw error;
}
