/** Events, shared copy engines, and the size and number of fetches. */
import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { AccelRig, DATA, FENCES, HOST_BASE } from '#testkit/accel-rig';
import { TlpKind } from '#pcie/tlp';
import { createAccelerator } from './accel.ts';
import { FLAG_DURATION, FLAG_FENCE, Opcode } from './accel-command.ts';
import * as reg from './accel-registers.ts';

const done = (index: number, value: number): object => ({
  flags: FLAG_FENCE,
  fenceAddress: FENCES + 8 * index,
  fenceValue: value,
});
const NOP = Opcode.NOP;

describe('events', () => {
  it('hold a channel up until another signals', () => {
    const rig = new AccelRig();
    for (const channel of [0, 1]) rig.enable(channel);
    const wait = { opcode: Opcode.EVENT_WAIT, operand0: 3, operand1: 2 };
    rig.push(0, { ...wait, ...done(0, 1) });
    rig.ring(0);
    expect(rig.fence(0)).toBe(0);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(3);
    rig.push(1, { opcode: Opcode.EVENT_SIGNAL, operand0: 3, operand1: 1 });
    rig.ring(1);
    expect(rig.fence(0)).toBe(0);
    rig.push(1, { opcode: NOP, flags: FLAG_DURATION, durationNs: 500 });
    rig.push(1, { opcode: Opcode.EVENT_SIGNAL, operand0: 3, operand1: 5 });
    rig.ring(1);
    rig.passTime(499);
    expect(rig.fence(0)).toBe(0);
    rig.passTime(500);
    expect(rig.fence(0)).toBe(1);
    // It has passed 4 as well, and a lesser signal takes nothing back.
    rig.push(1, { opcode: Opcode.EVENT_SIGNAL, operand0: 3, operand1: 4 });
    rig.ring(1);
    rig.push(0, { ...wait, operand1: 5, ...done(0, 2) });
    rig.ring(0);
    expect(rig.fence(0)).toBe(2);
  });

  it('are 0 after a reset, and a disabled channel waits no more', () => {
    const rig = new AccelRig();
    rig.enable(0);
    rig.run({ opcode: Opcode.EVENT_SIGNAL, operand0: 63, operand1: 7 });
    rig.run({ opcode: Opcode.EVENT_WAIT, operand0: 63, operand1: 7, ...done(0, 1) });
    expect(rig.fence(0)).toBe(1);
    rig.write(reg.RESET, reg.RESET_KEY);
    rig.enable(0);
    rig.run({ opcode: Opcode.EVENT_WAIT, operand0: 63, operand1: 7, ...done(0, 2) });
    expect(rig.fence(0)).toBe(1);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
    rig.enable(1);
    rig.push(1, { opcode: Opcode.EVENT_SIGNAL, operand0: 63, operand1: 7, ...done(1, 1) });
    rig.ring(1);
    expect([rig.fence(0), rig.fence(1)]).toEqual([1, 1]);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(0);
  });

  it('that there are not halt the channel', () => {
    const rig = new AccelRig();
    rig.enable(0);
    expect(rig.read(reg.EVENTS)).toBe(64);
    rig.run({ opcode: Opcode.EVENT_WAIT, operand0: 64 });
    expect(rig.error()).toBe(reg.AccelError.OUT_OF_RANGE);
  });
});

describe('shared copy engines', () => {
  const copy = { opcode: Opcode.COPY_HTOD, operand0: DATA, operand2: 256 };

  it('do one copy of a direction at a time, in the order asked', () => {
    const rig = new AccelRig({ sharedCopyEngines: true });
    for (const channel of [0, 1, 2, 3]) rig.enable(channel);
    // Channel 2's copy lasts 100 ns and holds the others up; DtoH has an engine of its own.
    for (const [index, channel] of [2, 0, 1].entries()) {
      const timed = { ...copy, operand1: 4096 * index, durationNs: 100 };
      rig.push(channel, { ...timed, ...done(channel, 1), flags: FLAG_FENCE | FLAG_DURATION });
      rig.ring(channel);
    }
    rig.push(3, { ...copy, opcode: Opcode.COPY_DTOH, operand0: 0, operand1: DATA, ...done(3, 1) });
    rig.ring(3);
    const fences = (): number[] => [0, 1, 2, 3].map((channel) => rig.fence(channel));
    expect(fences()).toEqual([0, 0, 0, 1]);
    rig.passTime(100);
    expect(fences()).toEqual([0, 0, 1, 1]);
    rig.passTime(200);
    expect(fences()).toEqual([1, 0, 1, 1]);
    rig.passTime(300);
    expect(fences()).toEqual([1, 1, 1, 1]);
  });

  it('go on when the channel that has one is disabled', () => {
    const rig = new AccelRig({ sharedCopyEngines: true });
    for (const channel of [0, 1]) rig.enable(channel);
    const endless = { ...copy, flags: FLAG_DURATION, durationNs: 2 ** 32 - 1 };
    rig.push(0, endless);
    rig.ring(0);
    rig.push(1, { ...copy, ...done(1, 1) });
    rig.ring(1);
    expect(rig.fence(1)).toBe(0);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
    expect(rig.fence(1)).toBe(1);
  });
});

describe('fetches', () => {
  const commands = (count: number): object[] =>
    Array.from({ length: count }, (_, index) => ({ opcode: NOP, ...done(0, index + 1) }));
  /** Sizes in commands of the fetches that wait; each is one read at MRRS 4096. */
  const waiting = (rig: AccelRig): number[] => rig.host.waiting.map((tlp) => tlp.lengthDw / 16);

  function rigOf(options: object): AccelRig {
    const rig = new AccelRig(options);
    // Device Control: MRRS 4096 (5 in bits 14:12).
    const express = rig.findCapability(0x10);
    rig.host.configWrite(express + 8, 5 << 12, 3);
    rig.enable(0);
    rig.host.answerReads = false;
    rig.host.sent.length = 0;
    return rig;
  }

  it('bring as many commands as configured, one after another by default', () => {
    const rig = rigOf({ fetchCommands: 3, prefetchCommands: 8 });
    rig.run(...commands(7));
    // 3 at a time, cut by the end of the buffer of 8.
    expect(waiting(rig)).toEqual([3]);
    rig.host.answerAll();
    expect([waiting(rig), rig.fence(0)]).toEqual([[3], 3]);
    rig.host.answerAll();
    expect([waiting(rig), rig.fence(0)]).toEqual([[1], 6]);
    rig.host.answerAll();
    expect(rig.fence(0)).toBe(7);
  });

  it('may be under way together, come in any order, and count in ring order', () => {
    const rig = rigOf({ fetchCommands: 2, prefetchCommands: 8, fetchesInFlight: 3 });
    rig.run(...commands(9));
    expect(waiting(rig)).toEqual([2, 2, 2]);
    const [first, second, third] = rig.host.waiting.splice(0);
    rig.host.answer(third!);
    rig.host.answer(second!);
    expect(rig.fence(0)).toBe(0);
    rig.host.answer(first!);
    expect(rig.fence(0)).toBe(6);
    rig.host.answerAll();
    rig.host.answerAll();
    expect(rig.fence(0)).toBe(9);
    const reads = rig.host.sent.filter(({ tlp }) => tlp.kind === TlpKind.MRd64);
    const bytes = reads.reduce((sum, { tlp }) => sum + 4 * tlp.lengthDw, 0);
    expect(bytes).toBe(9 * 64);
    expect(reads[0]!.address).toBe(HOST_BASE);
  });

  it.each([
    ['fetchCommands', { fetchCommands: 17 }],
    ['fetchCommands', { fetchCommands: 0 }],
    ['fetchesInFlight', { fetchesInFlight: 65 }],
  ])('a wrong %s is named', (name, options) => {
    const make = (): unknown =>
      createAccelerator({ uuid: '00000000-0000-4000-8000-000000000000', ...options });
    expect(make).toThrow(DxpuError);
    expect(make).toThrow(name);
  });
});
