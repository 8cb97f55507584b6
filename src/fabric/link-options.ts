/**
 * What can be set about a link. Both ends of a link have options of their own; what one end must know
 * of the other (windows, frame size) travels in HELLO.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { MAX_FRAME_BYTES, MIN_MAX_FRAME_BYTES } from './frame-bounds.ts';

/** Receive window of one flow class (2.6.1): TLPs, and payload in units of 16 bytes. */
export interface CreditWindow {
  readonly tlps: number;
  readonly dataUnits: number;
}

export const TapDirection = { OUT: 0, IN: 1 } as const;
export type TapDirection = (typeof TapDirection)[keyof typeof TapDirection];

/** Called for each TLP put into a frame or delivered from one; the bytes are valid during the call. */
export type LinkTap = (
  now: Nanos,
  direction: TapDirection,
  slot: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
) => void;

/**
 * Test only: each leaves one check out, so that a test can show that its property finds the fault.
 * Never set outside tests.
 */
export interface LinkFaults {
  /** Delivers a frame again when its duplicate arrives. */
  readonly noDuplicateFilter?: boolean;
  /** Delivers frames in the order they arrive, gaps or not. */
  readonly noSequenceCheck?: boolean;
  /** Sends without waiting for credits. */
  readonly noCreditWait?: boolean;
  /** Accepts more than was granted. */
  readonly noCreditCheck?: boolean;
  /** Takes waiting TLPs as the credits allow, without asking the ordering table. */
  readonly noOrdering?: boolean;
  /** One queue for all classes: the head blocks what is behind it. */
  readonly headOfLine?: boolean;
  /** Forgets what was not acknowledged when a session resumes. */
  readonly noReplay?: boolean;
}

export interface LinkOptions {
  /** A session outlives a lost connection by at most this. */
  readonly resumeWindowNs: number;
  /** From connecting to HELLO-ACK; an acceptor waits as long for HELLO. */
  readonly handshakeTimeoutNs: number;
  /** HELLO is sent again after this, for transports that lose frames. */
  readonly helloRetryNs: number;
  /** First pause before connecting again; doubles up to `backoffMaxNs`. */
  readonly backoffMinNs: number;
  readonly backoffMaxNs: number;
  readonly pingIntervalNs: number;
  /** No frame for this long: the connection is dropped and the session resumes. */
  readonly deadPeerNs: number;
  /** Least time without an acknowledgement after which the peer is asked what it has. */
  readonly replayTimerFloorNs: number;
  /** A frame of acknowledgement and credits alone goes after this, if nothing else went before… */
  readonly ackDelayNs: number;
  /** …or after this many frames… */
  readonly ackFrames: number;
  /** …or after this many bytes not yet acknowledged. */
  readonly ackBytes: number;
  /** Largest frame sent or taken, 8 KiB to 1 MiB. */
  readonly maxFrameBytes: number;
  /** Replay buffer: frames sent and not yet acknowledged. At least 4 × maxFrameBytes. */
  readonly replayBytes: number;
  /** The same bound in frames, a power of two. */
  readonly replayFrames: number;
  /** Receive windows per flow class (posted, non-posted, completion). */
  readonly windows: readonly [CreditWindow, CreditWindow, CreditWindow];
  /** `canSend` is false when this many TLPs of the class wait for credits or buffers… */
  readonly queueTlps: number;
  /** …or this much payload. */
  readonly queueBytes: number;
  /** First sequence number expected from the peer of a new session. */
  readonly initialSequence: number;
  readonly faults: LinkFaults;
}

const MIB = 1 << 20;

export const DEFAULT_LINK_OPTIONS: LinkOptions = {
  resumeWindowNs: 3e9,
  handshakeTimeoutNs: 1e9,
  helloRetryNs: 200e6,
  backoffMinNs: 50e6,
  backoffMaxNs: 1e9,
  pingIntervalNs: 250e6,
  deadPeerNs: 1e9,
  replayTimerFloorNs: 10e6,
  ackDelayNs: 1e6,
  ackFrames: 64,
  ackBytes: 128 * 1024,
  maxFrameBytes: 32 * 1024,
  replayBytes: 4 * MIB,
  replayFrames: 4096,
  windows: [
    { tlps: 8192, dataUnits: (4 * MIB) / 16 },
    { tlps: 4096, dataUnits: MIB / 16 },
    { tlps: 8192, dataUnits: (4 * MIB) / 16 },
  ],
  queueTlps: 64,
  queueBytes: MIB / 32,
  initialSequence: 0,
  faults: {},
};

/** Defaults filled in; asserts what would make a link stand still. */
export function checkLinkOptions(options: Partial<LinkOptions> = {}): LinkOptions {
  const all = { ...DEFAULT_LINK_OPTIONS, ...options };
  const { maxFrameBytes, replayBytes, replayFrames } = all;
  assert(
    maxFrameBytes >= MIN_MAX_FRAME_BYTES && maxFrameBytes <= MAX_FRAME_BYTES,
    `maxFrameBytes out of range: ${maxFrameBytes}`,
  );
  assert(maxFrameBytes % 4 === 0 && replayBytes % 4 === 0, 'sizes are multiples of 4');
  assert(replayBytes >= 4 * maxFrameBytes, 'replayBytes holds at least four frames');
  assert((replayFrames & (replayFrames - 1)) === 0, `not a power of two: ${replayFrames}`);
  const [posted, , completion] = all.windows;
  assert(
    posted.dataUnits >= LARGEST_TLP_UNITS && completion.dataUnits >= LARGEST_TLP_UNITS,
    'a window has room for the largest TLP',
  );
  assert(all.queueBytes >= LARGEST_TLP_BYTES, 'a queue has room for the largest TLP');
  return all;
}

/** 4 KiB of payload. */
const LARGEST_TLP_UNITS = 256;
const LARGEST_TLP_BYTES = 16 * LARGEST_TLP_UNITS + 20;
