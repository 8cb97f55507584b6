/**
 * The requests of a virtio-gpu (virtio 1.2, 5.7.6) and their answers: one at a time on each queue. What
 * is wrong in itself is answered with the error of 5.7.6.7.
 */
import type { Nanos } from '#base/units';
import type { DmaEngine } from '#pcie/endpoint-dma';
import { EDID_BYTES } from './edid.ts';
import * as reg from './virtio-gpu-registers.ts';
import { type GpuResources, MAX_BACKING_ENTRIES, type Rect } from './virtio-gpu-resources.ts';
import { GpuTransfer } from './virtio-gpu-transfer.ts';
import type { Virtqueue } from './virtqueue.ts';

/** What waits for `gather` on the control queue. */
const Stage = { REQUEST: 0, ENTRIES: 1 } as const;
type Stage = (typeof Stage)[keyof typeof Stage];

/** The request that a queue has handed over, and its answer. */
class Exchange {
  readonly request = new Uint8Array(reg.LONGEST_REQUEST_BYTES);
  readonly requestView = new DataView(this.request.buffer);
  readonly response: Uint8Array;
  readonly responseView: DataView;
  stage: Stage = Stage.REQUEST;

  constructor(responseBytes: number) {
    this.response = new Uint8Array(responseBytes);
    this.responseView = new DataView(this.response.buffer);
  }
}

/** The one display. */
export interface GpuDisplay {
  readonly width: number;
  readonly height: number;
  readonly edid: Uint8Array;
}

export class GpuRequests {
  readonly #display: GpuDisplay;
  readonly #resources: GpuResources;
  readonly #transfer: GpuTransfer;
  /** By queue. */
  readonly #exchanges = [new Exchange(reg.RESP_EDID_BYTES), new Exchange(reg.HDR_BYTES)];
  /** Of RESOURCE_ATTACH_BACKING; made when first needed. */
  #entries = new Uint8Array(0);

  constructor(dma: DmaEngine, control: Virtqueue, display: GpuDisplay, resources: GpuResources) {
    this.#display = display;
    this.#resources = resources;
    this.#transfer = new GpuTransfer(dma, control.channel, (now, answer) =>
      this.#answer(now, control, answer),
    );
  }

  /** Asks for as much of the request as any has, but for lists. */
  ready(now: Nanos, queue: Virtqueue): void {
    const exchange = this.#exchanges[queue.index] as Exchange;
    exchange.stage = Stage.REQUEST;
    exchange.request.fill(0);
    const bytes = Math.min(queue.readableBytes, exchange.request.length);
    queue.gather(now, 0, exchange.request, 0, bytes);
  }

  /** What was asked for is there: answers, now or later. `hasEdid`: the driver has accepted that feature. */
  gathered(now: Nanos, queue: Virtqueue, hasEdid: boolean): void {
    const exchange = this.#exchanges[queue.index] as Exchange;
    if (exchange.stage === Stage.ENTRIES) {
      const id = exchange.requestView.getUint32(reg.BACKING_RESOURCE, true);
      const entries = exchange.requestView.getUint32(reg.ATTACH_NR_ENTRIES, true);
      const view = new DataView(this.#entries.buffer);
      this.#answer(now, queue, this.#resources.attach(id, entries, view));
      return;
    }
    const type = exchange.requestView.getUint32(reg.HDR_TYPE, true);
    const needed = reg.REQUEST_BYTES.get(type);
    if (needed === undefined) this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    else if (queue.readableBytes < needed) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_PARAMETER);
    } else if (queue.index === reg.CURSOR_QUEUE) this.#cursor(now, queue, exchange, type);
    else this.#control(now, queue, exchange, type, hasEdid);
  }

  /** What is under way is not answered. */
  forget(): void {
    this.#transfer.forget();
  }

  scrub(): void {
    for (const { request, response } of this.#exchanges) {
      request.fill(0);
      response.fill(0);
    }
    this.#entries.fill(0);
  }

  #control(now: Nanos, queue: Virtqueue, exchange: Exchange, type: number, hasEdid: boolean): void {
    const { requestView: view } = exchange;
    const resources = this.#resources;
    const u32 = (at: number): number => view.getUint32(at, true);
    switch (type) {
      case reg.Command.GET_DISPLAY_INFO:
        this.#answerDisplayInfo(now, queue, exchange);
        break;
      case reg.Command.GET_EDID:
        this.#answerEdid(now, queue, exchange, hasEdid);
        break;
      case reg.Command.RESOURCE_CREATE_2D:
        this.#answer(
          now,
          queue,
          resources.create(
            u32(reg.CREATE_2D_RESOURCE),
            u32(reg.CREATE_2D_FORMAT),
            u32(reg.CREATE_2D_WIDTH),
            u32(reg.CREATE_2D_HEIGHT),
          ),
        );
        break;
      case reg.Command.RESOURCE_UNREF:
        this.#answer(now, queue, resources.destroy(u32(reg.UNREF_RESOURCE)));
        break;
      case reg.Command.SET_SCANOUT: {
        const rect = rectAt(view, reg.SET_SCANOUT_RECT);
        const isThere = u32(reg.SET_SCANOUT_SCANOUT) === 0;
        const answer = isThere
          ? resources.setScanout(u32(reg.SET_SCANOUT_RESOURCE), rect)
          : reg.Response.ERR_INVALID_SCANOUT_ID;
        this.#answer(now, queue, answer);
        break;
      }
      case reg.Command.RESOURCE_FLUSH: {
        const rect = rectAt(view, reg.FLUSH_RECT);
        this.#answer(now, queue, resources.flush(u32(reg.FLUSH_RESOURCE), rect));
        break;
      }
      case reg.Command.TRANSFER_TO_HOST_2D:
        this.#transfer.start(
          now,
          resources.get(u32(reg.TRANSFER_RESOURCE)),
          rectAt(view, reg.TRANSFER_RECT),
          u32(reg.TRANSFER_OFFSET + 4) * 0x1_0000_0000 + u32(reg.TRANSFER_OFFSET),
        );
        break;
      case reg.Command.RESOURCE_ATTACH_BACKING:
        this.#startAttach(now, queue, exchange);
        break;
      case reg.Command.RESOURCE_DETACH_BACKING:
        this.#answer(now, queue, resources.detach(u32(reg.BACKING_RESOURCE)));
        break;
      case reg.Command.GET_CAPSET_INFO:
      case reg.Command.GET_CAPSET:
        // There are num_capsets of them: none.
        this.#answer(now, queue, reg.Response.ERR_INVALID_PARAMETER);
        break;
      default:
        this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    }
  }

  #cursor(now: Nanos, queue: Virtqueue, exchange: Exchange, type: number): void {
    const { requestView: view } = exchange;
    const u32 = (at: number): number => view.getUint32(at, true);
    if (type !== reg.Command.UPDATE_CURSOR && type !== reg.Command.MOVE_CURSOR) {
      this.#answer(now, queue, reg.Response.ERR_UNSPEC);
      return;
    }
    if (u32(reg.CURSOR_SCANOUT) !== 0) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_SCANOUT_ID);
      return;
    }
    let answer: reg.Response = reg.Response.OK_NODATA;
    if (type === reg.Command.UPDATE_CURSOR) {
      const id = u32(reg.CURSOR_RESOURCE);
      answer = this.#resources.setCursor(id, u32(reg.CURSOR_HOT_X), u32(reg.CURSOR_HOT_Y));
    }
    if (answer === reg.Response.OK_NODATA) {
      // Left of or above the display is negative.
      this.#resources.moveCursor(
        view.getInt32(reg.CURSOR_X, true),
        view.getInt32(reg.CURSOR_Y, true),
      );
    }
    this.#answer(now, queue, answer);
  }

  #answerDisplayInfo(now: Nanos, queue: Virtqueue, exchange: Exchange): void {
    const { response, responseView: view } = exchange;
    response.fill(0, 0, reg.DISPLAY_INFO_BYTES);
    view.setUint32(reg.DISPLAY_INFO_MODES + 8, this.#display.width, true);
    view.setUint32(reg.DISPLAY_INFO_MODES + 12, this.#display.height, true);
    view.setUint32(reg.DISPLAY_INFO_MODES + reg.DISPLAY_ONE_ENABLED, 1, true);
    this.#answer(now, queue, reg.Response.OK_DISPLAY_INFO, reg.DISPLAY_INFO_BYTES);
  }

  #answerEdid(now: Nanos, queue: Virtqueue, exchange: Exchange, hasEdid: boolean): void {
    const { requestView, response, responseView: view } = exchange;
    if (!hasEdid) {
      this.#answer(now, queue, reg.Response.ERR_UNSPEC);
    } else if (requestView.getUint32(reg.GET_EDID_SCANOUT, true) !== 0) {
      this.#answer(now, queue, reg.Response.ERR_INVALID_SCANOUT_ID);
    } else {
      response.fill(0, 0, reg.RESP_EDID_BYTES);
      view.setUint32(reg.EDID_SIZE, EDID_BYTES, true);
      response.set(this.#display.edid, reg.EDID_DATA);
      this.#answer(now, queue, reg.Response.OK_EDID, reg.RESP_EDID_BYTES);
    }
  }

  #startAttach(now: Nanos, queue: Virtqueue, exchange: Exchange): void {
    const id = exchange.requestView.getUint32(reg.BACKING_RESOURCE, true);
    const entries = exchange.requestView.getUint32(reg.ATTACH_NR_ENTRIES, true);
    const bytes = reg.MEM_ENTRY_BYTES * entries;
    let answer = this.#resources.mayAttach(id, entries);
    if (answer === reg.Response.OK_NODATA && queue.readableBytes < reg.ATTACH_ENTRIES + bytes) {
      answer = reg.Response.ERR_INVALID_PARAMETER;
    }
    if (answer !== reg.Response.OK_NODATA) {
      this.#answer(now, queue, answer);
      return;
    }
    if (this.#entries.length === 0) {
      this.#entries = new Uint8Array(MAX_BACKING_ENTRIES * reg.MEM_ENTRY_BYTES);
    }
    exchange.stage = Stage.ENTRIES;
    queue.gather(now, reg.ATTACH_ENTRIES, this.#entries, 0, bytes);
  }

  /** Puts the header before what is in the response, and gives the request back. */
  #answer(now: Nanos, queue: Virtqueue, type: reg.Response, bytes: number = reg.HDR_BYTES): void {
    const { requestView, response, responseView: view } = this.#exchanges[queue.index] as Exchange;
    response.fill(0, 0, reg.HDR_BYTES);
    view.setUint32(reg.HDR_TYPE, type, true);
    const flags = requestView.getUint32(reg.HDR_FLAGS, true);
    if ((flags & reg.VIRTIO_GPU_FLAG_FENCE) !== 0) {
      view.setUint32(reg.HDR_FLAGS, reg.VIRTIO_GPU_FLAG_FENCE, true);
      for (let at = reg.HDR_FENCE_ID; at <= reg.HDR_RING_IDX; at += 4) {
        view.setUint32(at, requestView.getUint32(at, true), true);
      }
    }
    queue.answer(now, response, bytes);
  }
}

function rectAt(view: DataView, at: number): Rect {
  return {
    x: view.getUint32(at, true),
    y: view.getUint32(at + 4, true),
    width: view.getUint32(at + 8, true),
    height: view.getUint32(at + 12, true),
  };
}
