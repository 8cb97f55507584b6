/** A TRANSFER_TO_HOST_2D (virtio 1.2, 5.7.6.8): pieces of host memory to pieces of rows, by DMA. */
import type { Nanos } from '#base/units';
import type { DmaEngine } from '#pcie/endpoint-dma';
import { type DmaClient, DmaStatus } from '#pcie/endpoint-transfer';
import * as reg from './virtio-gpu-registers.ts';
import type { GpuResource, Rect } from './virtio-gpu-resources.ts';

/** Pieces read at once. */
const MAX_PIECES = 64;

/** One transfer at a time. */
export class GpuTransfer implements DmaClient {
  readonly #dma: DmaEngine;
  readonly #channel: number;
  readonly #done: (now: Nanos, answer: reg.Response) => void;
  /** Of the transfer under way. */
  #resource: GpuResource | undefined;
  #rect: Rect = { x: 0, y: 0, width: 0, height: 0 };
  /** Of the rectangle's first pixel in the backing. */
  #offset = 0;
  #row = 0;
  /** Bytes of `#row` that were asked for. */
  #rowBytes = 0;
  #outstanding = 0;
  #failed = false;
  /** Pieces are being asked for. */
  #moving = false;

  /** `done` is told the answer to each transfer that was started and not forgotten. */
  constructor(dma: DmaEngine, channel: number, done: (now: Nanos, answer: reg.Response) => void) {
    this.#dma = dma;
    this.#channel = channel;
    this.#done = done;
  }

  /** From byte `offset` of the resource's backing on to the pixels of `rect`; `done` may be told at once. */
  start(now: Nanos, resource: GpuResource | undefined, rect: Rect, offset: number): void {
    if (resource === undefined) {
      this.#done(now, reg.Response.ERR_INVALID_RESOURCE_ID);
      return;
    }
    // Rows lie in the backing as far apart as in the resource.
    const lastByte = offset + resource.strideBytes * (rect.height - 1) + 4 * rect.width;
    if (!resource.covers(rect)) {
      this.#done(now, reg.Response.ERR_INVALID_PARAMETER);
    } else if (resource.backing === undefined || lastByte > resource.backing.bytes) {
      this.#done(now, reg.Response.ERR_UNSPEC);
    } else {
      // Whole rows are one piece, wherever the backing is.
      const isWhole = rect.width === resource.width;
      this.#rect = isWhole ? { ...rect, width: rect.width * rect.height, height: 1 } : rect;
      this.#resource = resource;
      this.#offset = offset;
      this.#row = 0;
      this.#rowBytes = 0;
      this.#outstanding = 0;
      this.#failed = false;
      this.#move(now);
    }
  }

  /** What is under way is not finished. */
  forget(): void {
    this.#resource = undefined;
  }

  /** A piece has come, or could not be read. */
  dmaDone(now: Nanos, _cookie: number, status: DmaStatus): void {
    this.#outstanding--;
    if (status !== DmaStatus.OK) this.#failed = true;
    this.#move(now);
  }

  /** Asks for pieces, a bounded number at a time; done when all have come. */
  #move(now: Nanos): void {
    const resource = this.#resource;
    // A read may end within its call: the loop that is already running goes on.
    if (this.#moving || resource === undefined) return;
    this.#moving = true;
    while (this.#resource === resource && !this.#failed && this.#outstanding < MAX_PIECES) {
      if (this.#row === this.#rect.height) break;
      this.#readPiece(now, resource);
    }
    this.#moving = false;
    if (this.#resource !== resource || this.#outstanding > 0) return;
    this.#resource = undefined;
    this.#done(now, this.#failed ? reg.Response.ERR_UNSPEC : reg.Response.OK_NODATA);
  }

  #readPiece(now: Nanos, resource: GpuResource): void {
    const { backing } = resource;
    if (backing === undefined) {
      this.#failed = true;
      return;
    }
    const rect = this.#rect;
    const rowBytes = 4 * rect.width;
    const from = this.#offset + resource.strideBytes * this.#row + this.#rowBytes;
    const to = resource.strideBytes * (rect.y + this.#row) + 4 * rect.x + this.#rowBytes;
    const piece = backing.find(from);
    const inPiece = from - (backing.start[piece] as number);
    const left = (backing.start[piece + 1] as number) - from;
    const bytes = Math.min(left, rowBytes - this.#rowBytes);
    this.#rowBytes += bytes;
    if (this.#rowBytes === rowBytes) {
      this.#row++;
      this.#rowBytes = 0;
    }
    this.#outstanding++;
    const address = (backing.address[piece] as number) + inPiece;
    this.#dma.read(now, this.#channel, address, resource.pixels, to, bytes, this, 0);
  }
}
