import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import type { Frame } from '#fabric/frame';
import { decoded } from './fake-transport.ts';

/** A socket whose other end is this test. */
export class FakeSocket extends Duplex {
  readonly written: Buffer[] = [];
  /** Holds back what is written until set free. */
  stuck: (() => void)[] | undefined;

  setNoDelay(): this {
    return this;
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(Buffer.from(chunk));
    if (this.stuck === undefined) done();
    else this.stuck.push(done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this._write(Buffer.concat(chunks.map((part) => part.chunk)), '', done);
  }

  /** What was written, as frames. */
  frames(): Frame[] {
    const stream = new Uint8Array(Buffer.concat(this.written));
    const view = new DataView(stream.buffer);
    const frames: Frame[] = [];
    for (let at = 0; at < stream.length; ) {
      const length = view.getUint32(at + 4);
      frames.push(decoded(stream, at, length));
      at += length;
    }
    return frames;
  }

  asSocket(): Socket {
    return this as unknown as Socket;
  }
}

/** Once all that is due in this turn of the event loop has run. */
export const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
