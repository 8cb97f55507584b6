import { describe, expect, it } from 'vitest';
import { portOptions } from '#testkit/host-rig';
import { VirtualPort } from './virtual-port.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const EMPTY = { base: MIB, limit: MIB - 1 };

describe('the routing of a virtual port', () => {
  const routing = {
    secondaryBus: 9,
    nonPrefetchable: { base: 0xfc00_0000, limit: 0xfdff_ffff },
    prefetchable: { base: 512 * GIB, limit: 513 * GIB - 1 },
  };
  const newPort = (): VirtualPort => {
    const port = new VirtualPort(0, portOptions(0));
    port.setRouting(routing);
    return port;
  };

  it('is what it was set to, above 4 GiB too, and nothing of before', () => {
    const port = newPort();
    expect(port.routing).toEqual(routing);
    expect(port.routesBus(9)).toBe(true);
    expect([0, 1, 8, 10].some((bus) => port.routesBus(bus))).toBe(false);
    for (const [address, bytes, forwards] of [
      [0xfc00_0000, 4, true],
      [0xfdff_fffc, 4, true],
      [0xfdff_fffc, 8, false],
      [0xfbff_fffc, 4, false],
      [512 * GIB, 4096, true],
      [513 * GIB - 4, 4, true],
      [513 * GIB, 4, false],
      // Where it lay before: 16 MiB at 0xe0000000, 4 GiB at 256 GiB.
      [0xe000_0000, 4, false],
      [256 * GIB, 4, false],
    ] as const) {
      expect(port.forwards(address, bytes), `0x${address.toString(16)}`).toBe(forwards);
    }
  });

  it('shows in the registers (7.5.1.3.5, 7.5.1.3.8 to 7.5.1.3.10)', () => {
    const { config } = newPort();
    // Primary bus 0, secondary and subordinate bus 9.
    expect(config.read32(0x18) & 0xff_ffff).toBe(0x09_0900);
    // Bits 31:20 of base and limit; of the prefetchable ones the low four bits say "64 bit".
    expect(config.read32(0x20)).toBe(0xfdf0_fc00);
    expect(config.read32(0x24)).toBe(0x3ff1_0001);
    // 512 GiB is 0x80_0000_0000, and 513 GiB - 1 is 0x80_3fff_ffff.
    expect(config.read32(0x28)).toBe(0x80);
    expect(config.read32(0x2c)).toBe(0x80);
  });

  it('may be empty, one window by itself or both', () => {
    const port = newPort();
    port.setRouting({ ...routing, prefetchable: EMPTY });
    expect(port.routing).toEqual({ ...routing, prefetchable: EMPTY });
    expect(port.forwards(512 * GIB, 4)).toBe(false);
    expect(port.forwards(0xfc00_0000, 4)).toBe(true);
    port.setRouting({ secondaryBus: 255, nonPrefetchable: EMPTY, prefetchable: EMPTY });
    expect(port.routing).toEqual({
      secondaryBus: 255,
      nonPrefetchable: EMPTY,
      prefetchable: EMPTY,
    });
    for (const address of [0, MIB, 0xfc00_0000]) expect(port.forwards(address, 4)).toBe(false);
    port.setRouting(routing);
    expect(port.routing).toEqual(routing);
  });
});
