/**
 * The additive estimate: every submission, copy and host wait pays its terms, and nothing hides
 * anything. An upper bound of the replay. Works on counts and a list of the copies.
 */
import type { Timeline } from '#trace/timeline';
import type { Causes } from './prediction.ts';
import type { CopyTerms, Terms } from './terms.ts';
import { DOORBELL_RTTS, WAIT_RTTS, leastCopyNs, leastCopySlope } from './terms.ts';

/** What pays. */
export interface Payers {
  readonly submissions: number;
  readonly hostWaits: number;
  /** Rows of work. */
  readonly htod: Uint32Array;
  readonly dtoh: Uint32Array;
  readonly peer: Uint32Array;
}

export interface AdditiveEstimate {
  readonly addedNs: number;
  readonly causes: Causes;
  /** ns more for each ns of added round trip, on the side of longer ones. */
  readonly slope: number;
}

/** The estimate at `terms.addedRttNs`. The causes sum to `addedNs`. */
export function additiveEstimate(
  timeline: Timeline,
  payers: Payers,
  terms: Terms,
): AdditiveEstimate {
  const { addedRttNs } = terms;
  const none = { addedNs: 0, slope: 0 };
  const htod = copiesCost(timeline, payers.htod, terms.htod, terms);
  const dtoh = copiesCost(timeline, payers.dtoh, terms.dtoh, terms);
  const peer = terms.peer === null ? none : copiesCost(timeline, payers.peer, terms.peer, terms);
  const causes: Causes = {
    doorbellNs: payers.submissions * DOORBELL_RTTS * addedRttNs,
    fetchNs: payers.submissions * terms.fetches * addedRttNs,
    htodNs: htod.addedNs,
    dtohNs: dtoh.addedNs,
    peerNs: peer.addedNs,
    waitNs: payers.hostWaits * WAIT_RTTS * addedRttNs,
  };
  const slope =
    payers.submissions * (DOORBELL_RTTS + terms.fetches) +
    payers.hostWaits * WAIT_RTTS +
    htod.slope +
    dtoh.slope +
    peer.slope;
  return { addedNs: sumOfCauses(causes), causes, slope };
}

export function sumOfCauses(causes: Causes): number {
  return (
    causes.doorbellNs +
    causes.fetchNs +
    causes.htodNs +
    causes.dtohNs +
    causes.peerNs +
    causes.waitNs
  );
}

function copiesCost(
  timeline: Timeline,
  rows: Uint32Array,
  copy: CopyTerms,
  terms: Terms,
): { readonly addedNs: number; readonly slope: number } {
  const { bytes, durationNs } = timeline.work;
  const rttNs = terms.nativeRttNs + terms.addedRttNs;
  let addedNs = rows.length * copy.rtts * terms.addedRttNs;
  let slope = rows.length * copy.rtts;
  for (const row of rows) {
    const size = bytes[row] ?? 0;
    // A trace from a faster link than the native one is not flattered.
    const without = Math.min(durationNs[row] ?? 0, size * copy.nativeNsPerByte);
    const extra = leastCopyNs(copy, size, rttNs) - without;
    if (extra < 0) continue;
    addedNs += extra;
    slope += leastCopySlope(copy, size, rttNs);
  }
  return { addedNs, slope };
}
