import { describe, expect, it } from 'vitest';
import { TlpKind, tlpAddress } from '#pcie/tlp';
import { vmFunctionRig } from '#testkit/vm-function-rig';
import { REGION_CONFIG } from '#vfio-user/region-info';

/** A pattern whose bytes all differ from their neighbours. */
const pattern = (offset: number, count: number): Uint8Array =>
  Uint8Array.from({ length: count }, (_, index) => (7 * (offset + index)) & 0xff);
const hexOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

describe('configuration space', () => {
  // Offset, count, registers touched.
  const spans = [
    [0x00, 1, [0x00]],
    [0x03, 1, [0x00]],
    [0x0a, 2, [0x08]],
    [0x2d, 2, [0x2c]],
    [0x0b, 2, [0x08, 0x0c]],
    [0x2c, 4, [0x2c]],
    [0x01, 4, [0x00, 0x04]],
    [0x00, 8, [0x00, 0x04]],
    [0x06, 8, [0x04, 0x08, 0x0c]],
    [0xffc, 4, [0xffc]],
  ] as const;

  it.each(spans)('is read from 0x%s, %d bytes', (offset, count, registers) => {
    const { rig, device, guest } = vmFunctionRig();
    const whole = new DataView(new ArrayBuffer(4096));
    for (let at = 0; at < 4096; at += 4) whole.setUint32(at, device.config.read32(at), true);
    const expected = new Uint8Array(whole.buffer, offset, count);
    expect(guest.read(REGION_CONFIG, offset, count)).toBe(hexOf(expected));
    expect(rig.fabric.requests.map(({ kind }) => kind)).toEqual(
      registers.map(() => TlpKind.CfgRd1),
    );
    expect(rig.fabric.requests.map(({ register }) => register)).toEqual(registers);
    expect(rig.fabric.requests.every(({ completerId }) => completerId === 0x0100)).toBe(true);
  });

  it('is read as a whole, with more registers than there are tags', () => {
    const { device, guest } = vmFunctionRig();
    const whole = guest.read(REGION_CONFIG, 0, 4096);
    expect(whole).toHaveLength(2 * 4096);
    expect(whole.slice(0, 8)).toBe('34127856');
    const at = device.pcie.offset;
    const word = Buffer.from(whole, 'hex').readUInt32LE(at);
    expect(word).toBe(device.config.read32(at));
  });

  it.each([
    // Offset, bytes, and [register, value, byte enables] of each request: lane n is bit n.
    [0x3c, '0a', [[0x3c, 0x0a, 0b0001]]],
    [0x0f, 'aa', [[0x0c, 0xaa00_0000, 0b1000]]],
    [0x06, '0102', [[0x04, 0x0201_0000, 0b1100]]],
    [0x05, '0102', [[0x04, 0x0002_0100, 0b0110]]],
    [0x30, '010203ff', [[0x30, 0xff03_0201, 0b1111]]],
    [
      0x23,
      '0102',
      [
        [0x20, 0x0100_0000, 0b1000],
        [0x24, 0x02, 0b0001],
      ],
    ],
    [
      0x20,
      '0102030405060708',
      [
        [0x20, 0x0403_0201, 0b1111],
        [0x24, 0x0807_0605, 0b1111],
      ],
    ],
    [
      0x2e,
      '01020304050607',
      [
        [0x2c, 0x0201_0000, 0b1100],
        [0x30, 0x0605_0403, 0b1111],
        [0x34, 0x07, 0b0001],
      ],
    ],
  ])('is written from 0x%s on with %s', (offset, hex, expected) => {
    const { rig, device, guest } = vmFunctionRig();
    const answer = guest.startWrite(REGION_CONFIG, offset, hex);
    expect(answer.isDone).toBe(false);
    rig.pass(1e6);
    expect(answer.isDone).toBe(true);
    expect(
      device.configWrites.map(({ register, value, byteEnables }) => [register, value, byteEnables]),
    ).toEqual(expected);
  });
});

describe('memory of a BAR', () => {
  it.each([
    [0, 0, 1],
    [0, 3, 1],
    [0, 6, 2],
    [0, 0x100, 4],
    [0, 0xffff, 1],
    [2, 0x7f, 2],
    [2, 0x102, 4],
    [2, 0xfff8, 8],
    [2, 0xffd, 8],
  ])('of BAR %d is read from %d, %d bytes', (bar, offset, count) => {
    const { device, guest, place } = vmFunctionRig();
    place();
    const memory = device.memory.get(bar)!;
    memory.set(pattern(0, memory.length));
    expect(guest.read(bar, offset, count)).toBe(hexOf(pattern(offset, count)));
  });

  it('is written in order, whatever the size, and done before it has arrived', () => {
    const { rig, device, guest, place } = vmFunctionRig();
    place();
    // No room in the fabric at first: what is to be written must outlive the call.
    let isOpen = false;
    rig.fabric.accepts = () => isOpen;
    const writes = [
      [0, '01020304'],
      [9, '05'],
      [0x12, '0607'],
      [0x18, '08090a0b0c0d0e0f'],
      [0x20, '10111213'],
    ] as const;
    for (const [offset, hex] of writes) {
      expect(guest.startWrite(0, offset, hex).isDone).toBe(true);
    }
    const read = guest.startRead(0, 0, 4);
    isOpen = true;
    rig.host.resume(rig.now);
    rig.pass(1e6);
    expect(rig.fabric.requests.map((tlp) => tlpAddress(tlp) & 0xffff & ~3)).toEqual([
      0, 8, 0x10, 0x18, 0x20, 0,
    ]);
    expect(read.hex).toBe('01020304');
    for (const [offset, hex] of writes) {
      const at = device.memory.get(0)!.subarray(offset, offset + hex.length / 2);
      expect(hexOf(at)).toBe(hex);
    }
    expect(hexOf(device.memory.get(0)!.subarray(4, 12))).toBe('0000000000050000');
  });

  it('reads all ones before it has an address, and takes no writes', () => {
    const { rig, guest } = vmFunctionRig();
    for (const count of [1, 2, 4, 8]) expect(guest.read(0, 8, count)).toBe('ff'.repeat(count));
    expect(guest.startWrite(0, 0, '01020304').isDone).toBe(true);
    expect(guest.startWrite(2, 0, '01').isDone).toBe(true);
    expect(rig.fabric.requests).toEqual([]);
  });
});
