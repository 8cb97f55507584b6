import { beforeEach, describe, expect, it } from 'vitest';
import { DisplayRig, setBochsMode } from '#testkit/display-rig';
import { type BochsDisplayOptions, createBochsDisplay } from './bochs-display.ts';

const UUID = '00112233-4455-6677-8899-aabbccddeeff';
const MIB = 2 ** 20;

let rig: DisplayRig;
let device: DisplayRig['device'];
let log: string[];

function plug(options: Partial<BochsDisplayOptions> = {}): void {
  log = [];
  device = createBochsDisplay({ uuid: UUID, log: (message) => log.push(message), ...options });
  rig = new DisplayRig(device);
}

beforeEach(() => plug());

const setMode = (values: Readonly<Record<number, number>>): void =>
  rig.run(setBochsMode(rig.host, rig.bar(2), values));

/** 16-bit DISPI register `index`, at BAR2 + 500h + 2 × index. */
function dispi(index: number): number {
  const [low = 0, high = 0] = rig.load(rig.bar(2) + 0x500 + 2 * index, 2);
  return low + 256 * high;
}

// Indices of the Bochs VBE interface.
const [XRES, YRES, BPP, ENABLE, VIRT_WIDTH, X_OFFSET, Y_OFFSET] = [1, 2, 3, 4, 6, 8, 9];

describe('the function', () => {
  it('is what drivers look for', () => {
    expect([rig.fn.vendorId, rig.fn.deviceId, rig.fn.classCode, rig.fn.revision]).toEqual([
      0x1234, 0x1111, 0x038000, 2,
    ]);
    expect(
      rig.fn.bars.map(({ index, kind, prefetchable, sizeBytes }) => [
        index,
        kind,
        prefetchable,
        sizeBytes,
      ]),
    ).toEqual([
      [0, 'mem64', true, 16 * MIB],
      [2, 'mem32', false, 4096],
    ]);
    expect(rig.fn.msi).toBeUndefined();
    expect(dispi(0) & 0xfff0).toBe(0xb0c0);
    expect(dispi(10)).toBe(256); // 16 MiB in steps of 64 KiB.
    expect([...rig.load(rig.bar(2) + 0x600, 8)]).toEqual([8, 0, 0, 0, 0x1e, 0x1e, 0x1e, 0x1e]);
  });

  it('has a valid EDID at 0, readable byte by byte', () => {
    const bytes = Array.from({ length: 128 }, (_, at) => rig.load(rig.bar(2) + at, 1)[0]!);
    expect(bytes.slice(0, 8)).toEqual([0, 255, 255, 255, 255, 255, 255, 0]);
    expect(bytes.reduce((sum, byte) => sum + byte, 0) % 256).toBe(0);
    expect([...rig.load(rig.bar(2) + 128, 128)].every((byte) => byte === 0)).toBe(true);
  });

  it('ignores VGA registers, and says once what else it does not know', () => {
    rig.store(rig.bar(2) + 0x400, Uint8Array.of(0x20));
    expect(rig.load(rig.bar(2) + 0x41a, 1)[0]).toBe(0);
    rig.load(rig.bar(2) + 0x700, 4);
    rig.load(rig.bar(2) + 0x700, 4);
    rig.store(rig.bar(2) + 0x504, Uint8Array.of(1));
    rig.pass(1e6);
    expect(log).toEqual([
      'read of unknown register 0x700',
      'partial write of unknown register 0x504',
    ]);
  });
});

describe('a driver', () => {
  const [width, height] = [100, 70];
  /** Bytes of a 32-bit picture; in memory a pixel is blue, green, red, unused. */
  const pixels = Uint8Array.from(
    { length: 4 * width * height },
    (_, i) => (i * 7 + (i >> 9)) & 255,
  );
  const expected = new Uint8Array(pixels.length);
  for (let i = 0; i < pixels.length; i += 4) {
    expected.set([pixels[i + 2]!, pixels[i + 1]!, pixels[i]!, 255], i);
  }
  const same = (): boolean => Buffer.compare(rig.screenshot()!.rgba, expected) === 0;

  it('draws a picture by posted writes, pixel for pixel', () => {
    expect(rig.screenshot()).toBeUndefined();
    setMode({ [BPP]: 32, [XRES]: width, [YRES]: height, [ENABLE]: 0x41 });
    rig.store(rig.bar(0), pixels);
    const shot = rig.screenshot();
    expect([shot?.width, shot?.height]).toEqual([width, height]);
    expect(same()).toBe(true);
    // 1 × 4 bytes from the middle on, as a console writes a pixel.
    rig.store(rig.bar(0) + 4 * (3 * width + 7), Uint8Array.of(1, 2, 3, 4));
    expected.set([3, 2, 1, 255], 4 * (3 * width + 7));
    expect(same()).toBe(true);
    setMode({ [ENABLE]: 0 });
    expect(rig.screenshot()).toBeUndefined();
  });

  it('pans in a larger virtual screen, in both byte orders', () => {
    const stride = 4 * 128;
    // In big-endian order a pixel is unused, red, green, blue.
    const order = rig.load(rig.bar(2) + 0x604, 4);
    rig.store(rig.bar(2) + 0x604, Uint8Array.of(0xbe, 0xbe, 0xbe, 0xbe));
    expect([...rig.load(rig.bar(2) + 0x604, 4)]).toEqual([0xbe, 0xbe, 0xbe, 0xbe]);
    setMode({
      [BPP]: 32,
      [XRES]: width,
      [YRES]: height,
      [VIRT_WIDTH]: 128,
      [X_OFFSET]: 5,
      [Y_OFFSET]: 200,
      [ENABLE]: 1,
    });
    for (let y = 0; y < height; y++) {
      const row = expected.slice(4 * width * y, 4 * width * (y + 1));
      const turned = row.map((_, i) => (i % 4 === 0 ? 0x77 : row[i - 1]!));
      rig.store(rig.bar(0) + (200 + y) * stride + 20, turned);
    }
    expect(same()).toBe(true);
    rig.store(rig.bar(2) + 0x604, order);
    expect(same()).toBe(false);
  });

  it('shows 16-bit pixels', () => {
    setMode({ [BPP]: 16, [XRES]: 64, [YRES]: 64, [ENABLE]: 1 });
    // Red 31, green 0, blue 0: f800h; red 0, green 63, blue 0: 07e0h; 1, 1, 1: 0821h.
    rig.store(rig.bar(0), Uint8Array.of(0x00, 0xf8, 0xe0, 0x07, 0x21, 0x08));
    // 1 of 31 is 8 of 255, and its top bits below it are 0; 1 of 63 is 4.
    expect([...rig.screenshot()!.rgba.subarray(0, 12)]).toEqual([
      255, 0, 0, 255, 0, 255, 0, 255, 8, 4, 8, 255,
    ]);
  });

  it.each([
    ['too small', { [XRES]: 63 }],
    ['too low', { [YRES]: 10 }],
    ['of 24 bits', { [BPP]: 24 }],
    ['beyond the memory', { [XRES]: 4096, [YRES]: 1025 }],
    ['moved beyond the memory', { [Y_OFFSET]: 65_000 }],
    ['not enabled', { [ENABLE]: 0x40 }],
  ])('sees nothing in a mode %s', (_name, changes) => {
    const good = { [BPP]: 32, [XRES]: width, [YRES]: height, [ENABLE]: 1 };
    setMode({ ...good, ...changes });
    expect(rig.screenshot()).toBeUndefined();
  });

  it('sees no more than 2^24 pixels', () => {
    plug({ memoryBytes: 64 * MIB });
    setMode({ [BPP]: 16, [XRES]: 4096, [YRES]: 4097, [ENABLE]: 1 });
    expect(rig.screenshot()).toBeUndefined();
    setMode({ [YRES]: 4096 });
    expect(rig.screenshot()?.height).toBe(4096);
  });

  it('that has gone leaves nothing to the next owner', () => {
    setMode({ [BPP]: 32, [XRES]: width, [YRES]: height, [ENABLE]: 1 });
    rig.store(rig.bar(0), pixels);
    device.reset(rig.now);
    device.scrub(rig.now);
    expect(rig.screenshot()).toBeUndefined();
    expect(device.readConfig(0x04) & 7).toBe(0);
    plug();
    setMode({ [BPP]: 32, [XRES]: width, [YRES]: height, [ENABLE]: 1 });
    expect(rig.screenshot()!.rgba.some((byte, i) => i % 4 < 3 && byte !== 0)).toBe(false);
  });
});

describe('options', () => {
  it.each([
    [{ uuid: 'x' }, /uuid/],
    [{ memoryBytes: 1 << 20 }, /memoryBytes/],
    [{ memoryBytes: 4 << 20, width: 1920, height: 1200 }, /memoryBytes must hold/],
    [{ width: 4000 }, /width/],
    [{ height: 10 }, /height/],
    [{ maxPayloadBytes: 64 }, /maxPayloadBytes/],
  ])('%j are refused', (options, message) => {
    expect(() => createBochsDisplay({ uuid: UUID, ...options })).toThrow(message);
  });
});
