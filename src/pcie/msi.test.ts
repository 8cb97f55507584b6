import { describe, expect, it } from 'vitest';
import { AssertionError } from '#base/assert';
import { ConfigSpace } from './config-space.ts';
import {
  MSI_ENABLE,
  MSI_MASK_BITS,
  MSI_MESSAGE_ADDRESS,
  MSI_MESSAGE_DATA,
  MSI_MESSAGE_UPPER_ADDRESS,
  MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT,
  MSI_PENDING_BITS,
  Msi,
} from './msi.ts';

const ALL_BYTES = 15;

function msiWith(vectors: number, perVectorMasking: boolean): { config: ConfigSpace; msi: Msi } {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  return { config, msi: new Msi(config, { vectors, perVectorMasking }) };
}

function enable(config: ConfigSpace, msi: Msi, log2Vectors: number): void {
  config.write(
    msi.offset,
    MSI_ENABLE | (log2Vectors << MSI_MULTIPLE_MESSAGE_ENABLE_SHIFT),
    ALL_BYTES,
  );
}

describe('Msi', () => {
  it('puts the vector into the data bits that were allocated, and no others', () => {
    const { config, msi } = msiWith(8, false);
    config.write(msi.offset + MSI_MESSAGE_ADDRESS, 0xfee0_1000, ALL_BYTES);
    config.write(msi.offset + MSI_MESSAGE_UPPER_ADDRESS, 0x12, ALL_BYTES);
    config.write(msi.offset + MSI_MESSAGE_DATA, 0xffff_4147, ALL_BYTES);
    expect([msi.addressHi, msi.addressLo]).toEqual([0x12, 0xfee0_1000]);

    enable(config, msi, 0);
    expect([msi.vectorCount, msi.messageData(0), msi.messageData(5)]).toEqual([1, 0x4147, 0x4147]);
    enable(config, msi, 2);
    // 0x4147 with bits 1:0 replaced: 0x4144 + vector; vector 6 shares with 6 mod 4.
    expect([0, 1, 2, 3, 6].map((vector) => msi.messageData(vector))).toEqual([
      0x4144, 0x4145, 0x4146, 0x4147, 0x4146,
    ]);
    // More than it asked for is not more than it has.
    enable(config, msi, 5);
    expect([msi.vectorCount, msi.messageData(7)]).toEqual([8, 0x4147]);
  });

  it('sends nothing while disabled, everything while enabled', () => {
    const { config, msi } = msiWith(1, false);
    expect([msi.enabled, msi.raise(0)]).toEqual([false, false]);
    enable(config, msi, 0);
    expect([msi.enabled, msi.raise(0)]).toEqual([true, true]);
    expect(msi.takePending()).toBe(-1);
  });

  it('holds masked vectors as pending and gives each back once, unmasked', () => {
    const { config, msi } = msiWith(4, true);
    enable(config, msi, 2);
    config.write(msi.offset + MSI_MASK_BITS, 0b1010, ALL_BYTES);
    expect([0, 1, 2, 3].map((vector) => msi.raise(vector))).toEqual([true, false, true, false]);
    expect(msi.raise(3)).toBe(false);
    expect(config.read32(msi.offset + MSI_PENDING_BITS)).toBe(0b1010);
    expect(msi.takePending()).toBe(-1);
    config.write(msi.offset + MSI_MASK_BITS, 0b0010, ALL_BYTES);
    expect([msi.takePending(), msi.takePending()]).toEqual([3, -1]);
    expect(config.read32(msi.offset + MSI_PENDING_BITS)).toBe(0b0010);
  });

  it('handles vector 31, whose bit is the sign bit', () => {
    const { config, msi } = msiWith(32, true);
    enable(config, msi, 5);
    config.write(msi.offset + MSI_MASK_BITS, 0xffff_ffff, ALL_BYTES);
    expect(msi.raise(31)).toBe(false);
    expect(config.read32(msi.offset + MSI_PENDING_BITS)).toBe(0x8000_0000);
    config.write(msi.offset + MSI_MASK_BITS, 0, ALL_BYTES);
    expect([msi.takePending(), msi.takePending()]).toEqual([31, -1]);
  });

  it('asserts on vector counts MSI cannot say', () => {
    for (const vectors of [0, 3, 64]) expect(() => msiWith(vectors, false)).toThrow(AssertionError);
  });
});
