import { describe, expect, it } from 'vitest';
import type { CapturedPacket } from './replay-index.ts';
import { segmentsOf } from './replay-segments.ts';

// CfgWr0 of 00:00.0 to 01:00.0, register 4; and an MWr32 that the tests call a reset.
const CONFIG = Buffer.from('44000001' + '0000000f' + '01000004' + '06000000', 'hex');
const RESET = Buffer.from('40000001' + '0000000f' + 'e0000018' + '45534552', 'hex');
const OTHER = Buffer.from('40000001' + '0000000f' + 'e0002000' + '01000000', 'hex');

function packets(...kinds: (Uint8Array | [Uint8Array, number])[]): CapturedPacket[] {
  return kinds.map((kind, index) => {
    const base = { number: index + 1, timeNs: BigInt(index), direction: 'down' as const };
    return Array.isArray(kind)
      ? { ...base, tlp: kind[0], lostBefore: kind[1] }
      : { ...base, tlp: kind as Uint8Array };
  });
}

const isReset = (packet: CapturedPacket): boolean => packet.tlp === RESET;
const shape = (list: readonly CapturedPacket[], inUse: boolean): [number[], number[]][] =>
  segmentsOf(list, inUse, isReset).map((segment) => [
    segment.packets.map((one) => one.number),
    segment.configWrites.map((one) => one.number),
  ]);

describe('what of a capture can be judged', () => {
  it('is all of one that began with the function unused', () => {
    expect(shape(packets(CONFIG, OTHER, RESET, OTHER), false)).toEqual([[[1, 2, 3, 4], []]]);
  });

  it('begins with a reset where it was in use (regression: false differences)', () => {
    expect(shape(packets(OTHER, CONFIG, RESET, OTHER), true)).toEqual([[[3, 4], [2]]]);
    expect(shape(packets(OTHER, OTHER), true)).toEqual([]);
  });

  it('ends where TLPs were lost, and goes on with the next reset', () => {
    const list = packets(OTHER, CONFIG, [OTHER, 3], OTHER, RESET, OTHER, [RESET, 1]);
    expect(shape(list, false)).toEqual([
      [[1, 2], []],
      [[5, 6], [2]],
      [[7], [2]],
    ]);
  });
});
