/** What a user says of a link, from a file or from options, and the profile it makes. */
import { DxpuError } from '#base/errors';
import { type LinkProfile, linkProfile, type LinkProfileInput } from '#pcie/link-profile';
import { formatDuration } from './quantity.ts';

/** All of it optional; the rest comes from the profile it extends. */
export interface LinkInput extends LinkProfileInput {
  /** The whole round trip, in place of `addedRttNs`. */
  readonly rttNs?: number;
}

/** `over` has the last word. */
export function merged(under: LinkInput, over: LinkInput): LinkInput {
  const { rttNs, addedRttNs, ...others } = under;
  const isAnew = over.rttNs !== undefined || over.addedRttNs !== undefined;
  return {
    ...others,
    ...(isAnew || rttNs === undefined ? {} : { rttNs }),
    ...(isAnew || addedRttNs === undefined ? {} : { addedRttNs }),
    ...over,
  };
}

/** Throws `DxpuError` `invalid_argument` that begins with the wrong field (`details.field`). */
export function profileOf({ rttNs, ...input }: LinkInput): LinkProfile {
  if (rttNs === undefined) return linkProfile(input);
  const { nativeRttNs } = linkProfile(input);
  if (rttNs < nativeRttNs) {
    throw new DxpuError(
      'invalid_argument',
      `rttNs is ${formatDuration(rttNs)}: must be at least the native round trip, ${formatDuration(nativeRttNs)}`,
      { details: { field: 'rttNs', value: rttNs } },
    );
  }
  try {
    return linkProfile({ ...input, addedRttNs: rttNs - nativeRttNs });
  } catch (error) {
    const { field, most } = DxpuError.from(error).details;
    if (field !== 'addedRttNs' || typeof most !== 'number') throw error;
    throw new DxpuError(
      'invalid_argument',
      `rttNs is ${inUnit(rttNs)}: must be at most ${inUnit(most)} more than the native round trip, ${formatDuration(nativeRttNs)}`,
      { details: { field: 'rttNs', value: rttNs }, cause: error },
    );
  }
}

/** What is wrong with the field, without the field. */
export function complaint(error: unknown): { readonly field: string; readonly text: string } {
  const { message, details } = DxpuError.from(error);
  const { field, value, least, most } = details;
  if (typeof field === 'string' && typeof least === 'number' && typeof most === 'number') {
    // In units where the option has them: the profile itself counts ns and Gb/s.
    const words = wordsOf(field);
    if (words !== undefined) {
      const text = `is ${words(Number(value))}: must be from ${words(least)} to ${words(most)}`;
      return { field, text };
    }
  }
  return {
    field: typeof field === 'string' ? field : '',
    text: message.replace(/^(?:link profile: )?\w+ (?=is )/, ''),
  };
}

function wordsOf(field: string): ((value: number) => string) | undefined {
  if (field.endsWith('Ns')) return inUnit;
  return field === 'networkGbps' ? (gbps) => `${gbps} Gbit/s` : undefined;
}

/** All of its digits, as a bound may be missed by little. */
function inUnit(ns: number): string {
  if (ns >= 1e9) return `${ns / 1e9} s`;
  if (ns >= 1e6) return `${ns / 1e6} ms`;
  return ns >= 1e3 ? `${ns / 1e3} us` : `${ns} ns`;
}
