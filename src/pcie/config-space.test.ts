import { describe, expect, it } from 'vitest';
import { AssertionError } from '#base/assert';
import {
  COMMAND,
  COMMAND_BUS_MASTER_ENABLE,
  COMMAND_INTERRUPT_DISABLE,
  COMMAND_MEMORY_SPACE_ENABLE,
  ConfigSpace,
  STATUS_DETECTED_PARITY_ERROR,
  STATUS_RECEIVED_MASTER_ABORT,
} from './config-space.ts';

const IDENTITY = { vendorId: 0x1234, deviceId: 0x5678, revisionId: 1, classCode: 0x120000 };
const ALL_BYTES = 15;

describe('ConfigSpace', () => {
  it('writes only read-write bits of enabled bytes', () => {
    const config = new ConfigSpace(IDENTITY);
    config.define(0x80, 0x1122_3344, 0x0f0f_0f0f);
    // Each byte alone: the low nibble comes from the write, the high one stays.
    const after = [0x1122_334b, 0x1122_3a44, 0x1129_3344, 0x1822_3344];
    for (let byte = 0; byte < 4; byte++) {
      config.reset();
      config.write(0x80, 0x8899_aabb, 1 << byte);
      expect(config.read32(0x80)).toBe(after[byte]);
    }
    config.write(0x80, 0xffff_ffff, 0);
    expect(config.read32(0x80)).toBe(after[3]);
  });

  it('clears write-1-to-clear bits where a 1 is written, in enabled bytes alone', () => {
    const config = new ConfigSpace(IDENTITY);
    config.setStatus(STATUS_DETECTED_PARITY_ERROR | STATUS_RECEIVED_MASTER_ABORT);
    expect(config.read32(COMMAND)).toBe(0xa000_0000);
    config.write(COMMAND, 0xffff_0000, 0b0111);
    expect(config.read32(COMMAND)).toBe(0xa000_0000);
    config.write(COMMAND, 0x2000_0000, ALL_BYTES);
    expect(config.read32(COMMAND)).toBe(0x8000_0000);
    config.write(COMMAND, 0, ALL_BYTES);
    expect(config.read32(COMMAND)).toBe(0x8000_0000);
  });

  it('shows the command bits', () => {
    const config = new ConfigSpace(IDENTITY);
    const seen = (): boolean[] => [config.memoryEnable, config.busMaster, config.interruptDisable];
    expect(seen()).toEqual([false, false, false]);
    config.write(COMMAND, COMMAND_MEMORY_SPACE_ENABLE, ALL_BYTES);
    expect(seen()).toEqual([true, false, false]);
    config.write(COMMAND, COMMAND_BUS_MASTER_ENABLE, ALL_BYTES);
    expect(seen()).toEqual([false, true, false]);
    config.write(COMMAND, COMMAND_INTERRUPT_DISABLE, ALL_BYTES);
    expect(seen()).toEqual([false, false, true]);
  });

  it('reads 0 where nothing is, and ignores writes there', () => {
    const config = new ConfigSpace(IDENTITY);
    config.write(0xffc, 0xffff_ffff, ALL_BYTES);
    expect(config.read32(0xffc)).toBe(0);
    expect(() => config.read32(0x1000)).toThrow(AssertionError);
    expect(() => config.read32(0x42)).toThrow(AssertionError);
  });

  it('captures its number and forgets it, with every register, on reset', () => {
    const config = new ConfigSpace(IDENTITY);
    config.captureBdf(0x0508);
    config.write(COMMAND, 0xffff, ALL_BYTES);
    expect(config.bdf).toBe(0x0508);
    config.reset();
    expect(config.bdf).toBe(0);
    expect(config.read32(COMMAND)).toBe(0);
    expect(config.read32(0)).toBe(0x5678_1234);
  });

  it('tells a watcher of writes that change something', () => {
    const config = new ConfigSpace(IDENTITY);
    const seen: number[][] = [];
    config.define(0x80, 0, 0xff);
    config.watch(0x80, (before, after) => seen.push([before, after]));
    config.write(0x80, 0x12, ALL_BYTES);
    config.write(0x80, 0x12, ALL_BYTES);
    config.write(0x80, 0xff00, ALL_BYTES);
    config.set32(0x80, 0x34);
    expect(seen).toEqual([
      [0, 0x12],
      [0x12, 0],
    ]);
  });

  it('links capabilities in both lists and finds them', () => {
    const config = new ConfigSpace(IDENTITY);
    expect(config.findCapability(1)).toBe(0);
    expect(config.findExtendedCapability(1)).toBe(0);
    expect(config.addCapability(0x01, 6)).toBe(0x40);
    expect(config.addCapability(0x05, 8, 0x1234)).toBe(0x48);
    expect(config.addExtendedCapability(0x0001, 2, 10)).toBe(0x100);
    expect(config.addExtendedCapability(0x0003, 1, 12)).toBe(0x10c);
    expect(config.read32(0x34)).toBe(0x40);
    expect(config.read32(COMMAND)).toBe(0x0010_0000);
    expect(config.read32(0x40)).toBe(0x0000_4801);
    expect(config.read32(0x48)).toBe(0x1234_0005);
    expect(config.read32(0x100)).toBe(0x10c2_0001);
    expect(config.read32(0x10c)).toBe(0x0001_0003);
    expect([config.findCapability(5), config.findExtendedCapability(3)]).toEqual([0x48, 0x10c]);
    expect([config.findCapability(9), config.findExtendedCapability(9)]).toEqual([0, 0]);
    expect(() => config.addCapability(9, 0xc0)).toThrow(AssertionError);
  });
});
