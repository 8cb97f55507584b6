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
  return linkProfile({ ...input, addedRttNs: rttNs - nativeRttNs });
}

/** What is wrong with the field, without the field. */
export function complaint(error: unknown): { readonly field: string; readonly text: string } {
  const { message, details } = DxpuError.from(error);
  const { field } = details;
  return {
    field: typeof field === 'string' ? field : '',
    text: message.replace(/^(?:link profile: )?\w+ (?=is )/, ''),
  };
}
