/** What holds of every answer, whatever the timeline is like. */
import { namedLinkProfile } from '#pcie/link-profile';
import { predict } from '#perfmodel/predict';
import { prediction } from '#perfmodel/prediction';
import type { Timeline } from '#trace/timeline';

/** Sums of doubles, relative to the sum. */
const ROUNDING = 1e-9;

/**
 * Predicts for the default link and for a far one. Throws an error that says what does not hold: the
 * schema knows no NaN and no infinity, and the replay never adds more than the additive estimate.
 */
export function checkPredictions(timeline: Timeline): void {
  const near = namedLinkProfile('dxpu-6.8us');
  const far = { ...near, name: 'far', addedRttNs: 20_000 };
  const options = { file: 'trace', perIteration: true, curve: true };
  for (const answer of predict(timeline, [near, far], options)) {
    const { additive, replay, trace } = prediction.parse(answer);
    if (replay === null) continue;
    const roomNs = 1 + ROUNDING * (trace.spanNs + additive.addedNs);
    if (!(replay.addedNs >= -roomNs && replay.addedNs <= additive.addedNs + roomNs)) {
      throw new Error(`the replay adds ${replay.addedNs} ns, the sum ${additive.addedNs} ns`);
    }
  }
}
