/**
 * HELLO and HELLO-ACK, which begin or resume a session on a connection.
 *
 *      8 protocol version (16) · 10 kind of end (8) · 11 bytes of id (8)
 *     12 flags: 1 the session is to be resumed
 *     16 session id 52:32 · 20 session id 31:0
 *     24 next sequence expected from the reader
 *     28 largest frame taken · 32 bytes, 36 frames of the writer's replay buffer
 *     40 credit limits, 6 × 32
 *     64 id, padded to 4 bytes
 */
import { MIN_MAX_FRAME_BYTES } from './frame-bounds.ts';
import type { PeerIdentity } from './transport.ts';

export const PROTOCOL_VERSION = 1;

const FIXED_BYTES = 64;
const FLAG_RESUME = 1;
const MAX_ID_BYTES = 255;

export interface Hello {
  readonly version: number;
  readonly identity: PeerIdentity;
  readonly resume: boolean;
  readonly sessionId: number;
  readonly nextExpected: number;
  readonly maxFrameBytes: number;
  readonly replayBytes: number;
  readonly replayFrames: number;
  readonly limits: Uint32Array;
}

/** A whole HELLO or HELLO-ACK frame. `frameWord` is its first double word. */
export function encodeHello(frameWord: number, hello: Hello): Uint8Array {
  const id = new TextEncoder().encode(hello.identity.id).subarray(0, MAX_ID_BYTES);
  const bytes = new Uint8Array(FIXED_BYTES + ((id.length + 3) & ~3));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, frameWord);
  view.setUint32(4, bytes.length);
  view.setUint16(8, hello.version);
  view.setUint8(10, hello.identity.kind === 'host' ? 0 : 1);
  view.setUint8(11, id.length);
  view.setUint32(12, hello.resume ? FLAG_RESUME : 0);
  view.setUint32(16, Math.floor(hello.sessionId / 0x1_0000_0000));
  view.setUint32(20, hello.sessionId >>> 0);
  view.setUint32(24, hello.nextExpected);
  view.setUint32(28, hello.maxFrameBytes);
  view.setUint32(32, hello.replayBytes);
  view.setUint32(36, hello.replayFrames);
  for (let index = 0; index < 6; index++) {
    view.setUint32(40 + 4 * index, hello.limits[index] as number);
  }
  bytes.set(id, FIXED_BYTES);
  return bytes;
}

/** Reads what `encodeHello` wrote; `undefined` if a field is out of range. */
export function decodeHello(view: DataView, at: number, length: number): Hello | undefined {
  if (length < 12) return undefined;
  const version = view.getUint16(at + 8);
  // Another version may lay out the rest otherwise; the answer needs nothing of it.
  if (version !== PROTOCOL_VERSION) return { ...UNKNOWN, version };
  if (length < FIXED_BYTES) return undefined;
  const kind = view.getUint8(at + 10);
  const idBytes = view.getUint8(at + 11);
  const flags = view.getUint32(at + 12);
  const sessionHi = view.getUint32(at + 16);
  if (kind > 1 || flags > FLAG_RESUME || sessionHi > 0x1f_ffff) return undefined;
  if (FIXED_BYTES + ((idBytes + 3) & ~3) !== length) return undefined;
  const sessionId = sessionHi * 0x1_0000_0000 + view.getUint32(at + 20);
  if (sessionId === 0) return undefined;
  const maxFrameBytes = view.getUint32(at + 28);
  const replayBytes = view.getUint32(at + 32);
  const replayFrames = view.getUint32(at + 36);
  if (maxFrameBytes < MIN_MAX_FRAME_BYTES || replayBytes < maxFrameBytes || replayFrames === 0) {
    return undefined;
  }
  const limits = new Uint32Array(6);
  for (let index = 0; index < 6; index++) limits[index] = view.getUint32(at + 40 + 4 * index);
  const id = new TextDecoder().decode(
    new Uint8Array(view.buffer, view.byteOffset + at + FIXED_BYTES, idBytes),
  );
  return {
    version,
    identity: { kind: kind === 0 ? 'host' : 'box', id },
    resume: flags === FLAG_RESUME,
    sessionId,
    nextExpected: view.getUint32(at + 24),
    maxFrameBytes,
    replayBytes,
    replayFrames,
    limits,
  };
}

const UNKNOWN: Hello = {
  version: 0,
  identity: { kind: 'host', id: '' },
  resume: false,
  sessionId: 0,
  nextExpected: 0,
  maxFrameBytes: 0,
  replayBytes: 0,
  replayFrames: 0,
  limits: new Uint32Array(6),
};
