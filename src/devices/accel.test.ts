import { beforeEach, describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { CompletionStatus } from '#pcie/tlp';
import {
  AccelRig,
  BAR2,
  DATA,
  FENCES,
  HOST_BASE,
  HOST_BYTES,
  MSI_DATA,
  RING_ENTRIES,
} from '#testkit/accel-rig';
import { type AcceleratorOptions, createAccelerator } from './accel.ts';
import {
  type AccelCommand,
  FLAG_ACCUMULATE,
  FLAG_DURATION,
  FLAG_FENCE,
  FLAG_INTERRUPT,
  floatBits,
  Opcode,
} from './accel-command.ts';
import * as reg from './accel-registers.ts';

const { AccelError } = reg;

let rig: AccelRig;

function fence(index: number, value: number): Partial<AccelCommand> {
  return { flags: FLAG_FENCE, fenceAddress: FENCES + 8 * index, fenceValue: value };
}

function hostFloats(address: number, count: number): Float32Array {
  return new Float32Array(rig.host.memory.buffer, address - HOST_BASE, count);
}

/** Device memory through BAR2. */
function deviceWord(offset: number): number {
  return rig.host.read32(BAR2 + offset);
}

beforeEach(() => {
  rig = new AccelRig();
});

describe('registers', () => {
  it('identify the device', () => {
    expect(rig.host.configRead(0)).toBe(0x0001_ddb0);
    expect(rig.host.configRead(8) >>> 8).toBe(0x120000);
    expect(rig.read(reg.ID)).toBe(0x43415844); // 'D' 44h, 'X' 58h, 'A' 41h, 'C' 43h
    expect(rig.read(reg.CHANNELS)).toBe(4);
    expect(rig.read(reg.MEMORY_BYTES_LO)).toBe(1 << 20);
    // 00112233-4455-6677-8899-aabbccddeeff, bytes in order, little-endian words.
    expect([reg.UUID_0, reg.UUID_1, reg.UUID_2, reg.UUID_3].map((at) => rig.read(at))).toEqual([
      0x33221100, 0x77665544, 0xbbaa9988, 0xffeeddcc,
    ]);
    // Device serial number: at 100h behind AER; the first eight bytes of the UUID, as 64 bits.
    const dsn = rig.host.configRead(0x100) >>> 20;
    expect(rig.host.configRead(dsn) & 0xffff).toBe(3);
    expect(rig.host.configRead(dsn + 8)).toBe(0x00112233);
    expect(rig.host.configRead(dsn + 4)).toBe(0x44556677);
  });

  it('count and log unknown ones, and answer 0', () => {
    expect(rig.read(0x0800)).toBe(0);
    rig.write(0x3ffc, 1);
    rig.write(reg.ID, 1);
    rig.host.memoryWrite(0xe000_0000 + reg.SCRATCH, Uint8Array.of(1, 2));
    expect(rig.channel(4, reg.RING_HEAD)).toBe(0);
    expect(rig.read(reg.SCRATCH)).toBe(0);
    expect(rig.read(reg.UNKNOWN_COUNT)).toBe(5);
    expect(rig.read(reg.UNKNOWN_OFFSET)).toBe(0x1400 + reg.RING_HEAD);
    expect(rig.log[0]).toBe('read of unknown register 0x0800');
    expect(rig.log).toHaveLength(5);
  });

  it('keep what is written, and latch the upper half of the time', () => {
    rig.write(reg.SCRATCH, 0xdead_beef);
    expect(rig.read(reg.SCRATCH)).toBe(0xdead_beef);
    rig.passTime(5 * 2 ** 32 + 17);
    expect(rig.read(reg.TIME_NS_LO)).toBe(17);
    rig.passTime(6 * 2 ** 32);
    expect(rig.read(reg.TIME_NS_HI)).toBe(5);
  });
});

describe('copies', () => {
  it('bring bytes to the device and back, at any alignment', () => {
    rig.enable();
    const data = Uint8Array.from({ length: 5003 }, (_, i) => (i * 17 + 3) & 255);
    rig.host.memory.set(data, DATA + 5 - HOST_BASE);
    rig.run(
      { opcode: Opcode.COPY_HTOD, operand0: DATA + 5, operand1: 1001, operand2: 5003 },
      { opcode: Opcode.COPY_DTOD, operand0: 1001, operand1: 1003, operand2: 5003 },
      {
        ...fence(0, 77),
        opcode: Opcode.COPY_DTOH,
        operand0: 1003,
        operand1: DATA + 0x1_0003,
        operand2: 5003,
      },
    );
    const back = rig.host.memory.subarray(DATA + 0x1_0003 - HOST_BASE).subarray(0, 5003);
    expect(Buffer.compare(back, data)).toBe(0);
    expect(rig.fence(0)).toBe(77);
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(3);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(1);
    expect(rig.read(reg.STATUS)).toBe(1);
  });

  it('show in device memory behind BAR2', () => {
    rig.enable();
    rig.run({ opcode: Opcode.FILL, operand1: 64, operand2: 2, scalar: 0xfeed_0001 });
    expect([60, 64, 68, 72].map(deviceWord)).toEqual([0, 0xfeed_0001, 0xfeed_0001, 0]);
    rig.host.write32(BAR2 + 68, 5);
    rig.run({ opcode: Opcode.COPY_DTOH, operand0: 64, operand1: DATA, operand2: 8 });
    expect([...rig.host.memory.subarray(DATA - HOST_BASE, DATA - HOST_BASE + 8)]).toEqual([
      1, 0, 0xed, 0xfe, 5, 0, 0, 0,
    ]);
  });

  it('of nothing do nothing', () => {
    rig.enable();
    rig.run(
      { opcode: Opcode.COPY_HTOD, operand0: DATA, operand1: 0, operand2: 0 },
      { opcode: Opcode.COPY_DTOH, operand0: 1 << 20, operand1: DATA, operand2: 0 },
      { ...fence(0, 1) },
    );
    expect(rig.fence(0)).toBe(1);
  });
});

describe('HtoD copies that follow each other', () => {
  const copy = (index: number, fields: Partial<AccelCommand> = {}): Partial<AccelCommand> => ({
    ...fence(index, 1),
    opcode: Opcode.COPY_HTOD,
    operand0: DATA + 0x1000 * index,
    operand1: 256 * index,
    operand2: 256,
    ...fields,
  });
  const answerCopy = (index: number): void => {
    const from = DATA + 0x1000 * index;
    const requests = rig.host.waiting.filter(
      ({ addressLo }) => addressLo >= from % 2 ** 32 && addressLo < (from % 2 ** 32) + 0x1000,
    );
    for (const request of requests) {
      rig.host.waiting.splice(rig.host.waiting.indexOf(request), 1);
      rig.host.answer(request);
    }
  };

  beforeEach(() => {
    rig.enable();
    rig.host.answerReads = false;
    for (let i = 0; i < 3; i++) {
      rig.host.memory.fill(
        i + 1,
        DATA + 0x1000 * i - HOST_BASE,
        DATA + 0x1000 * i + 256 - HOST_BASE,
      );
    }
  });

  function runAll(...commands: Partial<AccelCommand>[]): void {
    rig.push(0, ...commands);
    rig.ring(0);
    const [fetch] = rig.host.waiting.splice(0);
    if (fetch !== undefined) rig.host.answer(fetch);
  }

  it('read ahead of each other, and signal in order', () => {
    runAll(copy(0), copy(1), copy(2), fence(3, 1));
    expect(rig.host.waiting).toHaveLength(3);
    answerCopy(1);
    answerCopy(2);
    expect(deviceWord(256)).toBe(0x02020202);
    expect([0, 1, 2, 3].map((i) => rig.fence(i))).toEqual([0, 0, 0, 0]);
    answerCopy(0);
    expect([0, 1, 2, 3].map((i) => rig.fence(i))).toEqual([1, 1, 1, 1]);
    expect([0, 512].map(deviceWord)).toEqual([0x01010101, 0x03030303]);
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(4);
  });

  it('wait where they write over each other', () => {
    runAll(copy(0), copy(1, { operand1: 255 }), copy(2));
    expect(rig.host.waiting).toHaveLength(1);
    answerCopy(0);
    expect(rig.host.waiting).toHaveLength(2);
    answerCopy(2);
    answerCopy(1);
    expect(deviceWord(252)).toBe(0x02010101);
    expect(deviceWord(512)).toBe(0x03030303);
    expect(rig.fence(2)).toBe(1);
  });

  it('do not read ahead of another command', () => {
    runAll(copy(0), { opcode: Opcode.FILL, operand1: 256, operand2: 64, scalar: 9 }, copy(1));
    expect(rig.host.waiting).toHaveLength(1);
    answerCopy(0);
    expect(deviceWord(256)).toBe(9);
    answerCopy(1);
    expect(deviceWord(256)).toBe(0x02020202);
  });

  it('fail in order too: the error of a later one shows when its turn comes', () => {
    runAll(copy(0), copy(1), copy(2));
    const later = rig.host.waiting.splice(1, 1);
    for (const request of later) rig.host.answerWith(request, CompletionStatus.UR);
    expect(rig.error()).toBe(AccelError.NONE);
    answerCopy(0);
    expect(rig.error()).toBe(AccelError.DMA_UNSUPPORTED);
    expect(rig.channel(0, reg.ERROR_INDEX)).toBe(1);
    expect([0, 1, 2].map((i) => rig.fence(i))).toEqual([1, 0, 0]);
    answerCopy(2);
    expect(deviceWord(512)).toBe(0);
  });

  it('with a bad one behind them are done before it is told', () => {
    runAll(copy(0), copy(1, { operand1: 1 << 20 }));
    answerCopy(0);
    expect(rig.fence(0)).toBe(1);
    expect(rig.error()).toBe(AccelError.OUT_OF_RANGE);
    expect(rig.channel(0, reg.ERROR_INDEX)).toBe(1);
  });
});

describe('kernels', () => {
  it('saxpy rounds the product before the sum', () => {
    // 0.1f × 3 + 1: once rounded (fused) and twice rounded differ for some of these.
    const count = 999;
    const x = Float32Array.from({ length: count }, (_, i) => i / 7 - 50);
    const y = Float32Array.from({ length: count }, (_, i) => 1 / (i + 1));
    hostFloats(DATA, count).set(x);
    hostFloats(DATA + 0x2000, count).set(y);
    const alpha = Math.fround(0.1);
    rig.enable();
    rig.run(
      { opcode: Opcode.COPY_HTOD, operand0: DATA, operand1: 0, operand2: 4 * count },
      { opcode: Opcode.COPY_HTOD, operand0: DATA + 0x2000, operand1: 8192, operand2: 4 * count },
      {
        opcode: Opcode.SAXPY,
        operand0: 0,
        operand1: 8192,
        operand2: count,
        scalar: floatBits(alpha),
      },
      { opcode: Opcode.COPY_DTOH, operand0: 8192, operand1: DATA + 0x4000, operand2: 4 * count },
    );
    const expected = x.map((value, i) => Math.fround(alpha * value) + (y[i] as number));
    expect(hostFloats(DATA + 0x4000, count)).toEqual(expected);
    const fused = x.map((value, i) => alpha * value + (y[i] as number));
    expect(expected).not.toEqual(fused);
  });

  it('sgemm, end to end, has the bits of a plain fp32 loop', () => {
    const [m, n, k] = [33, 47, 61];
    const a = Float32Array.from({ length: m * k }, (_, i) => Math.sin(i) * 3);
    const b = Float32Array.from({ length: k * n }, (_, i) => Math.cos(i * 1.7));
    hostFloats(DATA, m * k).set(a);
    hostFloats(DATA + 0x1_0000, k * n).set(b);
    const [deviceA, deviceB, deviceC] = [0, 0x1_0000, 0x2_0000];
    rig.enable();
    rig.run(
      { opcode: Opcode.COPY_HTOD, operand0: DATA, operand1: deviceA, operand2: 4 * m * k },
      {
        opcode: Opcode.COPY_HTOD,
        operand0: DATA + 0x1_0000,
        operand1: deviceB,
        operand2: 4 * k * n,
      },
      { opcode: Opcode.SGEMM, operand0: deviceA, operand1: deviceB, operand2: deviceC, m, n, k },
      {
        ...fence(3, 9),
        opcode: Opcode.COPY_DTOH,
        operand0: deviceC,
        operand1: DATA + 0x2_0000,
        operand2: 4 * m * n,
      },
    );
    expect(rig.error()).toBe(AccelError.NONE);
    expect(rig.fence(3)).toBe(9);
    const c = new Float32Array(m * n);
    for (let i = 0; i < m; i++) {
      for (let j = 0; j < n; j++) {
        let sum = 0;
        for (let s = 0; s < k; s++) {
          const product = Math.fround((a[i * k + s] as number) * (b[s * n + j] as number));
          sum = Math.fround(sum + product);
        }
        c[i * n + j] = sum;
      }
    }
    expect(hostFloats(DATA + 0x2_0000, m * n)).toEqual(c);

    // Again onto C: by halves of k the sums go on where they stopped.
    rig.run(
      { opcode: Opcode.FILL, operand1: deviceC, operand2: m * n, scalar: floatBits(1.5) },
      {
        opcode: Opcode.SGEMM,
        flags: FLAG_ACCUMULATE,
        operand0: deviceA,
        operand1: deviceB,
        operand2: deviceC,
        m: 1,
        n: 1,
        k: 1,
      },
      { opcode: Opcode.COPY_DTOH, operand0: deviceC, operand1: DATA, operand2: 4 },
    );
    const product = Math.fround((a[0] as number) * (b[0] as number));
    expect(hostFloats(DATA, 1)[0]).toBe(Math.fround(1.5 + product));
  });

  it('of no size do nothing; of no depth sgemm clears C', () => {
    rig.enable();
    rig.run(
      { opcode: Opcode.FILL, operand1: 0, operand2: 4, scalar: 7 },
      { opcode: Opcode.SGEMM, operand0: 64, operand1: 64, operand2: 0, m: 0, n: 4, k: 5 },
      { opcode: Opcode.SGEMM, operand0: 64, operand1: 64, operand2: 0, m: 1, n: 2, k: 0 },
      // Four billion rows of nothing must not take time either.
      { opcode: Opcode.SGEMM, operand0: 64, operand1: 64, operand2: 0, m: 4e9, n: 0, k: 0 },
      { opcode: Opcode.SAXPY, operand0: 0, operand1: 0, operand2: 0 },
    );
    expect(rig.error()).toBe(AccelError.NONE);
    expect([0, 4, 8, 12].map(deviceWord)).toEqual([0, 0, 7, 7]);
  });
});

describe('rings', () => {
  it('are fetched ahead, several commands a read, and wrap', () => {
    rig.enable();
    for (let round = 0; round < 5; round++) {
      rig.host.sent.length = 0;
      for (let i = 0; i < 15; i++) rig.push(0, fence(i, round * 100 + i));
      rig.ring(0);
      for (let i = 0; i < 15; i++) expect(rig.fence(i)).toBe(round * 100 + i);
      expect(rig.channel(0, reg.RING_HEAD)).toBe((15 * (round + 1)) % RING_ENTRIES);
      // 15 × 64 bytes: at most 8 entries a request (MRRS 512), two pieces where the ring wraps.
      const reads = rig.host.sent.filter(({ tlp }) => tlp.kind === 0x20);
      expect(reads.length).toBeLessThanOrEqual(3);
    }
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(75);
  });

  it('are never fetched beyond the tail', () => {
    rig.enable();
    rig.host.answerReads = false;
    rig.push(0, {}, {}, {});
    rig.ring(0);
    expect(rig.host.waiting.map(({ lengthDw }) => lengthDw)).toEqual([48]);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(3);
    expect(rig.read(reg.STATUS)).toBe(3);
  });

  it('of several channels run at the same time', () => {
    rig.enable(0);
    rig.enable(1);
    rig.push(0, { flags: FLAG_DURATION, durationNs: 1000 }, fence(0, 1));
    rig.push(1, { flags: FLAG_DURATION, durationNs: 400 }, fence(1, 1));
    rig.ring(0);
    rig.ring(1);
    rig.passTime(999);
    expect([rig.fence(0), rig.fence(1)]).toEqual([0, 1]);
    rig.passTime(1000);
    expect(rig.fence(0)).toBe(1);
  });

  it('with prefetch of one fetch each command by itself', () => {
    rig = new AccelRig({ prefetchCommands: 1 });
    rig.enable();
    rig.run({}, {}, { ...fence(0, 5) });
    expect(rig.fence(0)).toBe(5);
    expect(rig.read(reg.DMA_READ_REQUESTS)).toBe(3);
  });

  it('registers stay as they are while the channel is enabled', () => {
    rig.enable();
    rig.writeChannel(0, reg.RING_ENTRIES, 4);
    expect(rig.channel(0, reg.RING_ENTRIES)).toBe(RING_ENTRIES);
  });
});

describe('time', () => {
  it('a duration holds the fence back, from the start of the command', () => {
    rig.enable();
    rig.run(
      { ...fence(0, 1), flags: FLAG_FENCE | FLAG_DURATION, durationNs: 2500 },
      { ...fence(1, 2), flags: FLAG_FENCE | FLAG_DURATION, durationNs: 500 },
    );
    expect(rig.device.nextDeadlineNs()).toBe(2500);
    rig.passTime(2499);
    expect(rig.fence(0)).toBe(0);
    rig.passTime(2500);
    expect([rig.fence(0), rig.fence(1)]).toEqual([1, 0]);
    rig.passTime(3000);
    expect(rig.fence(1)).toBe(2);
  });

  it('kernels take nsPerFlop for each operation', () => {
    rig = new AccelRig({ nsPerFlop: 0.5 });
    rig.enable();
    // 2 × 4 × 5 × 6 = 240 operations, 120 ns.
    rig.run({
      ...fence(0, 1),
      opcode: Opcode.SGEMM,
      operand0: 0,
      operand1: 1024,
      operand2: 2048,
      m: 4,
      n: 5,
      k: 6,
    });
    expect(rig.device.nextDeadlineNs()).toBe(120);
  });
});

describe('fences and interrupts', () => {
  it('come behind the data, the interrupt behind the fence', () => {
    rig.enable();
    rig.host.sent.length = 0;
    rig.run({
      opcode: Opcode.COPY_DTOH,
      operand1: DATA,
      operand2: 300,
      flags: FLAG_FENCE | FLAG_INTERRUPT,
      fenceAddress: FENCES,
      fenceValue: 2 ** 40 + 3,
    });
    const writes = rig.host.sent.filter(({ tlp }) => tlp.payloadBytes > 0).map((s) => s.address);
    expect(writes).toEqual([DATA, DATA + 128, DATA + 256, FENCES, 0xfee0_0000]);
    expect(rig.host.interrupts).toEqual([MSI_DATA]);
    expect(rig.fence(0)).toBe(2 ** 40 + 3);
    expect(rig.channel(0, reg.FENCE_VALUE_LO)).toBe(3);
    expect(rig.channel(0, reg.FENCE_VALUE_HI)).toBe(256);
    expect(rig.read(reg.INTERRUPT_STATUS)).toBe(1);
    rig.write(reg.INTERRUPT_STATUS, 1);
    expect(rig.read(reg.INTERRUPT_STATUS)).toBe(0);
  });

  it('all 64 bits of a value go through', () => {
    rig.enable();
    rig.push(0, fence(0, 0));
    rig.view.setBigUint64(16, 0xfedc_ba98_7654_3211n, true); // COMMAND_FENCE_VALUE of entry 0
    rig.ring(0);
    expect(rig.view.getBigUint64(FENCES - HOST_BASE, true)).toBe(0xfedc_ba98_7654_3211n);
  });

  it('without MSI the status bit alone is set, and the ring goes on', () => {
    rig.host.configWrite(rig.findCapability(5), 0, 4);
    rig.enable();
    rig.run({ flags: FLAG_INTERRUPT }, fence(0, 1));
    expect(rig.host.interrupts).toEqual([]);
    expect(rig.read(reg.INTERRUPT_STATUS)).toBe(1);
    expect(rig.fence(0)).toBe(1);
  });

  it('wait for the port', () => {
    rig.enable();
    rig.host.postedCredits = 0;
    rig.run(fence(0, 1), fence(1, 1));
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(0);
    rig.host.postedCredits = 1;
    rig.host.resume();
    expect([rig.fence(0), rig.fence(1)]).toEqual([1, 0]);
    rig.host.postedCredits = 1;
    rig.host.resume();
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(2);
  });
});

describe('errors', () => {
  const memory = 1 << 20;
  const far = 2 ** 53 - 4096;
  it.each<[string, Partial<AccelCommand>, number, number]>([
    ['an empty entry', { opcode: 0 }, AccelError.BAD_COMMAND, 0],
    ['an unknown opcode', { opcode: 0x7f }, AccelError.BAD_COMMAND, 0],
    ['a reserved flag', { flags: 0x40 }, AccelError.BAD_COMMAND, 0],
    ['ACCUMULATE on a NOP', { flags: FLAG_ACCUMULATE }, AccelError.BAD_COMMAND, 0],
    [
      'a fence between words',
      { flags: FLAG_FENCE, fenceAddress: FENCES + 4 },
      AccelError.MISALIGNED,
      FENCES + 4,
    ],
    [
      'a fence past 2^53',
      { flags: FLAG_FENCE, fenceAddress: 2 ** 53 - 8 },
      AccelError.OUT_OF_RANGE,
      2 ** 53 - 8,
    ],
    [
      'a copy past device memory',
      { opcode: Opcode.COPY_HTOD, operand0: DATA, operand1: memory - 8, operand2: 9 },
      AccelError.OUT_OF_RANGE,
      memory - 8,
    ],
    [
      'a copy from past 2^53',
      { opcode: Opcode.COPY_HTOD, operand0: far, operand1: 0, operand2: 4096 },
      AccelError.OUT_OF_RANGE,
      far,
    ],
    [
      'a copy of 2^52 bytes',
      { opcode: Opcode.COPY_DTOH, operand0: 0, operand1: 0, operand2: 2 ** 52 },
      AccelError.OUT_OF_RANGE,
      0,
    ],
    [
      'a DtoD copy from past the end',
      { opcode: Opcode.COPY_DTOD, operand0: memory, operand1: 0, operand2: 1 },
      AccelError.OUT_OF_RANGE,
      memory,
    ],
    ['a fill at 2', { opcode: Opcode.FILL, operand1: 2, operand2: 1 }, AccelError.MISALIGNED, 2],
    [
      'a fill past the end',
      { opcode: Opcode.FILL, operand1: memory - 4, operand2: 2 },
      AccelError.OUT_OF_RANGE,
      memory - 4,
    ],
    [
      'a huge saxpy',
      { opcode: Opcode.SAXPY, operand0: 0, operand1: 0, operand2: 2 ** 29 + 1 },
      AccelError.TOO_LARGE,
      0,
    ],
    ['a huge sgemm', { opcode: Opcode.SGEMM, m: 1024, n: 1024, k: 513 }, AccelError.TOO_LARGE, 0],
    [
      'an sgemm whose B is too large',
      { opcode: Opcode.SGEMM, operand0: 0, operand1: 0x8_0000, operand2: 64, m: 1, n: 2048, k: 65 },
      AccelError.OUT_OF_RANGE,
      0x8_0000,
    ],
    [
      'an sgemm onto its own A',
      { opcode: Opcode.SGEMM, operand0: 0, operand1: 4096, operand2: 60, m: 4, n: 4, k: 4 },
      AccelError.OVERLAP,
      60,
    ],
  ])('%s', (_name, command, code, address) => {
    rig.enable();
    rig.run(fence(0, 1), command, fence(1, 1));
    expect(rig.error()).toBe(code);
    expect(rig.channel(0, reg.ERROR_INDEX)).toBe(1);
    const low = rig.channel(0, reg.ERROR_ADDRESS_LO);
    const high = rig.channel(0, reg.ERROR_ADDRESS_HI);
    expect(high * 2 ** 32 + low).toBe(address);
    expect([rig.fence(0), rig.fence(1)]).toEqual([1, 0]);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(5);
    expect(rig.read(reg.STATUS)).toBe(5);
    expect(rig.read(reg.INTERRUPT_STATUS)).toBe(1 << 16);
    expect(rig.host.interrupts).toEqual([MSI_DATA]);
    expect(rig.log.at(-1)).toContain(`channel 0 halted at ring index 1: error ${code}`);
  });

  it('sgemm of exactly 2^30 operations is taken, if it fits', () => {
    rig.enable();
    // 2 × 16 × 16 × 2097152 = 2^30, but A alone is 128 MiB: out of range, not too large.
    rig.run({ opcode: Opcode.SGEMM, m: 16, n: 16, k: 2 ** 21 });
    expect(rig.error()).toBe(AccelError.OUT_OF_RANGE);
  });

  it('a reserved byte that is set', () => {
    rig.enable();
    rig.push(0, {});
    rig.view.setUint8(3, 1);
    rig.ring(0);
    expect(rig.error()).toBe(AccelError.BAD_COMMAND);
  });

  it.each<[string, CompletionStatus, number]>([
    ['UR', CompletionStatus.UR, AccelError.DMA_UNSUPPORTED],
    ['CA', CompletionStatus.CA, AccelError.DMA_ABORTED],
  ])('a copy answered %s', (_name, status, code) => {
    rig.enable();
    const from = DATA + 0x100;
    const answer = rig.host.answer.bind(rig.host);
    rig.host.answer = (request) => {
      if (request.addressLo === (from % 2 ** 32) + 512) rig.host.answerWith(request, status);
      else answer(request);
    };
    rig.run({ opcode: Opcode.COPY_HTOD, operand0: from, operand1: 0, operand2: 2048 });
    expect(rig.error()).toBe(code);
    expect(rig.channel(0, reg.ERROR_ADDRESS_LO)).toBe(from % 2 ** 32);
    expect(rig.read(reg.DMA_FAILED_REQUESTS)).toBe(1);
  });

  it('a ring outside host memory: the commands before it have run', () => {
    rig.enable();
    // The ring ends where host memory does, so the second fetch is answered UR.
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
    const base = HOST_BASE + HOST_BYTES - 8 * 64;
    rig.writeChannel(0, reg.RING_BASE_LO, base % 2 ** 32);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 1);
    for (let i = 0; i < 8; i++) {
      rig.view.setUint8(HOST_BYTES - 8 * 64 + 64 * i, Opcode.NOP);
    }
    rig.write(reg.DOORBELL_BASE, 8);
    expect(rig.error()).toBe(AccelError.NONE);
    rig.write(reg.DOORBELL_BASE, 10);
    expect(rig.error()).toBe(AccelError.DMA_UNSUPPORTED);
    expect(rig.channel(0, reg.ERROR_INDEX)).toBe(8);
    expect(rig.channel(0, reg.COMMANDS_DONE)).toBe(8);
    expect(rig.channel(0, reg.ERROR_ADDRESS_LO)).toBe((base + 8 * 64) % 2 ** 32);
    // The error interrupt was not asked for.
    expect(rig.host.interrupts).toEqual([]);
  });

  it('a copy that is never answered', () => {
    rig.enable();
    rig.push(0, { opcode: Opcode.COPY_HTOD, operand0: DATA, operand1: 0, operand2: 64 });
    rig.ring(0);
    rig.enable(1);
    rig.host.answerReads = false;
    rig.push(1, fence(0, 1));
    rig.ring(1);
    rig.passTime(4e9 - 1);
    expect(rig.error(1)).toBe(AccelError.NONE);
    rig.passTime(4e9);
    expect(rig.error(1)).toBe(AccelError.DMA_TIMEOUT);
    expect(rig.error(0)).toBe(AccelError.NONE);
  });

  it.each([
    ['entries not a power of two', 12, 0],
    ['one entry', 1, 0],
    ['too many entries', 131072, 0],
    ['a base between commands', 16, 32],
  ])('a ring with %s', (_name, entries, shift) => {
    rig.writeChannel(0, reg.RING_BASE_LO, shift);
    rig.writeChannel(0, reg.RING_BASE_HI, 1);
    rig.writeChannel(0, reg.RING_ENTRIES, entries);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 1);
    expect(rig.error()).toBe(AccelError.BAD_RING);
  });

  it('a tail beyond the ring, then doorbells are ignored, then a restart works', () => {
    rig.enable();
    rig.write(reg.DOORBELL_BASE, RING_ENTRIES);
    expect(rig.error()).toBe(AccelError.BAD_RING);
    rig.run(fence(0, 1));
    expect(rig.fence(0)).toBe(0);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(0);
    rig.enable();
    expect(rig.error()).toBe(AccelError.NONE);
    rig.run(fence(0, 2));
    expect(rig.fence(0)).toBe(2);
  });
});

describe('stopping', () => {
  it('a channel drops what is running; data that still comes is dropped', () => {
    rig.enable();
    rig.host.answerReads = false;
    rig.push(0, {
      ...fence(0, 1),
      opcode: Opcode.COPY_HTOD,
      operand0: DATA,
      operand1: 0,
      operand2: 64,
    });
    rig.ring(0);
    rig.host.answerAll(); // the command
    expect(rig.host.waiting).toHaveLength(1);
    rig.host.memory.fill(0xaa, DATA - HOST_BASE, DATA - HOST_BASE + 64);
    rig.writeChannel(0, reg.CHANNEL_CONTROL, 0);
    rig.host.answerAll();
    expect(deviceWord(0)).toBe(0);
    expect(rig.fence(0)).toBe(0);
    expect(rig.read(reg.DMA_UNEXPECTED_COMPLETIONS)).toBe(0);
  });

  it('by the RESET register keeps memory and configuration', () => {
    rig.enable();
    rig.run(
      { opcode: Opcode.FILL, operand1: 0, operand2: 1, scalar: 5 },
      { flags: FLAG_INTERRUPT },
    );
    rig.write(reg.SCRATCH, 1);
    rig.write(reg.RESET, 1); // not the key
    expect(rig.read(reg.SCRATCH)).toBe(1);
    rig.write(reg.RESET, reg.RESET_KEY);
    expect(rig.read(reg.SCRATCH)).toBe(0);
    expect(rig.read(reg.INTERRUPT_STATUS)).toBe(0);
    expect(rig.channel(0, reg.CHANNEL_STATUS)).toBe(0);
    expect(rig.channel(0, reg.RING_ENTRIES)).toBe(0);
    expect(deviceWord(0)).toBe(5);
    expect(rig.read(reg.UNKNOWN_COUNT)).toBe(0);
  });

  it('by a conventional reset, then a scrub, leaves nothing of a tenant', () => {
    rig.enable();
    rig.host.answerReads = false;
    rig.host.write32(BAR2 + 0x100, 0x5ec2e7);
    rig.push(0, { flags: FLAG_DURATION, durationNs: 1000 });
    rig.ring(0);
    rig.host.answerAll();
    rig.device.reset(rig.host.now);
    expect(rig.device.nextDeadlineNs()).toBe(Infinity);
    expect(rig.host.configRead(0x10)).toBe(0);
    expect(rig.host.configRead(4) & 7).toBe(0);
    rig.device.scrub(rig.host.now);
    rig.configure();
    expect(deviceWord(0x100)).toBe(0);
    expect(rig.channel(0, reg.RING_BASE_LO)).toBe(0);
    rig.host.answerReads = true;
    rig.enable();
    rig.run(fence(0, 3));
    expect(rig.fence(0)).toBe(3);
  });
});

describe('options', () => {
  const uuid = '00112233-4455-6677-8899-aabbccddeeff';
  it.each<[string, AcceleratorOptions]>([
    ['uuid', { uuid: '0011' }],
    ['uuid', { uuid: uuid.toUpperCase() }],
    ['memoryBytes', { uuid, memoryBytes: 3 << 20 }],
    ['memoryBytes', { uuid, memoryBytes: 1 << 19 }],
    ['channels', { uuid, channels: 17 }],
    ['tags', { uuid, tags: 769 }],
    ['prefetchCommands', { uuid, prefetchCommands: 3 }],
    ['nsPerFlop', { uuid, nsPerFlop: -1 }],
    ['maxPayloadBytes', { uuid, maxPayloadBytes: 300 }],
    ['maxReadRequestBytes', { uuid, maxReadRequestBytes: 64 }],
    ['completionTimeoutNs', { uuid, completionTimeoutNs: 0 }],
  ])('a wrong %s is named', (name, options) => {
    expect(() => createAccelerator(options)).toThrow(DxpuError);
    expect(() => createAccelerator(options)).toThrow(name);
  });

  it('identify the device', () => {
    const device = createAccelerator({ uuid, memoryBytes: 1 << 20, model: 'X1' });
    expect(device.identity).toEqual({ kind: 'accel', model: 'X1', memoryBytes: 1 << 20, uuid });
  });
});
