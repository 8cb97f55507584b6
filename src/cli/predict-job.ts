/** One trace predicted over all links: what a worker does, and what goes in and out of it. */
import type { Prediction } from '#perfmodel/prediction';
import type { PredictOptions } from '#perfmodel/predict';
import type { LinkProfile } from '#pcie/link-profile';
import { timelineOf, traceName, type TraceSource } from './trace-source.ts';

/** Can be sent to a worker as it is. */
export interface PredictJob {
  readonly trace: TraceSource;
  readonly links: readonly LinkProfile[];
  readonly options: Omit<PredictOptions, 'file'>;
}

/** A prediction for each link. `onStep` is told what is done, and the share of it that is, 0 to 1. */
export async function runPredictJob(
  job: PredictJob,
  onStep: (step: string, share: number) => void = () => {},
): Promise<Prediction[]> {
  const { predict } = await import('#perfmodel/predict');
  const timeline = await timelineOf(job.trace, (share) => onStep('reading', share));
  onStep('predicting', 0);
  return predict(timeline, job.links, { ...job.options, file: traceName(job.trace) });
}
