import { DxpuError } from '#base/errors';
import { callProcess, findProcess, runningProcesses } from '../control-client.ts';
import { errorObject, type OutputFormat, printJson, printLine } from '../output.ts';
import { type KnownProcess, stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';

type LifecycleOptions = ProcessSelection & { readonly output: OutputFormat };

export async function reload(options: LifecycleOptions): Promise<void> {
  await forEach(options, 'reload', (name, result) => {
    const { rows, ignored } = result as { rows: number; ignored?: string };
    return `${name}: ${rows} rows in force${ignored === undefined ? '' : `; ${ignored}`}`;
  });
}

export async function stop(options: LifecycleOptions): Promise<void> {
  await forEach(options, 'stop', (name) => `${name}: stopping`);
}

/** The processes meant: the named one, or all of the state folder, boxes first. */
export async function selected(options: ProcessSelection): Promise<KnownProcess[]> {
  const folder = stateFolder(options.state);
  if (options.process !== undefined) return [await findProcess(folder, options.process, undefined)];
  const running = await runningProcesses(folder);
  if (running.length === 0) {
    throw new DxpuError('unavailable', `no dxpu process is running in ${folder}`);
  }
  // A box's row comes before the host's row of the same binding.
  return running.reverse();
}

/** Asks each process in turn; one that refuses does not keep the others from being asked. */
async function forEach(
  options: LifecycleOptions,
  method: string,
  describe: (name: string, result: unknown) => string,
): Promise<void> {
  const refused: string[] = [];
  const results: unknown[] = [];
  let first: DxpuError | undefined;
  for (const target of await selected(options)) {
    try {
      const result = await callProcess(target, method, {});
      results.push({ process: target.name, result });
      if (options.output === 'text') printLine(describe(target.name, result));
    } catch (error) {
      first ??= DxpuError.from(error);
      results.push({ process: target.name, error: errorObject(error) });
      refused.push(`${target.name}: ${DxpuError.from(error).message}`);
    }
  }
  if (options.output === 'json') printJson({ results });
  if (first !== undefined) {
    throw new DxpuError(first.code, refused.join('\n'), { details: first.details, cause: first });
  }
}
