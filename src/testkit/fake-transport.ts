import { decodeFrame, Frame, FrameDecode } from '#fabric/frame';
import type { PeerIdentity, Transport } from '#fabric/transport';

/** A transport whose frames the test reads, to play the peer by hand. What is no frame fails the send. */
export class FakeTransport implements Transport {
  readonly peer: PeerIdentity;
  readonly sent: Frame[] = [];
  isClosed = false;

  constructor(peer: PeerIdentity) {
    this.peer = peer;
  }

  send(_now: number, bytes: Uint8Array, offset: number, length: number): boolean {
    this.sent.push(decoded(bytes, offset, length));
    return true;
  }

  close(): void {
    this.isClosed = true;
  }
}

export function decoded(bytes: Uint8Array, offset: number, length: number): Frame {
  const frame = new Frame();
  const decode = decodeFrame(new DataView(bytes.buffer), bytes, offset, length, frame);
  if (decode !== FrameDecode.OK) throw new Error(`no frame: decode ${decode}`);
  return frame;
}
