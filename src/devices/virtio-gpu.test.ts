/** The device through a soft host and a driver that was written from the specification alone. */
import { beforeEach, describe, expect, it } from 'vitest';
import { DisplayRig } from '#testkit/display-rig';
import {
  type BackingPiece,
  F_EDID,
  F_EVENT_IDX,
  F_INDIRECT_DESC,
  F_VERSION_1,
  type VirtioGpuDriver,
  type VirtioGpuDriverOptions,
} from '#testkit/virtio-gpu-driver';
import { createVirtioGpu, type VirtioGpuOptions } from './virtio-gpu.ts';

const UUID = '00112233-4455-6677-8899-aabbccddeeff';

let rig: DisplayRig;
let device: DisplayRig['device'];
let log: string[];

function plug(options: Partial<VirtioGpuOptions> = {}): void {
  log = [];
  device = createVirtioGpu({ uuid: UUID, log: (message) => log.push(message), ...options });
  rig = new DisplayRig(device);
}

beforeEach(() => plug());

const open = (options: VirtioGpuDriverOptions = {}): VirtioGpuDriver => rig.openVirtioGpu(options);

/** A picture in host memory, in pieces that do not follow each other. */
function backing(
  bytes: number,
  pieceBytes: number,
): {
  pieces: BackingPiece[];
  fill: (pixels: Uint8Array) => void;
} {
  const memory = rig.host.memory.alloc(2 * bytes + pieceBytes);
  const pieces: BackingPiece[] = [];
  const views: Uint8Array[] = [];
  for (let at = 0; at < bytes; at += pieceBytes) {
    const length = Math.min(pieceBytes, bytes - at);
    // Every other piece, last ones first.
    const from = 2 * (bytes - at) - length;
    pieces.push({ address: memory.address + from, bytes: length });
    views.push(memory.bytes.subarray(from, from + length));
  }
  const fill = (pixels: Uint8Array): void => {
    let at = 0;
    for (const view of views) {
      view.set(pixels.subarray(at, at + view.length));
      at += view.length;
    }
  };
  return { pieces, fill };
}

/** Bytes of a picture, no two rows alike. */
function picture(width: number, height: number, seed = 1): Uint8Array {
  return Uint8Array.from({ length: 4 * width * height }, (_, i) => {
    const row = Math.floor(i / (4 * width));
    return (i * 7 + row * 13 + seed * 31) & 0xff;
  });
}

/** B8G8R8A8 or B8G8R8X8 as RGBA, worked from the name of the format. */
function fromBgrx(pixels: Uint8Array): Uint8Array {
  const rgba = new Uint8Array(pixels.length);
  for (let i = 0; i < pixels.length; i += 4) {
    rgba.set([pixels[i + 2]!, pixels[i + 1]!, pixels[i]!, 255], i);
  }
  return rgba;
}

const same = (left: Uint8Array | undefined, right: Uint8Array): boolean =>
  left !== undefined && Buffer.compare(left, right) === 0;

describe('a driver', () => {
  it('finds the display, its size and a valid EDID', () => {
    plug({ width: 800, height: 600, model: 'test gpu' });
    const driver = open();
    expect(driver.features).toBe(
      F_EDID | F_INDIRECT_DESC | F_EVENT_IDX | F_VERSION_1 | (1n << 33n) | (1n << 36n),
    );
    expect(rig.run(driver.deviceConfig())).toEqual([0, 1, 0]);
    expect(rig.run(driver.displaySize())).toEqual([800, 600, 1]);
    const edid = rig.run(driver.edid());
    expect(edid.length).toBe(128);
    expect(edid.reduce((sum, byte) => sum + byte, 0) % 256).toBe(0);
    expect([...edid.subarray(0, 8)]).toEqual([0, 255, 255, 255, 255, 255, 255, 0]);
    expect(driver.interrupts).toBe(2);
  });

  it.each([
    ['with an event index and indirect tables', {}],
    ['without an event index', { features: F_VERSION_1 | F_INDIRECT_DESC }],
    ['with chains in the ring', { features: F_VERSION_1 | F_EVENT_IDX, queueSize: 8 }],
    ['with nothing but VERSION_1', { features: F_VERSION_1, queueSize: 4 }],
  ])('%s draws a picture, pixel for pixel', (_name, options) => {
    const driver = open(options);
    const [width, height] = [97, 61];
    const pixels = picture(width, height);
    const memory = backing(pixels.length, 1000);
    memory.fill(pixels);
    function* draw() {
      yield* driver.createResource(5, 2, width, height);
      yield* driver.attachBacking(5, memory.pieces);
      yield* driver.setScanout(5, [0, 0, width, height]);
      yield* driver.transfer(5, [0, 0, width, height], 0);
    }
    rig.run(draw());
    expect(device.screenshot()).toEqual({
      width,
      height,
      rgba: fromBgrx(new Uint8Array(pixels.length)),
    });
    rig.run(driver.flush(5, [0, 0, width, height]));
    const shot = device.screenshot();
    expect([shot?.width, shot?.height]).toEqual([width, height]);
    expect(same(shot?.rgba, fromBgrx(pixels))).toBe(true);
    expect(log).toEqual([]);
  });

  it('transfers a rectangle, shows what was flushed and what is in the scanout', () => {
    const driver = open();
    const [width, height] = [64, 48];
    const before = picture(width, height, 1);
    const after = picture(width, height, 2);
    const memory = backing(before.length, 333);
    memory.fill(before);
    function* draw() {
      yield* driver.createResource(1, 1, width, height);
      yield* driver.attachBacking(1, memory.pieces);
      yield* driver.transfer(1, [0, 0, width, height], 0);
      // The scanout is 40 × 30 at (10, 8): set, it shows what is there.
      yield* driver.setScanout(1, [10, 8, 40, 30]);
      memory.fill(after);
      // 20 × 10 at (15, 12); the offset is where its first pixel is in the backing.
      yield* driver.transfer(1, [15, 12, 20, 10], 4 * (12 * width + 15));
      // Flushed is the left half of it, and a part outside the scanout.
      yield* driver.flush(1, [0, 12, 25, 10]);
    }
    rig.run(draw());
    const expected = new Uint8Array(4 * 40 * 30);
    for (let y = 0; y < 30; y++) {
      for (let x = 0; x < 40; x++) {
        const [column, row] = [x + 10, y + 8];
        const isNew = column >= 15 && column < 25 && row >= 12 && row < 22;
        const from = 4 * (row * width + column);
        expected.set((isNew ? after : before).subarray(from, from + 4), 4 * (y * 40 + x));
      }
    }
    const shot = device.screenshot();
    expect([shot?.width, shot?.height]).toEqual([40, 30]);
    expect(same(shot?.rgba, fromBgrx(expected))).toBe(true);
  });

  // One pixel with bytes 10h, 20h, 30h, 40h; the format's name is the order of its bytes.
  it.each([
    ['B8G8R8A8', 1, [0x30, 0x20, 0x10]],
    ['B8G8R8X8', 2, [0x30, 0x20, 0x10]],
    ['A8R8G8B8', 3, [0x20, 0x30, 0x40]],
    ['X8R8G8B8', 4, [0x20, 0x30, 0x40]],
    ['R8G8B8A8', 67, [0x10, 0x20, 0x30]],
    ['X8B8G8R8', 68, [0x40, 0x30, 0x20]],
    ['A8B8G8R8', 121, [0x40, 0x30, 0x20]],
    ['R8G8B8X8', 134, [0x10, 0x20, 0x30]],
  ])('%s has its bytes in that order', (_name, format, rgb) => {
    const driver = open();
    const memory = backing(4, 4);
    memory.fill(Uint8Array.of(0x10, 0x20, 0x30, 0x40));
    function* draw() {
      yield* driver.createResource(1, format, 1, 1);
      yield* driver.attachBacking(1, memory.pieces);
      yield* driver.transfer(1, [0, 0, 1, 1], 0);
      yield* driver.setScanout(1, [0, 0, 1, 1]);
    }
    rig.run(draw());
    expect([...device.screenshot()!.rgba]).toEqual([...rgb, 255]);
  });

  it('moves a cursor over the picture, with its hot spot and its alpha', () => {
    const driver = open();
    const screen = backing(4 * 70 * 66, 4096);
    const white = new Uint8Array(4 * 70 * 66).fill(0xff);
    screen.fill(white);
    const image = backing(4 * 64 * 64, 4096);
    const pixels = new Uint8Array(4 * 64 * 64);
    pixels.set([0x40, 0, 0x80, 0x80], 0); // Half transparent: blue 64, red 128, premultiplied.
    pixels.set([1, 2, 3, 255], 4 * 64 + 4); // Opaque, at (1, 1).
    image.fill(pixels);
    function* draw() {
      yield* driver.createResource(1, 1, 70, 66);
      yield* driver.attachBacking(1, screen.pieces);
      yield* driver.transfer(1, [0, 0, 70, 66], 0);
      yield* driver.setScanout(1, [0, 0, 70, 66]);
      yield* driver.createResource(2, 1, 64, 64);
      yield* driver.attachBacking(2, image.pieces);
      yield* driver.transfer(2, [0, 0, 64, 64], 0);
      yield* driver.updateCursor(2, 12, 9, 2, 3);
    }
    rig.run(draw());
    const at = (x: number, y: number): number[] => {
      const { rgba, width } = device.screenshot()!;
      return [...rgba.subarray(4 * (y * width + x), 4 * (y * width + x) + 4)];
    };
    // Top left at (10, 6). 255 × 127 ÷ 255 = 127 is left of the white below alpha 128.
    expect(at(10, 6)).toEqual([255, 127, 191, 255]);
    expect(at(11, 7)).toEqual([3, 2, 1, 255]);
    expect(at(12, 6)).toEqual([255, 255, 255, 255]);
    rig.run(driver.moveCursor(1, 2));
    // Top left at (−1, −1): what is left of the image begins with its pixel (1, 1).
    expect(at(0, 0)).toEqual([3, 2, 1, 255]);
    expect(at(10, 6)).toEqual([255, 255, 255, 255]);
    rig.run(driver.moveCursor(2 ** 32 - 100, 69));
    expect(at(0, 0)).toEqual([255, 255, 255, 255]);
    rig.run(driver.updateCursor(0, 0, 0, 0, 0));
    rig.run(driver.moveCursor(2, 3));
    expect(at(1, 1)).toEqual([255, 255, 255, 255]);
  });

  it('gets the error the specification has for each mistake', () => {
    plug({ memoryBytes: 1 << 20, width: 320, height: 200 });
    const driver = open();
    const UNSPEC = 0x1200;
    const OUT_OF_MEMORY = 0x1201;
    const SCANOUT = 0x1202;
    const RESOURCE = 0x1203;
    const PARAMETER = 0x1205;
    const piece = rig.host.memory.alloc(4096);
    function* mistakes() {
      yield* driver.createResource(1, 1, 16, 16);
      const cases: readonly (readonly [number, readonly number[], number])[] = [
        [0x101, [1, 1, 16, 16], RESOURCE], // taken
        [0x101, [0, 1, 16, 16], RESOURCE],
        [0x101, [2, 5, 16, 16], PARAMETER], // no such format
        [0x101, [2, 1, 0, 16], PARAMETER],
        [0x101, [2, 1, 16, 0xffff_ffff], PARAMETER],
        [0x101, [2, 1, 512, 512], OUT_OF_MEMORY], // 1 MiB, of which 1 KiB is taken
        [0x102, [9, 0], RESOURCE],
        [0x103, [0, 0, 16, 16, 1, 1], SCANOUT],
        [0x103, [0, 0, 16, 16, 0, 9], RESOURCE],
        [0x103, [1, 0, 16, 16, 0, 1], PARAMETER],
        [0x103, [0xffff_ffff, 0, 2, 2, 0, 1], PARAMETER],
        [0x103, [0, 0, 0, 0, 0, 1], PARAMETER],
        [0x104, [0, 0, 16, 17, 1, 0], PARAMETER],
        [0x104, [0, 0, 16, 16, 9, 0], RESOURCE],
        [0x105, [0, 0, 16, 16, 0, 0, 1, 0], UNSPEC], // no backing
        [0x105, [0, 0, 17, 16, 0, 0, 1, 0], PARAMETER],
        [0x105, [0, 0, 16, 16, 0, 0, 9, 0], RESOURCE],
        [0x106, [9, 0], RESOURCE],
        [0x106, [1, 3, 0, 0, 0, 0], PARAMETER], // entries that are not there
        [0x106, [1, 0xffff_ffff], PARAMETER],
        [0x106, [1, 1, 0, 0x20_0000, 16, 0], PARAMETER], // at 2^53
        [0x106, [1, 1, piece.address, 0, 1023, 0], 0x1100],
        [0x106, [1, 1, piece.address, 0, 1024, 0], UNSPEC], // has one
        [0x105, [0, 0, 16, 16, 0, 0, 1, 0], UNSPEC], // 1 byte short
        [0x105, [0, 0, 1, 1, 0xffff_ffff, 0xffff_ffff, 1, 0], UNSPEC],
        [0x107, [9, 0], RESOURCE],
        [0x107, [1, 0], 0x1100],
        [0x108, [0, 0], PARAMETER], // no capability sets
        [0x109, [1, 1], PARAMETER],
        [0x10a, [1, 0], SCANOUT],
        [0x10b, [1, 0], UNSPEC], // RESOURCE_ASSIGN_UUID was not offered
        [0x200, [0, 0], UNSPEC], // 3D
        [0x300, [0, 0, 0, 0, 1, 0, 0, 0], UNSPEC], // belongs on the other queue
        [0x105, [0, 0], PARAMETER], // too short
        [0, [], UNSPEC],
      ];
      for (const [type, words, answer] of cases) yield* driver.expect(type, words, answer);
      const cursorCases: typeof cases = [
        [0x300, [1, 0, 0, 0, 1, 0, 0, 0], SCANOUT],
        [0x300, [0, 0, 0, 0, 9, 0, 0, 0], RESOURCE],
        [0x300, [0, 0, 0, 0, 1, 0, 0, 0], PARAMETER], // not 64 × 64
        [0x100, [], UNSPEC],
      ];
      for (const [type, words, answer] of cursorCases) {
        yield* driver.expect(type, words, answer, 1);
      }
    }
    rig.run(mistakes());
    expect(log).toEqual([]);
    expect(rig.run(driver.status())).toBe(15);
  });

  it('is answered with an error when a backing cannot be read, and goes on', () => {
    const driver = open();
    const memory = backing(4096, 4096);
    function* draw() {
      yield* driver.createResource(1, 1, 32, 32);
      yield* driver.attachBacking(1, [
        ...memory.pieces.map(({ address }) => ({ address, bytes: 2048 })),
        { address: 2 ** 40, bytes: 4096 },
      ]);
      yield* driver.expect(0x105, [0, 0, 32, 32, 0, 0, 1, 0], 0x1200);
      yield* driver.transfer(1, [0, 0, 32, 16], 0);
    }
    rig.run(draw());
    expect(rig.run(driver.status())).toBe(15);
  });

  it('gets the memory of what it destroys back, and a dark display', () => {
    plug({ memoryBytes: 1 << 20, width: 320, height: 200 });
    const driver = open();
    const memory = backing(4096, 4096);
    function* cycle() {
      // 512 × 400 × 4 bytes: two would not fit.
      yield* driver.createResource(1, 1, 512, 400);
      yield* driver.attachBacking(1, memory.pieces);
      yield* driver.setScanout(1, [0, 0, 512, 400]);
    }
    for (let n = 0; n < 3; n++) {
      rig.run(cycle());
      expect(device.screenshot()?.width).toBe(512);
      rig.run(driver.expect(0x102, [1, 0]));
      expect(device.screenshot()).toBeUndefined();
    }
  });

  it('has room for 65536 backing entries, and again after they are given back', () => {
    const driver = open();
    const entries = Array.from({ length: 2048 }, () => ({ address: 4096, bytes: 1 }));
    function* fill() {
      for (let id = 1; id <= 33; id++) yield* driver.createResource(id, 1, 1, 1);
      for (let id = 1; id <= 32; id++) yield* driver.attachBacking(id, entries);
      yield* driver.expect(0x106, [33, 1, 4096, 0, 1, 0], 0x1201);
      yield* driver.expect(0x107, [32, 0]);
      yield* driver.attachBacking(33, entries);
      yield* driver.expect(0x102, [33, 0]);
      yield* driver.attachBacking(32, entries);
    }
    rig.run(fill());
  });

  it('has room for 1024 resources', () => {
    const driver = open();
    function* fill() {
      for (let id = 1; id <= 1024; id++) yield* driver.createResource(id, 1, 1, 1);
      yield* driver.expect(0x101, [1025, 1, 1, 1], 0x1201);
    }
    rig.run(fill());
  });

  it('cannot show more than 2^24 pixels', () => {
    plug({ memoryBytes: 128 << 20 });
    const driver = open();
    function* show() {
      yield* driver.createResource(1, 1, 4096, 4097);
      yield* driver.expect(0x103, [0, 0, 4096, 4097, 0, 1], 0x1201);
      yield* driver.setScanout(1, [0, 0, 4096, 4096]);
    }
    rig.run(show());
  });

  it('may want a response shorter than it is, or none', () => {
    const driver = open();
    function* ask() {
      const short = yield* driver.command(0x100, [], { responseBytes: 40 });
      const none = yield* driver.command(0x102, [9, 0], { responseBytes: 0 });
      return [short.byteLength, short.getUint32(36, true), none.byteLength];
    }
    // 24 bytes of header, then x, y, width, height of the first display.
    expect(rig.run(ask())).toEqual([40, 768, 0]);
  });

  it('uses a ring many times round', () => {
    const driver = open({ queueSize: 2 });
    function* loop() {
      for (let n = 0; n < 300; n++) yield* driver.expect(0x102, [9, 0], 0x1203);
    }
    rig.run(loop());
    expect(driver.interrupts).toBe(300);
  });

  it('that resets the device, or is followed by another owner, leaves nothing', () => {
    const driver = open();
    const memory = backing(4096, 4096);
    memory.fill(new Uint8Array(4096).fill(0x5a));
    function* draw() {
      yield* driver.createResource(1, 1, 32, 32);
      yield* driver.attachBacking(1, memory.pieces);
      yield* driver.transfer(1, [0, 0, 32, 32], 0);
      yield* driver.setScanout(1, [0, 0, 32, 32]);
    }
    rig.run(draw());
    expect(device.screenshot()?.rgba[0]).toBe(0x5a);
    rig.run(driver.close());
    expect(device.screenshot()).toBeUndefined();
    const again = open();
    function* look() {
      yield* again.expect(0x102, [1, 0], 0x1203);
      yield* again.createResource(1, 1, 32, 32);
      yield* again.setScanout(1, [0, 0, 32, 32]);
    }
    rig.run(look());
    expect(device.screenshot()?.rgba.some((byte, i) => i % 4 < 3 && byte !== 0)).toBe(false);
    device.reset(rig.now);
    device.scrub(rig.now);
    expect(device.screenshot()).toBeUndefined();
    expect(device.readConfig(0x04)).toBe(0x0010_0000);
  });
});

describe('options', () => {
  it.each([
    [{ uuid: 'x' }, /uuid/],
    [{ memoryBytes: 3 << 20 }, /memoryBytes/],
    [{ memoryBytes: 1 << 20 }, /memoryBytes must hold a picture of 1024 x 768/],
    [{ width: 63 }, /width/],
    [{ height: 2161 }, /height/],
    [{ tags: 0 }, /tags/],
    [{ maxPayloadBytes: 100 }, /maxPayloadBytes/],
    [{ maxReadRequestBytes: 8192 }, /maxReadRequestBytes/],
    [{ completionTimeoutNs: 0 }, /completionTimeoutNs/],
  ])('%j are refused', (options, message) => {
    expect(() => createVirtioGpu({ uuid: UUID, ...options })).toThrow(message);
  });
});
