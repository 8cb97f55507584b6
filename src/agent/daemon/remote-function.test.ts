/** What a host sees of a remote function's configuration space, and what it has programmed into it. */
import { describe, expect, it } from 'vitest';
import { Bars } from '#pcie/bar';
import { ConfigSpace } from '#pcie/config-space';
import { DmaLimits } from '#pcie/endpoint-dma';
import { Msi } from '#pcie/msi';
import { PcieCapability } from '#pcie/pcie-capability';
import { ENDPOINT_PCIE } from '#testkit/endpoint-pcie';
import { remoteFunctionOf } from '#testkit/remote-function-of';
import { CapabilityView } from './capability-view.ts';
import { configBytesOf, type RemoteFunction } from './remote-function.ts';
import { RemoteRegisters } from './remote-registers.ts';

const IDENTITY = { vendorId: 0x1234, deviceId: 0x5678, revisionId: 1, classCode: 0x12_0000 };

function viewOf(config: ConfigSpace): CapabilityView {
  const view = CapabilityView.of((register) => config.read32(register), 4096, new Set());
  if (typeof view === 'string') throw new Error(view);
  return view;
}

/** IDs as a host finds them, walking the list. */
function standard(config: ConfigSpace): number[] {
  const view = viewOf(config);
  const ids: number[] = [];
  for (let at = view.show(0x34, config.read32(0x34)) & 0xff; at !== 0; ) {
    const header = view.show(at, config.read32(at));
    ids.push(header & 0xff);
    at = (header >>> 8) & 0xff;
  }
  return ids;
}

function extended(config: ConfigSpace): number[] {
  const view = viewOf(config);
  const ids: number[] = [];
  for (let at = 0x100; at !== 0; ) {
    const header = view.show(at, config.read32(at));
    ids.push(header & 0xffff);
    at = header >>> 20;
  }
  return ids;
}

describe('lists of capabilities', () => {
  it.each([
    [
      [0x11, 0x01, 0x10],
      [0x01, 0x10],
    ],
    [
      [0x01, 0x11, 0x14, 0x10],
      [0x01, 0x10],
    ],
    [[0x01, 0x13], [0x01]],
    [[0x11], []],
    [[], []],
  ])('of %j show %j', (there, shown) => {
    const config = new ConfigSpace(IDENTITY);
    for (const id of there) config.addCapability(id, 12);
    expect(standard(config)).toEqual(shown);
  });

  it.each([
    // ATS is 0Fh, SR-IOV 10h, PRI 13h, PASID 1Bh, AER 01h, serial number 03h.
    [
      [0x01, 0x0f, 0x03, 0x1b],
      [0x01, 0x03],
    ],
    // The first stays where it is, as one that says nothing.
    [
      [0x10, 0x13, 0x01],
      [0, 0x01],
    ],
    [[0x0f], [0]],
    [[], [0]],
  ])('of extended ones, %j, show %j', (there, shown) => {
    const config = new ConfigSpace(IDENTITY);
    for (const id of there) config.addExtendedCapability(id, 1, 16);
    expect(extended(config)).toEqual(shown);
  });
});

const shown = (fn: RemoteFunction, register: number): number =>
  fn.view.show(register, fn.config.getUint32(register, true));

describe('a function', () => {
  // A part of the extended space used to be shown as it was, SR-IOV and all: only whole ones are looked through.
  it.each([
    [255, 'its configuration space has 255 bytes; a PCI function has 256 at least'],
    [256, 256],
    [258, 256],
    [4095, 256],
    [4096, 4096],
    [8192, 4096],
  ])('with %d bytes of configuration space shows %s', (sizeBytes, shownBytes) => {
    const none = { sizeBytes: 0, read: true, write: true, mmap: false, fileOffset: 0, areas: [] };
    const regions = Array.from({ length: 9 }, () => none);
    // VFIO_PCI_CONFIG_REGION_INDEX of linux/vfio.h.
    regions[7] = { ...none, sizeBytes };
    const description = { resettable: true, regions, irqs: [], writeMultiple: false };
    expect(configBytesOf(description)).toBe(shownBytes);
  });

  it('has as many MSI vectors as its server has interrupts for', () => {
    const msi = (irqs: number): RemoteFunction =>
      remoteFunctionOf((config) => new Msi(config, { vectors: 32, perVectorMasking: false }), {
        irqs: [0, irqs, 0, 0, 0],
      });
    // Multiple Message Capable, bits 19:17, is the logarithm; 5 interrupts make 4 vectors.
    expect(msi(32).msi?.vectors).toBe(32);
    expect((shown(msi(32), 0x40) >>> 17) & 7).toBe(5);
    expect(msi(5).msi?.vectors).toBe(4);
    expect((shown(msi(5), 0x40) >>> 17) & 7).toBe(2);
    expect(msi(0).msi).toBeUndefined();
    expect(shown(msi(0), 0x34)).toBe(0);
  });

  it('has INTA or nothing, is one of one, and has no ROM', () => {
    const build = (config: ConfigSpace): void => {
      // Pin C; a ROM BAR.
      config.define(0x3c, 0x0300, 0xff);
      config.define(0x30, 0xfff0_0001, 0);
      config.set32(0x0c, 0x80_0000);
    };
    const fn = remoteFunctionOf(build, { irqs: [1, 0, 0, 0, 0] });
    expect(shown(fn, 0x3c)).toBe(0x0100);
    expect(shown(fn, 0x30)).toBe(0);
    expect(shown(fn, 0x0c)).toBe(0);
    expect(shown(remoteFunctionOf(build), 0x3c)).toBe(0);
  });

  it('shows no I/O BAR', () => {
    const region = { sizeBytes: 4096, read: true, write: true, mmap: false, fileOffset: 0 };
    const regions = Array.from({ length: 2 }, () => ({ ...region, areas: undefined }));
    const build = (config: ConfigSpace): void => {
      config.define(0x10, 1, 0xffff_fffc);
      new Bars(config, [{ index: 1, sizeBytes: 4096, is64Bit: false, prefetchable: true }]);
    };
    const fn = remoteFunctionOf(build, { regions });
    expect(fn.bars).toMatchObject([{ index: 1, prefetchable: true }]);
    const registers = new RemoteRegisters(fn);
    registers.write(0x10, 0xffff_ffff, 15);
    expect(registers.own(0x10)).toBe(0);
    registers.write(0x14, 0xffff_ffff, 15);
    expect(registers.own(0x14)).toBe(0xffff_f008);
  });
});

describe('what a host has programmed', () => {
  const express = (): RemoteFunction =>
    remoteFunctionOf((config) => {
      new PcieCapability(config, ENDPOINT_PCIE);
      // Function Level Reset, bit 28 of Device Capabilities.
      config.setBits(0x44, 1 << 28);
    });
  const limitsOf = (registers: RemoteRegisters): DmaLimits => {
    const limits = new DmaLimits();
    registers.setLimits(limits);
    return limits;
  };

  it('bounds what the function asks for: MPS, MRRS, tags', () => {
    const registers = new RemoteRegisters(express());
    expect(limitsOf(registers)).toMatchObject({
      busMaster: false,
      maxPayloadBytes: 128,
      maxReadRequestBytes: 512,
      // Extended tags are as the function has them after a reset (7.5.3.4): here, on.
      tagBits: 8,
      timeoutEnabled: true,
    });
    registers.write(0x48, 0, 2);
    expect(limitsOf(registers)).toMatchObject({ maxReadRequestBytes: 128, tagBits: 5 });
    registers.captureBdf(0x0300);
    registers.write(4, 6, 3);
    // Device Control (48h): MRRS 4096 is 5 in bits 14:12, extended tags bit 8, MPS 4096 is 5 in bits 7:5.
    registers.write(0x48, (5 << 12) | (1 << 8) | (5 << 5), 3);
    expect(limitsOf(registers)).toMatchObject({
      busMaster: true,
      requesterId: 0x0300,
      // It supports 512.
      maxPayloadBytes: 512,
      maxReadRequestBytes: 4096,
      tagBits: 8,
    });
    // Device Control 2 (68h): 10-bit tags bit 12, timeout disabled bit 4.
    registers.write(0x68, (1 << 12) | (1 << 4), 3);
    expect(limitsOf(registers)).toMatchObject({ tagBits: 10, timeoutEnabled: false });
  });

  // Figure of 7.7.1: Message Control is the upper half of the first register, bit 23 of it "64-bit address
  // capable", bit 24 "per-vector masking capable", bits 19:17 Multiple Message Capable (2: four vectors).
  it.each([
    { control: 2 << 17, address: 0x0fee_0000, data: 8, masks: false },
    { control: (2 << 17) | (1 << 24), address: 0x0fee_0000, data: 8, masks: true },
    { control: (2 << 17) | (1 << 23), address: 0x3_0fee_0000, data: 12, masks: false },
    { control: (2 << 17) | (3 << 23), address: 0x3_0fee_0000, data: 12, masks: true },
  ])('has messages sent where it was told: $control', ({ control, address, data, masks }) => {
    const fn = remoteFunctionOf((config) => config.addCapability(0x05, 24, control >>> 16), {
      irqs: [0, 4, 0, 0, 0],
    });
    const registers = new RemoteRegisters(fn);
    // MSI Enable is bit 16, Multiple Message Enable bits 22:20: two vectors.
    registers.write(0x40, (1 << 20) | (1 << 16), 0b1100);
    registers.write(0x44, 0x0fee_0003, 15);
    registers.write(0x48, 3, 15);
    registers.write(0x40 + data, 0xabcd_1230, 15);
    registers.write(0x44 + data, 0b10, 15);
    expect(registers.msiEnabled).toBe(true);
    expect(registers.msiCount).toBe(2);
    expect(registers.msiAddress).toBe(address);
    expect([0, 1, 2].map((vector) => registers.msiData(vector))).toEqual([0x1230, 0x1231, 0x1230]);
    expect([0, 1, 3].map((vector) => registers.isMasked(vector))).toEqual([false, masks, masks]);
    registers.reset();
    expect(registers.msiEnabled).toBe(false);
    expect(registers.msiAddress).toBe(0);
  });

  it('is forgotten by a Function Level Reset, but for bus number and payload size', () => {
    const registers = new RemoteRegisters(express());
    registers.captureBdf(0x0300);
    registers.write(4, 6, 3);
    registers.write(0x48, (5 << 12) | (1 << 5), 3);
    expect(limitsOf(registers)).toMatchObject({ maxReadRequestBytes: 4096, tagBits: 5 });
    expect(registers.write(0x48, (1 << 15) | (1 << 5), 3)).toEqual({
      isPassed: true,
      isReset: true,
    });
    expect(limitsOf(registers)).toMatchObject({
      busMaster: false,
      requesterId: 0x0300,
      maxPayloadBytes: 256,
      maxReadRequestBytes: 512,
      tagBits: 8,
    });
  });
});
