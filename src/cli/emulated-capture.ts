/**
 * A capture of an emulation, as `dxpu capture` writes them of a live host: TLPs as the host's end of the
 * link has them, from its start on. Times are virtual ns since then.
 */
import { type LinkTap, TapDirection } from '#fabric/link-options';
import { encodeHeader, encodeStatistics, packetRoom, writePacket } from './pcapng.ts';
import { PendingFile } from './whole-file.ts';

const BUFFER_BYTES = 1 << 20;
const MOST_TLP_BYTES = 4116;
const TWO_TO_32 = 0x1_0000_0000;

export class EmulatedCapture {
  readonly #file: PendingFile;
  readonly #buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  #used = 0;
  #lastNs = 0;
  /** TLPs captured so far, and those of them before the run began. */
  count = 0;
  setUp = 0;

  /** The file is a `PendingFile`. */
  constructor(file: string) {
    this.#file = new PendingFile(file);
    this.#file.add(encodeHeader('emulated host slot 0', 'dxpu emulate', { inUse: false }));
  }

  readonly tap: LinkTap = (now, direction, slot, bytes, offset, length) => {
    if (this.#used + packetRoom(MOST_TLP_BYTES) > BUFFER_BYTES) this.#flush();
    const timeNs = Math.round(now);
    this.#used = writePacket(
      this.#buffer,
      this.#used,
      Math.floor(timeNs / TWO_TO_32),
      timeNs % TWO_TO_32,
      direction === TapDirection.IN,
      slot,
      0,
      bytes,
      offset,
      length,
    );
    this.#lastNs = timeNs;
    this.count += 1;
  };

  /** The run begins. */
  readonly begun = (): void => {
    this.setUp = this.count;
  };

  end(): void {
    this.#flush();
    this.#file.add(encodeStatistics(BigInt(this.#lastNs), this.count, 0));
    this.#file.end();
  }

  #flush(): void {
    this.#file.add(this.#buffer.subarray(0, this.#used));
    this.#used = 0;
  }
}
