/**
 * The methods of the control socket for captures: `capture` streams the TLPs of one slot,
 * `end-capture` ends a stream by its id, so that it still gives its result.
 *
 * TLPs go in batches: an event each would slow down the traffic it looks at.
 */
import { z } from 'zod';
import { DxpuError } from '#base/errors';
import type { SlotCounters } from '#fabric/counters';
import { TlpKind } from '#pcie/tlp';
import type { ControlCall, ControlHandler } from './control-server.ts';
import { packetRoom, writePacket } from './pcapng.ts';
import { parseParams } from './daemon-process.ts';
import type { Taps } from '#agent/daemon/taps';

const captureParams = z.strictObject({
  slot: z.int().min(0).max(65535),
  count: z.int().min(1).optional(),
  durationMs: z.number().min(0).optional(),
});
type CaptureParams = z.infer<typeof captureParams>;

const endParams = z.strictObject({ id: z.int() });

/** The first event of the stream. */
export interface CaptureBegin {
  /** For `end-capture`. */
  readonly id: number;
  /** Whether the host has written to the function's memory already. */
  readonly inUse: boolean;
  /** The function that is captured, where there is one: its config space in hexadecimal. */
  readonly function?: { readonly bdf: number; readonly configSpace: string };
}

/** Every further event. */
export interface CaptureBatch {
  readonly packets: number;
  /** Lost so far because the reader was too slow. */
  readonly dropped: number;
  /** Packet blocks of a pcapng file, in base64. */
  readonly blocks: string;
}

export interface CaptureResult {
  readonly captured: number;
  /** Lost because the reader was too slow. */
  readonly dropped: number;
}

/** A batch goes out when it has this much, */
const BATCH_BYTES = 96 << 10;
/** or is this old. */
const BATCH_AGE_MS = 10;

export interface CaptureSource {
  readonly taps: Taps;
  /** Fails when there is no such slot. */
  checkSlot(slot: number): void;
  counters(slot: number): SlotCounters;
  /** The function in the slot, if any. */
  readFunction(slot: number): CaptureBegin['function'] | Promise<CaptureBegin['function']>;
}

export function captureHandlers(
  source: CaptureSource,
): Readonly<Record<'capture' | 'end-capture', ControlHandler>> {
  const running = new Map<number, () => void>();
  let lastId = 0;
  return {
    capture: async (given, call) => {
      const params = parseParams(captureParams, given);
      source.checkSlot(params.slot);
      const captured = await source.readFunction(params.slot);
      const id = ++lastId;
      const inUse = isInUse(source.counters(params.slot));
      const begin = { id, inUse, ...(captured === undefined ? {} : { function: captured }) };
      call.emit(begin satisfies CaptureBegin);
      const stream = new CaptureStream(params, call);
      running.set(id, stream.end);
      try {
        return await stream.run(source.taps);
      } finally {
        running.delete(id);
      }
    },
    'end-capture': (given) => {
      const { id } = parseParams(endParams, given);
      const end = running.get(id);
      if (end === undefined) throw new DxpuError('not_found', `there is no capture ${id} here`);
      end();
    },
  };
}

/** Only writes to its memory take a function away from what its config space says of it. */
function isInUse({ down }: SlotCounters): boolean {
  return (down[TlpKind.MWr32] ?? 0) + (down[TlpKind.MWr64] ?? 0) > 0;
}

class CaptureStream {
  readonly #params: CaptureParams;
  readonly #call: ControlCall;
  #batch = Buffer.allocUnsafe(BATCH_BYTES + packetRoom(4116));
  #batchBytes = 0;
  #batchPackets = 0;
  #batchTimer: NodeJS.Timeout | undefined;
  #captured = 0;
  #dropped = 0;
  /** Lost since the last packet that went out. */
  #gap = 0;
  #ended = false;
  #finish: () => void = () => {};

  constructor(params: CaptureParams, call: ControlCall) {
    this.#params = params;
    this.#call = call;
  }

  run(taps: Taps): Promise<CaptureResult> {
    const { slot, count, durationMs } = this.#params;
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const remove = taps.add(slot, (timeHi, timeLo, up, bytes, offset, length) => {
        if (this.#ended) return;
        this.#add(timeHi, timeLo, up, bytes, offset, length);
        // Not from within the tap: ending takes the tap away.
        if (this.#captured + this.#batchPackets === count) {
          this.#ended = true;
          setImmediate(() => this.#finish());
        }
      });
      this.#finish = () => {
        this.#finish = () => {};
        this.#ended = true;
        clearTimeout(timer);
        this.#call.signal.removeEventListener('abort', this.end);
        remove();
        this.#flush();
        resolve({ captured: this.#captured, dropped: this.#dropped });
      };
      this.#call.signal.addEventListener('abort', this.end);
      if (this.#call.signal.aborted) this.end();
      if (durationMs !== undefined) timer = setTimeout(this.end, durationMs);
    });
  }

  readonly end = (): void => this.#finish();

  #add(
    timeHi: number,
    timeLo: number,
    up: boolean,
    bytes: Uint8Array,
    offset: number,
    length: number,
  ): void {
    const lostBefore = this.#batchPackets === 0 ? this.#gap : 0;
    const { slot } = this.#params;
    this.#batchBytes = writePacket(
      this.#batch,
      this.#batchBytes,
      timeHi,
      timeLo,
      up,
      slot,
      lostBefore,
      bytes,
      offset,
      length,
    );
    this.#batchPackets++;
    if (this.#batchBytes >= BATCH_BYTES) this.#flush();
    else this.#batchTimer ??= setTimeout(() => this.#flush(), BATCH_AGE_MS);
  }

  #flush(): void {
    clearTimeout(this.#batchTimer);
    this.#batchTimer = undefined;
    const packets = this.#batchPackets;
    if (packets === 0) return;
    const blocks = this.#batch.toString('base64', 0, this.#batchBytes);
    const batch: CaptureBatch = { packets, dropped: this.#dropped, blocks };
    this.#batchBytes = 0;
    this.#batchPackets = 0;
    if (this.#call.emit(batch)) {
      this.#captured += packets;
      this.#gap = 0;
    } else {
      this.#dropped += packets;
      this.#gap += packets;
    }
  }
}
