/** Reads a trace of any format that is known by its content. */
import { DxpuError } from '#base/errors';
import { fileChunks } from './read-options.ts';
import type { ReadOptions } from './read-options.ts';
import { recognise } from './recognise.ts';
import type { RecognisedFormat } from './recognise.ts';
import type { Timeline } from './timeline.ts';

/**
 * The timeline of a file; what was dropped of it is counted in `Timeline.warnings`. Memory grows with
 * the events kept, not with the file. There is at least one piece of GPU work in it.
 *
 * Throws a `DxpuError` where the file is not a trace that is read, is damaged beyond use or has no GPU
 * work: the message names the file, the place in it and the way out. Code `cancelled` if `signal` ended
 * it.
 */
export async function readTrace(file: string, options: ReadOptions = {}): Promise<Timeline> {
  const timeline = await read(await recognise(file), file, options);
  if (timeline.work.count > 0) return timeline;
  const dropped = timeline.warnings.map(({ message }) => message).join('; ');
  throw new DxpuError(
    'failed_precondition',
    `${file}: there is no GPU work in it (${timeline.calls.count} calls of the host's API` +
      `${dropped === '' ? '' : `; ${dropped}`}), so there is nothing to predict. Record again while ` +
      'the program uses the GPU',
    { details: { file } },
  );
}

/** Each format's reader is loaded when it is needed: SQLite is not small. */
async function read(
  format: RecognisedFormat,
  file: string,
  options: ReadOptions,
): Promise<Timeline> {
  switch (format) {
    case 'nsys':
      return (await import('./nsys.ts')).readNsys(file, options);
    case 'nvprof':
      return (await import('./nvprof.ts')).readNvprof(file, options);
    case 'tensorflow':
      return (await import('./tensorflow.ts')).readTensorflow(file, options);
    case 'kineto':
      return (await import('./kineto.ts')).readKineto(fileChunks(file, options), { file });
  }
}
