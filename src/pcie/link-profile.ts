/**
 * The parameters of the performance model: the device's link, its round trip on a native host, what
 * the fabric adds, and the network between. Some defaults are recalled from memory of the DxPU paper
 * and not confirmed; each profile names those fields in `recalled`, and whatever prints one of them
 * says so.
 */
import { DxpuError } from '#base/errors';
import { type PcieLink, DEFAULT_PCIE_LINK, checkPcieLink, readGbytesPerS } from './bandwidth.ts';

export interface LinkProfile extends PcieLink {
  readonly name: string;
  /** Reads the device function has outstanding at most, 1 to 1024. */
  readonly tags: number;
  /** Round trip of a small DMA read on a native host, ns. */
  readonly nativeRttNs: number;
  /** What the fabric adds to it, ns. */
  readonly addedRttNs: number;
  /** Bit rate of the network, one direction, Gb/s; Infinity where there is none. */
  readonly networkGbps: number;
  /** Bytes the network carries for each TLP beside its payload: header, entry, share of the frame. */
  readonly networkOverheadBytes: number;
  /** Fields whose value is recalled, not confirmed by a source. */
  readonly recalled: readonly string[];
}

/** What a caller may set; `extends` names the profile the rest comes from. */
export type LinkProfileInput = Partial<Omit<LinkProfile, 'recalled'>> & {
  readonly extends?: string;
};

const DXPU_RECALLED = ['tags', 'mrrsBytes', 'nativeRttNs', 'addedRttNs'] as const;

/** Generation 3 ×16; 140 tags of 128 bytes, payloads of 128 bytes, and a native round trip of 1.2 µs. */
const DEVICE = {
  ...DEFAULT_PCIE_LINK,
  mpsBytes: 128,
  mrrsBytes: 128,
  tags: 140,
  nativeRttNs: 1200,
  recalled: DXPU_RECALLED,
};

/** A completion alone in a frame: frame header 40, entry header 12, TLP header 12. */
const FRAME_OVERHEAD_BYTES = 64;

const NATIVE: LinkProfile = {
  ...DEVICE,
  name: 'native',
  addedRttNs: 0,
  networkGbps: Infinity,
  networkOverheadBytes: 0,
};

const REMOTE = { ...NATIVE, networkGbps: 200, networkOverheadBytes: FRAME_OVERHEAD_BYTES };

const PROFILES: readonly LinkProfile[] = [
  NATIVE,
  // The round trips of two prototypes, 6.8 and 4.9 µs in all, over a network of 200 Gb/s.
  { ...REMOTE, name: 'dxpu-6.8us', addedRttNs: 5600 },
  { ...REMOTE, name: 'dxpu-4.9us', addedRttNs: 3700 },
];

/** The profile used where none is named. */
export const DEFAULT_LINK_PROFILE_NAME = 'dxpu-6.8us';

export function linkProfileNames(): string[] {
  return PROFILES.map((profile) => profile.name);
}

/** A named profile. Throws `DxpuError` `not_found` that lists the names there are. */
export function namedLinkProfile(name: string): LinkProfile {
  const profile = PROFILES.find((candidate) => candidate.name === name);
  if (profile === undefined) {
    throw new DxpuError(
      'not_found',
      `there is no link profile "${name}": choose one of ${linkProfileNames().join(', ')}`,
      { details: { field: 'extends', value: name } },
    );
  }
  return profile;
}

/**
 * A full profile from what the caller set, checked. Throws `DxpuError` `invalid_argument` that names
 * the wrong field (`details.field`), its value and what is allowed (a range in `details` too, as `least`
 * and `most`); an unknown field is wrong too.
 */
export function linkProfile(input: LinkProfileInput): LinkProfile {
  const { extends: baseName, ...own } = input;
  const base = namedLinkProfile(baseName ?? DEFAULT_LINK_PROFILE_NAME);
  for (const [field, value] of Object.entries(own)) checkType(field, value, base);
  const profile: LinkProfile = {
    ...base,
    ...own,
    // What the caller set is the caller's figure, not a recalled one.
    recalled: base.recalled.filter((field) => !(field in own)),
  };
  checkPcieLink(profile);
  checkRange(profile, 'tags', 1, 1024, true);
  checkRange(profile, 'nativeRttNs', 1, 1e9, false);
  checkRange(profile, 'addedRttNs', 0, 1e9, false);
  if (profile.networkGbps !== Infinity) checkRange(profile, 'networkGbps', 1e-3, 1e5, false);
  checkRange(profile, 'networkOverheadBytes', 0, 4096, false);
  return profile;
}

/** Native round trip and what the fabric adds, ns. */
export function roundTripNs(profile: LinkProfile): number {
  return profile.nativeRttNs + profile.addedRttNs;
}

/** Payload rate of the network for TLPs of `payloadBytes` each, GB/s. */
export function networkGbytesPerS(profile: LinkProfile, payloadBytes: number): number {
  return (profile.networkGbps / 8) * (payloadBytes / (payloadBytes + profile.networkOverheadBytes));
}

/**
 * Payload rate of a long HtoD copy, GB/s: the least of what the PCIe link and the network carry and
 * `tags × MRRS ÷ round trip`.
 */
export function hostToDeviceGbytesPerS(profile: LinkProfile): number {
  return Math.min(
    readGbytesPerS(profile, profile.mrrsBytes),
    networkGbytesPerS(profile, completionPayloadBytes(profile)),
    (profile.tags * profile.mrrsBytes) / roundTripNs(profile),
  );
}

/** Payload of one completion of a long read, bytes: a completion is of one request alone. */
export function completionPayloadBytes(profile: LinkProfile): number {
  return Math.min(
    profile.mrrsBytes,
    profile.completionsSplitAtRcb ? profile.rcbBytes : profile.mpsBytes,
  );
}

function checkType(field: string, value: unknown, base: LinkProfile): void {
  const known = Object.hasOwn(base, field) && field !== 'recalled';
  if (!known) fail(field, value, 'there is no such field in a link profile');
  const wanted = typeof base[field as keyof LinkProfile];
  if (typeof value !== wanted) fail(field, value, `must be a ${wanted}`);
}

function checkRange(
  profile: LinkProfile,
  field: 'tags' | 'nativeRttNs' | 'addedRttNs' | 'networkGbps' | 'networkOverheadBytes',
  least: number,
  most: number,
  whole: boolean,
): void {
  const value = profile[field];
  if (value >= least && value <= most && (!whole || Number.isInteger(value))) return;
  const range = `${whole ? 'a whole number ' : ''}from ${least} to ${most}`;
  fail(field, value, `must be ${range}`, { least, most });
}

function fail(
  field: string,
  value: unknown,
  problem: string,
  bounds?: { readonly least: number; readonly most: number },
): never {
  throw new DxpuError(
    'invalid_argument',
    `link profile: ${field} is ${String(value)}: ${problem}`,
    {
      details: { field, value, ...bounds },
    },
  );
}
