import { describe, expect, it } from 'vitest';
import { TlpKind } from '#pcie/tlp';
import { FakeFunction } from '#testkit/fake-function';
import { type HostRig, rigWithoutSoftware } from '#testkit/host-rig';
import { type FunctionSurvey, surveyFunction } from './function-survey.ts';

const MIB = 2 ** 20;
const BUS_1 = 0x0100;
const BAR0 = { index: 0, sizeBytes: 65536, is64Bit: false, prefetchable: false };
const BAR2 = { index: 2, sizeBytes: 64 * MIB, is64Bit: true, prefetchable: true };
const FLR = 1 << 28;

function rigWith(fn: FakeFunction): HostRig {
  const rig = rigWithoutSoftware();
  rig.fabric.plug(0, fn);
  return rig;
}

function surveyOf(fn: FakeFunction): FunctionSurvey {
  const rig = rigWith(fn);
  const result = rig.run(surveyFunction(rig.host, 0, BUS_1));
  if (!result.ok) throw new Error(result.problem.message);
  return result.survey;
}

/** All of its configuration space. */
const registersOf = (fn: FakeFunction): number[] =>
  Array.from({ length: 1024 }, (_, index) => fn.config.read32(4 * index));

describe('a survey', () => {
  it('says what the function is', () => {
    const fn = new FakeFunction({ bars: [BAR0, BAR2], vectors: 4 });
    const survey = surveyOf(fn);
    expect(survey).toMatchObject({
      vendorId: 0x1234,
      deviceId: 0x5678,
      bars: [
        { index: 0, kind: 'mem32', prefetchable: false, sizeBytes: 65536 },
        { index: 2, kind: 'mem64', prefetchable: true, sizeBytes: 64 * MIB },
      ],
      configBytes: 4096,
      hasPin: false,
      hasMsix: false,
      flrOffset: undefined,
      // A 64-bit message: header, two words of address, then data (7.7.1).
      msi: { offset: fn.msi.offset, vectors: 4, dataOffset: fn.msi.offset + 12 },
    });
    expect(survey.config).toHaveLength(256);
    expect(survey.config.subarray(0, 4)).toEqual(Uint8Array.of(0x34, 0x12, 0x78, 0x56));
    expect(survey.config.subarray(9, 12), 'class code').toEqual(Uint8Array.of(0x00, 0x02, 0x03));
  });

  it('leaves every register as it was', () => {
    const fn = new FakeFunction({ bars: [BAR0, BAR2] });
    fn.config.write(0x10, 0xe001_0000, 15);
    fn.config.write(0x18, 0x0400_0000, 15);
    fn.config.write(0x1c, 0x40, 15);
    fn.config.write(0x3c, 0x0b, 1);
    const before = registersOf(fn);
    surveyOf(fn);
    expect(registersOf(fn)).toEqual(before);
    // Sizing alone writes: each of the two registers of BAR 2, that of BAR 0 and those that are no BAR.
    const registers = fn.configWrites.map(({ register }) => register);
    expect(new Set(registers)).toEqual(new Set([0x10, 0x14, 0x18, 0x1c, 0x20, 0x24]));
  });

  it('finds an interrupt pin, and knows INTA alone', () => {
    for (const [pin, hasPin] of [
      [0, false],
      [1, true],
      [2, false],
    ] as const) {
      const fn = new FakeFunction({ bars: [BAR0] });
      fn.config.define(0x3c, pin << 8, 0xff);
      expect(surveyOf(fn).hasPin, `pin ${pin}`).toBe(hasPin);
    }
  });

  it('finds MSI-X, and a function that can be reset by itself', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.addCapability(0x11, 12, 0);
    const capabilities = fn.pcie.offset + 4;
    fn.config.define(capabilities, fn.config.read32(capabilities) | FLR, 0);
    expect(surveyOf(fn)).toMatchObject({ hasMsix: true, flrOffset: fn.pcie.offset });
  });

  it('finds the data of a 32-bit message, and takes reserved numbers of vectors for 32', () => {
    // Message Control is the upper half: Multiple Message Capable in bits 19:17, 64-bit in bit 23.
    for (const [multiple, is64Bit, vectors, data] of [
      [0, false, 1, 8],
      [5, false, 32, 8],
      [6, true, 32, 12],
      [7, true, 32, 12],
    ] as const) {
      const fn = new FakeFunction({ bars: [BAR0] });
      const { offset } = fn.msi;
      const link = fn.config.read32(offset) & 0xffff;
      fn.config.define(offset, link | (multiple << 17) | (is64Bit ? 1 << 23 : 0), 0);
      expect(surveyOf(fn).msi).toEqual({ offset, vectors, dataOffset: offset + data });
    }
  });

  // Its registers were once looked for in the first 256 bytes alone, and the host ended.
  it('finds the registers of a capability that begins at the end of the first 256 bytes', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.define(0x34, 0xfc, 0);
    fn.config.define(0xfc, 0x10, 0);
    fn.config.define(0x100, FLR, 0);
    expect(surveyOf(fn)).toMatchObject({ configBytes: 4096, flrOffset: 0xfc, msi: undefined });
  });

  it('has 256 bytes of configuration space, and no message, of a plain PCI function', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.define(0x04, 0, 7);
    const survey = surveyOf(fn);
    expect(survey).toMatchObject({ configBytes: 256, msi: undefined });
  });

  // Enumeration always did; a VM's function was a problem for good.
  it('believes nothing where an access was not answered, and looks again', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    const rig = rigWith(fn);
    let held = 0;
    // All ones would be a list of capabilities without a message.
    rig.fabric.hold = ({ kind, register }) =>
      kind === TlpKind.CfgRd1 && register === 0x34 && held++ === 0;
    const result = rig.run(surveyFunction(rig.host, 0, BUS_1));
    expect(result).toMatchObject({ ok: true, survey: { msi: { offset: fn.msi.offset } } });
  });

  it('waits for a function that is not ready', () => {
    const fn = new FakeFunction({ bars: [BAR0], readyAtNs: 2e9 });
    const rig = rigWith(fn);
    expect(rig.run(surveyFunction(rig.host, 0, BUS_1)).ok).toBe(true);
    expect(rig.now).toBeGreaterThanOrEqual(2e9);
  });
});

describe('a function that is none', () => {
  const problemOf = (fn: FakeFunction, spoil = (_rig: HostRig): void => {}): unknown => {
    const rig = rigWith(fn);
    spoil(rig);
    const result = rig.run(surveyFunction(rig.host, 0, BUS_1, 1e9));
    return result.ok ? undefined : result.problem;
  };

  it('is a problem when it never is ready', () => {
    const fn = new FakeFunction({ bars: [BAR0], readyAtNs: 1e12 });
    expect(problemOf(fn)).toMatchObject({ kind: 'not-ready' });
  });

  it('is a problem when it is a bridge', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.define(0x0c, 1 << 16, 0xff);
    expect(problemOf(fn)).toEqual({
      kind: 'config-error',
      message: 'slot 0 holds a function with header type 1, expected 0',
    });
  });

  it('is a problem when a BAR of it has no size', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    fn.config.define(0x14, 0, 0x00ff_f000);
    expect(problemOf(fn)).toMatchObject({ kind: 'config-error' });
  });

  it('is a problem when it goes meanwhile: what is all ones is no survey', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    const problem = problemOf(fn, (rig) => {
      rig.fabric.hold = ({ kind, register }) => {
        if (kind === TlpKind.CfgRd1 && register === 0x80) fn.config.define(0, 0xffff_ffff, 0);
        return false;
      };
    });
    expect(problem).toEqual({
      kind: 'no-device',
      message: 'the function in slot 0 went while it was looked at',
    });
  });

  it('is a problem when it leaves accesses unanswered', () => {
    const fn = new FakeFunction({ bars: [BAR0] });
    const problem = problemOf(fn, (rig) => {
      rig.fabric.hold = ({ kind, register }) => kind === TlpKind.CfgRd1 && register === 0x3c;
    });
    expect(problem).toEqual({
      kind: 'no-answer',
      message: 'slot 0: config accesses were not answered in any of 4 tries',
    });
  });
});
