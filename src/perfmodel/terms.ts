/**
 * The terms both estimates share, worked out of a link profile: what a submission, a host wait and a
 * copy cost at an added round trip. Each is linear or, for copies, convex and piecewise linear in it.
 */
import { DxpuError } from '#base/errors';
import { readGbytesPerS, writeGbytesPerS } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import { completionPayloadBytes, networkGbytesPerS } from '#pcie/link-profile';

export interface TermOptions {
  /** DMA reads the device needs to fetch a submission, one after another; 1 if left out. */
  readonly fetches?: number;
  /** GPUs that share the path; 1 if left out. */
  readonly sharing?: number;
  /** Where the peers of a copy between GPUs are: in one box (the default), or in boxes of their own. */
  readonly peers?: 'box' | 'spread';
}

/** One direction of copies. A copy of n bytes lasts at least n × the larger of two rates. */
export interface CopyTerms {
  /** What the link and the network allow, ns a byte. */
  readonly nsPerByte: number;
  /** What the outstanding reads allow, ns a byte for each ns of round trip; 0 for writes. */
  readonly nsPerBytePerRttNs: number;
  /** The same as `nsPerByte` natively, all limits together. */
  readonly nativeNsPerByte: number;
  /** Added round trips each copy pays. */
  readonly rtts: number;
}

/** Half a round trip: a posted write crosses once. */
export const DOORBELL_RTTS = 0.5;
/** A completion is a posted write too. */
export const WAIT_RTTS = 0.5;

export interface Terms {
  readonly nativeRttNs: number;
  readonly addedRttNs: number;
  readonly fetches: number;
  readonly htod: CopyTerms;
  readonly dtoh: CopyTerms;
  /** Null: peers sit in one box, and their copies stay there. */
  readonly peer: CopyTerms | null;
}

/** Throws `DxpuError` `invalid_argument` for options out of range. */
export function termsOf(profile: LinkProfile, options: TermOptions = {}): Terms {
  const fetches = whole('fetches', options.fetches ?? 1, 0, 1000);
  const sharing = whole('sharing', options.sharing ?? 1, 1, 100_000);
  const read = readGbytesPerS(profile, profile.mrrsBytes);
  const write = writeGbytesPerS(profile, profile.mpsBytes);
  const networkRead = networkGbytesPerS(profile, completionPayloadBytes(profile)) / sharing;
  const networkWrite = networkGbytesPerS(profile, profile.mpsBytes) / sharing;
  const outstandingBytes = profile.tags * profile.mrrsBytes;
  const writes = {
    nsPerByte: 1 / Math.min(write, networkWrite),
    nsPerBytePerRttNs: 0,
    nativeNsPerByte: 1 / write,
  };
  return {
    nativeRttNs: profile.nativeRttNs,
    addedRttNs: profile.addedRttNs,
    fetches,
    htod: {
      nsPerByte: 1 / Math.min(read, networkRead),
      nsPerBytePerRttNs: 1 / outstandingBytes,
      nativeNsPerByte: 1 / Math.min(read, outstandingBytes / profile.nativeRttNs),
      rtts: 1,
    },
    dtoh: { ...writes, rtts: 0 },
    peer: options.peers === 'spread' ? { ...writes, rtts: 0.5 } : null,
  };
}

export function withAddedRtt(terms: Terms, addedRttNs: number): Terms {
  return { ...terms, addedRttNs };
}

/** The least a pooled copy lasts, without its round trips, ns. */
export function leastCopyNs(copy: CopyTerms, bytes: number, rttNs: number): number {
  return bytes * Math.max(copy.nsPerByte, copy.nsPerBytePerRttNs * rttNs);
}

/** By how much `leastCopyNs` grows with each ns of round trip, on the side of longer ones. */
export function leastCopySlope(copy: CopyTerms, bytes: number, rttNs: number): number {
  return copy.nsPerBytePerRttNs * rttNs >= copy.nsPerByte ? bytes * copy.nsPerBytePerRttNs : 0;
}

/** Payload rates of long copies at the terms' round trip, GB/s. */
export function copyRates(terms: Terms): {
  readonly nativeReadGbytesPerS: number;
  readonly pooledReadGbytesPerS: number;
  readonly nativeWriteGbytesPerS: number;
  readonly pooledWriteGbytesPerS: number;
} {
  const rttNs = terms.nativeRttNs + terms.addedRttNs;
  return {
    nativeReadGbytesPerS: 1 / terms.htod.nativeNsPerByte,
    pooledReadGbytesPerS: 1 / leastCopyNs(terms.htod, 1, rttNs),
    nativeWriteGbytesPerS: 1 / terms.dtoh.nativeNsPerByte,
    pooledWriteGbytesPerS: 1 / leastCopyNs(terms.dtoh, 1, rttNs),
  };
}

function whole(field: string, value: number, least: number, most: number): number {
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new DxpuError(
    'invalid_argument',
    `${field} is ${value}: must be a whole number from ${least} to ${most}`,
    { details: { field, value } },
  );
}
