/** One trace predicted over all links: what a worker does, and what goes in and out of it. */
import type { Prediction } from '#perfmodel/prediction';
import type { PredictOptions } from '#perfmodel/predict';
import type { LinkProfile } from '#pcie/link-profile';
import type { SyntheticName } from '#trace/synthetic';
import type { Timeline } from '#trace/timeline';

/** Can be sent to a worker as it is. */
export interface PredictJob {
  /** A file, or a made-up trace. */
  readonly trace: { readonly file: string } | { readonly example: SyntheticName };
  readonly links: readonly LinkProfile[];
  readonly options: Omit<PredictOptions, 'file'>;
}

/** The name a trace has in the answer. */
export function jobName({ trace }: PredictJob): string {
  return 'file' in trace ? trace.file : `synthetic ${trace.example}`;
}

/** The same made-up trace every time. */
const EXAMPLE_SEED = 1;

/** A prediction for each link. `onStep` is told what is done, and the share of it that is, 0 to 1. */
export async function runPredictJob(
  job: PredictJob,
  onStep: (step: string, share: number) => void = () => {},
): Promise<Prediction[]> {
  const { predict } = await import('#perfmodel/predict');
  const timeline = await timelineOf(job, onStep);
  onStep('predicting', 0);
  return predict(timeline, job.links, { ...job.options, file: jobName(job) });
}

async function timelineOf(
  { trace }: PredictJob,
  onStep: (step: string, share: number) => void,
): Promise<Timeline> {
  if ('example' in trace) {
    const { syntheticTrace } = await import('#trace/synthetic');
    return syntheticTrace(trace.example, EXAMPLE_SEED);
  }
  const { readTrace } = await import('#trace/read-trace');
  return readTrace(trace.file, { onProgress: (share) => onStep('reading', share) });
}
