/** Where a command has its traces from: files, or a made-up one in their place. */
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';
import type { SyntheticName } from '#trace/synthetic';
import type { Timeline } from '#trace/timeline';
import { UsageError } from './output.ts';

/** Can be sent to a worker as it is. */
export type TraceSource = { readonly file: string } | { readonly example: SyntheticName };

/** The same made-up trace every time. */
const EXAMPLE_SEED = 1;

/** Each file once, in the order given, or the example. Throws `UsageError` for both, and for neither. */
export function traceSources(
  files: readonly string[],
  example: SyntheticName | undefined,
): TraceSource[] {
  if (example === undefined) {
    if (files.length > 0) return [...new Set(files)].map((file) => ({ file }));
    throw new UsageError('name a trace to read, or try one with --example');
  }
  if (files.length === 0) return [{ example }];
  const them = files.length === 1 ? 'the file' : 'the files';
  throw new UsageError(`--example is a trace of its own: leave ${them} out, or leave it out`);
}

/** The name the trace has in an answer. */
export function traceName(source: TraceSource): string {
  return 'file' in source ? source.file : `synthetic ${source.example}`;
}

/** `onProgress` is told the share of a file that is read, 0 to 1. What reads is slow to load. */
export async function timelineOf(
  source: TraceSource,
  onProgress: (share: number) => void = () => {},
): Promise<Timeline> {
  if ('example' in source) {
    const { syntheticTrace } = await import('#trace/synthetic');
    return syntheticTrace(source.example, EXAMPLE_SEED);
  }
  const { readTrace } = await import('#trace/read-trace');
  return readTrace(source.file, { onProgress });
}

/** An error that names its trace. */
export function withTraceName(name: string, error: DxpuError): DxpuError {
  if (error.details['file'] === name || error.message.includes(name)) return error;
  return new DxpuError(error.code, `${shortPath(name)}: ${error.message}`, {
    details: { file: name, ...error.details },
    cause: error.cause,
  });
}
