/**
 * What a virtio-gpu driver makes in the device: 2D resources with their backing in host memory, the
 * scanout, the cursor. Synchronous and bounded; nothing here touches the host's memory.
 *
 * Who owns what: `GpuResources` owns every pixel. A resource holds what was transferred to it. The
 * scanout has pixels of its own, copied when it is set and when its resource is flushed, so that what
 * is seen is what was flushed; so has the cursor.
 */
import { HOST_ADDRESS_END } from './device-model.ts';
import { MAX_SHOWN_PIXELS, opaqueRgba, type PixelLayout, type Screenshot } from './screenshot.ts';
import { CURSOR_PIXELS, Response } from './virtio-gpu-registers.ts';

const PIXEL_BYTES = 4;

/** enum virtio_gpu_formats (5.7.6.8): the name says the bytes of a pixel in the order of memory. */
const FORMATS: ReadonlyMap<number, PixelLayout> = new Map<number, PixelLayout>([
  [1, { blue: 0, green: 1, red: 2, alpha: 3 }], // B8G8R8A8
  [2, { blue: 0, green: 1, red: 2 }], // B8G8R8X8
  [3, { alpha: 0, red: 1, green: 2, blue: 3 }], // A8R8G8B8
  [4, { red: 1, green: 2, blue: 3 }], // X8R8G8B8
  [67, { red: 0, green: 1, blue: 2, alpha: 3 }], // R8G8B8A8
  [68, { blue: 1, green: 2, red: 3 }], // X8B8G8R8
  [121, { alpha: 0, blue: 1, green: 2, red: 3 }], // A8B8G8R8
  [134, { red: 0, green: 1, blue: 2 }], // R8G8B8X8
]);

export const MAX_RESOURCES = 1024;
export const MAX_DIMENSION = 16384;
/** Entries of one resource's backing, and of all backings together. */
export const MAX_BACKING_ENTRIES = 16384;
export const MAX_ALL_BACKING_ENTRIES = 65536;

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

/** Pieces of host memory, one behind the other. */
class Backing {
  readonly address: Float64Array;
  /** Where each piece begins in the whole, and at the end how long that is. */
  readonly start: Float64Array;

  constructor(entries: number) {
    this.address = new Float64Array(entries);
    this.start = new Float64Array(entries + 1);
  }

  get bytes(): number {
    return this.start[this.start.length - 1] as number;
  }

  /** The piece that has byte `offset` of the whole, which is below `bytes`. */
  find(offset: number): number {
    let low = 0;
    let high = this.address.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.start[middle] as number) <= offset) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

export class GpuResource {
  readonly id: number;
  readonly width: number;
  readonly height: number;
  readonly layout: PixelLayout;
  readonly pixels: Uint8Array;
  backing: Backing | undefined;

  constructor(id: number, width: number, height: number, layout: PixelLayout) {
    this.id = id;
    this.width = width;
    this.height = height;
    this.layout = layout;
    this.pixels = new Uint8Array(PIXEL_BYTES * width * height);
  }

  get strideBytes(): number {
    return PIXEL_BYTES * this.width;
  }

  covers({ x, y, width, height }: Rect): boolean {
    return width > 0 && height > 0 && x + width <= this.width && y + height <= this.height;
  }
}

interface Scanout {
  readonly resource: GpuResource;
  readonly rect: Rect;
  readonly pixels: Uint8Array;
}

interface CursorImage {
  readonly layout: PixelLayout;
  readonly pixels: Uint8Array;
  readonly hotX: number;
  readonly hotY: number;
}

export class GpuResources {
  readonly #memoryBytes: number;
  readonly #byId = new Map<number, GpuResource>();
  #usedBytes = 0;
  #backingEntries = 0;
  #scanout: Scanout | undefined;
  #cursor: CursorImage | undefined;
  #cursorX = 0;
  #cursorY = 0;

  /** `memoryBytes` bounds the pixels of all resources together. */
  constructor(memoryBytes: number) {
    this.#memoryBytes = memoryBytes;
  }

  /** All as at power-on. */
  clear(): void {
    this.#byId.clear();
    this.#usedBytes = 0;
    this.#backingEntries = 0;
    this.#scanout = undefined;
    this.#cursor = undefined;
    this.#cursorX = 0;
    this.#cursorY = 0;
  }

  get(id: number): GpuResource | undefined {
    return this.#byId.get(id);
  }

  create(id: number, format: number, width: number, height: number): Response {
    const layout = FORMATS.get(format);
    if (id === 0 || this.#byId.has(id)) return Response.ERR_INVALID_RESOURCE_ID;
    if (layout === undefined) return Response.ERR_INVALID_PARAMETER;
    if (width === 0 || height === 0 || width > MAX_DIMENSION || height > MAX_DIMENSION) {
      return Response.ERR_INVALID_PARAMETER;
    }
    const bytes = PIXEL_BYTES * width * height;
    if (this.#byId.size === MAX_RESOURCES || this.#usedBytes + bytes > this.#memoryBytes) {
      return Response.ERR_OUT_OF_MEMORY;
    }
    this.#byId.set(id, new GpuResource(id, width, height, layout));
    this.#usedBytes += bytes;
    return Response.OK_NODATA;
  }

  /** A scanout of it ends. */
  destroy(id: number): Response {
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    this.#release(resource);
    this.#byId.delete(id);
    this.#usedBytes -= resource.pixels.length;
    if (this.#scanout?.resource === resource) this.#scanout = undefined;
    return Response.OK_NODATA;
  }

  /** What `attach` would answer without looking at the entries. */
  mayAttach(id: number, entries: number): Response {
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    // A resource has one backing: it is detached before another one comes.
    if (resource.backing !== undefined) return Response.ERR_UNSPEC;
    if (entries > MAX_BACKING_ENTRIES) return Response.ERR_INVALID_PARAMETER;
    if (this.#backingEntries + entries > MAX_ALL_BACKING_ENTRIES) return Response.ERR_OUT_OF_MEMORY;
    return Response.OK_NODATA;
  }

  /** Only after `mayAttach`. `view` has the `entries` mem entries from its start. */
  attach(id: number, entries: number, view: DataView): Response {
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    const backing = new Backing(entries);
    let bytes = 0;
    for (let index = 0; index < entries; index++) {
      const at = 16 * index;
      const address = view.getUint32(at + 4, true) * 0x1_0000_0000 + view.getUint32(at, true);
      const length = view.getUint32(at + 8, true);
      if (address + length >= HOST_ADDRESS_END) return Response.ERR_INVALID_PARAMETER;
      backing.address[index] = address;
      backing.start[index] = bytes;
      bytes += length;
    }
    backing.start[entries] = bytes;
    resource.backing = backing;
    this.#backingEntries += entries;
    return Response.OK_NODATA;
  }

  detach(id: number): Response {
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    this.#release(resource);
    return Response.OK_NODATA;
  }

  /** Resource 0 turns the display off. What it shows is what is in the resource now. */
  setScanout(id: number, rect: Rect): Response {
    if (id === 0) {
      this.#scanout = undefined;
      return Response.OK_NODATA;
    }
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    if (!resource.covers(rect)) return Response.ERR_INVALID_PARAMETER;
    if (rect.width * rect.height > MAX_SHOWN_PIXELS) return Response.ERR_OUT_OF_MEMORY;
    const bytes = PIXEL_BYTES * rect.width * rect.height;
    const before = this.#scanout?.pixels;
    const pixels = before?.length === bytes ? before : new Uint8Array(bytes);
    this.#scanout = { resource, rect, pixels };
    show(this.#scanout, rect);
    return Response.OK_NODATA;
  }

  flush(id: number, rect: Rect): Response {
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    if (!resource.covers(rect)) return Response.ERR_INVALID_PARAMETER;
    if (this.#scanout?.resource === resource) show(this.#scanout, rect);
    return Response.OK_NODATA;
  }

  /** Resource 0 hides the cursor. */
  setCursor(id: number, hotX: number, hotY: number): Response {
    if (id === 0) {
      this.#cursor = undefined;
      return Response.OK_NODATA;
    }
    const resource = this.#byId.get(id);
    if (resource === undefined) return Response.ERR_INVALID_RESOURCE_ID;
    if (resource.width !== CURSOR_PIXELS || resource.height !== CURSOR_PIXELS) {
      return Response.ERR_INVALID_PARAMETER;
    }
    this.#cursor = { layout: resource.layout, pixels: resource.pixels.slice(), hotX, hotY };
    return Response.OK_NODATA;
  }

  /** Where the hot spot is, from the scanout's top left. */
  moveCursor(x: number, y: number): void {
    this.#cursorX = x;
    this.#cursorY = y;
  }

  screenshot(): Screenshot | undefined {
    const scanout = this.#scanout;
    if (scanout === undefined) return undefined;
    const { width, height } = scanout.rect;
    const { layout } = scanout.resource;
    const rgba = opaqueRgba(scanout.pixels, 0, PIXEL_BYTES * width, width, height, layout);
    if (this.#cursor !== undefined) this.#drawCursor(this.#cursor, rgba, width, height);
    return { width, height, rgba };
  }

  /** Over what is there; colours are premultiplied by alpha, without alpha they cover. */
  #drawCursor(cursor: CursorImage, rgba: Uint8Array, width: number, height: number): void {
    const { layout, pixels } = cursor;
    const left = this.#cursorX - cursor.hotX;
    const top = this.#cursorY - cursor.hotY;
    for (let row = Math.max(0, -top); row < CURSOR_PIXELS && top + row < height; row++) {
      for (let column = Math.max(0, -left); column < CURSOR_PIXELS; column++) {
        if (left + column >= width) break;
        const from = PIXEL_BYTES * (row * CURSOR_PIXELS + column);
        const to = PIXEL_BYTES * ((top + row) * width + left + column);
        const alpha = layout.alpha === undefined ? 255 : (pixels[from + layout.alpha] as number);
        rgba[to] = over(pixels[from + layout.red], alpha, rgba[to]);
        rgba[to + 1] = over(pixels[from + layout.green], alpha, rgba[to + 1]);
        rgba[to + 2] = over(pixels[from + layout.blue], alpha, rgba[to + 2]);
      }
    }
  }

  #release(resource: GpuResource): void {
    this.#backingEntries -= resource.backing?.address.length ?? 0;
    resource.backing = undefined;
  }
}

function over(colour: number | undefined, alpha: number, below: number | undefined): number {
  return Math.min(255, (colour ?? 0) + Math.round(((below ?? 0) * (255 - alpha)) / 255));
}

/** Copies what of `rect`, in the resource's coordinates, lies in the scanout. */
function show({ resource, rect: seen, pixels }: Scanout, rect: Rect): void {
  const left = Math.max(seen.x, rect.x);
  const right = Math.min(seen.x + seen.width, rect.x + rect.width);
  const top = Math.max(seen.y, rect.y);
  const bottom = Math.min(seen.y + seen.height, rect.y + rect.height);
  if (left >= right) return;
  const bytes = PIXEL_BYTES * (right - left);
  for (let y = top; y < bottom; y++) {
    const to = PIXEL_BYTES * ((y - seen.y) * seen.width + left - seen.x);
    const from = resource.strideBytes * y + PIXEL_BYTES * left;
    pixels.set(resource.pixels.subarray(from, from + bytes), to);
  }
}
