import type { Nanos } from '#base/units';
import type { TransportUser } from '#fabric/transport';

/** A frame as far as a transport looks: a length at byte 4, and a body made of `seed`. */
export function frameOf(bytes: number, seed: number): Uint8Array {
  const frame = Buffer.alloc(bytes, seed & 0xff);
  frame.writeUInt32BE(bytes, 4);
  return new Uint8Array(frame);
}

/** Keeps what a transport tells it. */
export class FrameRecorder implements TransportUser {
  readonly frames: Uint8Array[] = [];
  readonly sources: Uint8Array[] = [];
  readonly events: string[] = [];
  onFrame: (() => void) | undefined;

  frame(_now: Nanos, bytes: Uint8Array, offset: number, length: number): void {
    this.frames.push(bytes.slice(offset, offset + length));
    this.sources.push(bytes);
    this.events.push('frame');
    this.onFrame?.();
  }

  turnEnd(): void {
    this.events.push('turnEnd');
  }

  writable(): void {
    this.events.push('writable');
  }

  closed(_now: Nanos, reason: string): void {
    this.events.push(`closed: ${reason}`);
  }
}
