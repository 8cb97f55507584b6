/** Figures of a part of a trace: all marked iterations together, or one of them. */
import type { Lanes } from '#trace/lanes';
import { windowLanes } from '#trace/lanes';
import type { Timeline } from '#trace/timeline';
import type { WindowFigures } from './prediction.ts';
import type { Terms } from './terms.ts';
import { WorkloadModel } from './workload-model.ts';

export interface Window {
  readonly label: string;
  readonly startNs: number;
  readonly endNs: number;
}

/** From the first to the last; null where none are marked. */
export function allIterations({ iterations }: Timeline): Window | null {
  const first = iterations[0];
  if (first === undefined) return null;
  let last = first;
  for (const iteration of iterations) if (iteration.endNs > last.endNs) last = iteration;
  const label = first === last ? first.label : `${first.label} to ${last.label}`;
  return { label, startNs: first.startNs, endNs: last.endNs };
}

/** The calls begun in the window and their GPU work, predicted on their own; one figure a link. */
export function windowFigures(
  timeline: Timeline,
  whole: Lanes,
  window: Window,
  links: readonly Terms[],
): WindowFigures[] {
  const lanes = windowLanes(timeline, whole, window.startNs, window.endNs);
  const model = new WorkloadModel(timeline, lanes);
  return links.map((terms) => {
    const { addedNs } = model.additive(terms);
    const { replay, spanNs, payers } = model;
    const overheadPct = model.replayOverheadPct(terms);
    return {
      ...window,
      nativeSpanNs: replay?.nativeSpanNs ?? spanNs,
      submissions: payers.submissions,
      hostWaits: payers.hostWaits,
      additive: { addedNs, overheadPct: model.additiveOverheadPct(terms) },
      replay:
        replay === null || overheadPct === null
          ? null
          : { addedNs: (overheadPct / 100) * replay.nativeSpanNs, overheadPct },
    };
  });
}
