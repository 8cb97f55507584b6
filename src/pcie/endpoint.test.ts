import { beforeEach, describe, expect, it } from 'vitest';
import { cloneTlp, FakeHost, littleEndian } from '#testkit/fake-host';
import type { Nanos } from '#base/units';
import { UNCORRECTABLE_ERROR_STATUS, UncorrectableError } from './aer.ts';
import { Endpoint } from './endpoint.ts';
import { ABORT_ACCESS, type RegisterBar } from './endpoint-bar.ts';
import { DEVICE_CONTROL } from './pcie-capability.ts';
import { setMemoryRead, setMemoryWrite } from './split.ts';
import { CompletionStatus, Tlp, TlpKind } from './tlp.ts';

const BAR0 = 0xe000_0000;
const BAR2 = 0x40_0000_0000;
const MEMORY_BYTES = 64 * 1024;

class Registers implements RegisterBar {
  readonly kind = 'registers';
  readonly words = new Map<number, number>();
  readonly log: string[] = [];

  readRegister(_now: Nanos, offset: number, byteEnables: number): number {
    this.log.push(`r ${offset} ${byteEnables}`);
    return offset === 0xff0 ? ABORT_ACCESS : (this.words.get(offset) ?? 0);
  }

  writeRegister(_now: Nanos, offset: number, value: number, byteEnables: number): void {
    this.log.push(`w ${offset} ${value.toString(16)} ${byteEnables}`);
    this.words.set(offset, value);
  }
}

let host: FakeHost;
let registers: Registers;
let memory: Uint8Array;
let endpoint: Endpoint;

beforeEach(() => {
  registers = new Registers();
  memory = new Uint8Array(MEMORY_BYTES);
  for (let i = 0; i < memory.length; i++) memory[i] = (i * 7 + (i >> 8)) & 255;
  endpoint = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
    serial: 0x0102030405060708n,
    bars: [
      { index: 0, sizeBytes: 4096, is64Bit: false, prefetchable: false, target: registers },
      {
        index: 2,
        sizeBytes: MEMORY_BYTES,
        is64Bit: true,
        prefetchable: true,
        target: { kind: 'memory', memory },
      },
    ],
  });
  host = new FakeHost(0x10_0000, 4096);
  host.plug(endpoint);
  host.configWrite(0x10, BAR0);
  host.configWrite(0x18, BAR2 % 2 ** 32);
  host.configWrite(0x1c, Math.floor(BAR2 / 2 ** 32));
  host.configWrite(0x04, 0x6);
});

describe('config requests', () => {
  it('reads and writes the configuration space, completer ID from the last write', () => {
    expect(host.configRead(0)).toBe(0x0001ddb0);
    expect(host.configRead(8)).toBe(0x12000002);
    host.bdf = 0x2500;
    const [completion] = host.configWrite(0x3c, 0x55, 1);
    expect(completion?.kind).toBe(TlpKind.Cpl);
    expect(completion?.completerId).toBe(0x2500);
    expect(completion?.byteCount).toBe(4);
    expect(host.configRead(0x3c) & 0xff).toBe(0x55);
  });

  it('answers UR for another function, and does not capture its number', () => {
    host.bdf = 0x0901;
    const [completion] = host.configWrite(0x3c, 1);
    expect(completion?.status).toBe(CompletionStatus.UR);
    expect(endpoint.config.bdf).toBe(0x0300);
    expect(host.configRead(0)).toBe(0xffff_ffff);
  });

  it('answers a poisoned write UR and leaves the register (2.7.2.2)', () => {
    const write = new Tlp();
    write.kind = TlpKind.CfgWr0;
    write.lengthDw = 1;
    write.firstBe = 15;
    write.completerId = 0x0300;
    write.register = 0x3c;
    write.poisoned = true;
    write.payload = littleEndian(0xaa);
    write.payloadBytes = 4;
    expect(host.request(write)[0]?.status).toBe(CompletionStatus.UR);
    expect(host.configRead(0x3c)).toBe(0);
    expect(endpoint.counters.poisoned).toBe(1);
  });

  it('answers type 1 config, I/O and AtomicOp requests UR', () => {
    for (const kind of [TlpKind.CfgRd1, TlpKind.IORd, TlpKind.FetchAdd32] as const) {
      const request = new Tlp();
      request.kind = kind;
      request.lengthDw = 1;
      request.firstBe = kind === TlpKind.FetchAdd32 ? 0 : 15;
      request.payload = new Uint8Array(4);
      request.payloadBytes = kind === TlpKind.FetchAdd32 ? 4 : 0;
      request.tag = 9;
      const [completion] = host.request(request);
      expect(completion?.status).toBe(CompletionStatus.UR);
      expect(completion?.tag).toBe(9);
    }
    expect(endpoint.counters.unsupportedRequests).toBe(3);
  });
});

describe('memory requests', () => {
  it('gives a register write its enabled bytes', () => {
    host.write32(BAR0 + 0x20, 0x11223344);
    host.memoryWrite(BAR0 + 0x21, Uint8Array.of(0xaa, 0xbb));
    expect(registers.log).toEqual(['w 32 11223344 15', 'w 32 bbaa00 6']);
    registers.words.set(0x20, 0xcafe_f00d);
    expect(host.read32(BAR0 + 0x20)).toBe(0xcafe_f00d);
  });

  it('splits a register access of several double words in ascending order', () => {
    host.memoryWrite(BAR0 + 0x40, Uint8Array.of(1, 0, 0, 0, 2, 0, 0, 0));
    const [completion] = host.memoryRead(BAR0 + 0x40, 8);
    expect(registers.log).toEqual(['w 64 1 15', 'w 68 2 15', 'r 64 15', 'r 68 15']);
    expect([...(completion?.payload ?? [])]).toEqual([1, 0, 0, 0, 2, 0, 0, 0]);
  });

  it('splits read completions at MPS and RCB, and counts bytes down', () => {
    // MPS is 128 after reset. From offset 100: 28 bytes end at the RCB multiple 128, then 128, then 44.
    const completions = host.memoryRead(BAR2 + 100, 200);
    expect(completions.map((c) => [c.lengthDw, c.byteCount, c.lowerAddress])).toEqual([
      [7, 200, 100],
      [32, 172, 0],
      [11, 44, 0],
    ]);
    const bytes = completions.flatMap((c) => [...c.payload]);
    expect(bytes).toEqual([...memory.subarray(100, 300)]);
  });

  it('takes MPS from Device Control, up to what it supports', () => {
    const control = endpoint.pcie.offset + DEVICE_CONTROL;
    host.configWrite(control, 5 << 5, 1); // Max_Payload_Size 4096; the function supports 512.
    expect(host.memoryRead(BAR2, 4096).map((c) => c.lengthDw * 4)).toEqual(new Array(8).fill(512));
  });

  it.each([1, 2, 3, 4, 5, 7, 8])('reads and writes %i bytes at every offset in a DW', (bytes) => {
    for (let at = 64; at < 68; at++) {
      // What surrounds the bytes must stay.
      const before = memory.slice(0, 256);
      const data = Uint8Array.from({ length: bytes }, (_, i) => 200 + i + at);
      const expected = before.slice();
      expected.set(data, at);
      host.memoryWrite(BAR2 + at, data);
      expect(memory.subarray(0, 256)).toEqual(expected);
      const [completion] = host.memoryRead(BAR2 + at, bytes);
      expect(completion?.byteCount).toBe(bytes);
      expect(completion?.lowerAddress).toBe(at);
      const lead = at % 4;
      expect(completion?.payload.slice(lead, lead + bytes)).toEqual(data);
    }
  });

  it('writes only enabled bytes when the enables have holes', () => {
    memory.fill(0);
    const write = new Tlp();
    setMemoryWrite(write, BAR2, 4, 0x10);
    write.firstBe = 0b1001;
    write.payload = Uint8Array.of(1, 2, 3, 4);
    host.toDevice(write);
    expect([...memory.subarray(0, 4)]).toEqual([1, 0, 0, 4]);
  });

  it('answers a zero-length read with one DW of byte count 1 (2.2.5, 2.3.1.1)', () => {
    const [completion] = host.memoryRead(BAR0 + 0x44, 0);
    expect(completion?.status).toBe(CompletionStatus.SC);
    expect(completion?.lengthDw).toBe(1);
    expect(completion?.byteCount).toBe(1);
    expect(completion?.lowerAddress).toBe(0x44);
    expect(registers.log).toEqual([]);
  });

  it('answers UR where no BAR is, past a BAR, and with memory space off', () => {
    expect(host.memoryRead(0x5000, 4)[0]?.status).toBe(CompletionStatus.UR);
    expect(host.memoryRead(BAR2 + MEMORY_BYTES, 4)[0]?.status).toBe(CompletionStatus.UR);
    host.configWrite(0x04, 0x4, 1);
    expect(host.memoryRead(BAR2, 4)[0]?.status).toBe(CompletionStatus.UR);
    host.write32(BAR0, 1); // Posted: nothing comes back.
    expect(registers.log).toEqual([]);
    expect(endpoint.counters.unsupportedRequests).toBe(4);
    const status = endpoint.config.read32(endpoint.aer.offset + UNCORRECTABLE_ERROR_STATUS);
    expect(status & (1 << UncorrectableError.UNSUPPORTED_REQUEST)).not.toBe(0);
  });

  it('answers UR for an address above 2^53 and for translated addresses', () => {
    const read = new Tlp();
    setMemoryRead(read, BAR2, 4, 0x10, 1);
    read.addressHi = 0x8000_0000;
    expect(host.request(read)[0]?.status).toBe(CompletionStatus.UR);
    setMemoryRead(read, BAR2, 4, 0x10, 1);
    read.addressType = 2;
    expect(host.request(read)[0]?.status).toBe(CompletionStatus.UR);
  });

  it('answers UR in D3hot, and works again in D0', () => {
    const pm = endpoint.config.findCapability(1);
    host.configWrite(pm + 4, 3, 1);
    expect(host.memoryRead(BAR2, 4)[0]?.status).toBe(CompletionStatus.UR);
    host.configWrite(pm + 4, 0, 1);
    expect(host.memoryRead(BAR2, 4)[0]?.status).toBe(CompletionStatus.SC);
  });

  it('answers CA when the device refuses', () => {
    const [completion] = host.memoryRead(BAR0 + 0xff0, 4);
    expect(completion?.status).toBe(CompletionStatus.CA);
    expect(completion?.kind).toBe(TlpKind.Cpl);
    expect(endpoint.counters.completerAborts).toBe(1);
  });

  it('drops a poisoned write', () => {
    const write = new Tlp();
    setMemoryWrite(write, BAR0, 4, 0x10);
    write.payload = littleEndian(1);
    write.poisoned = true;
    host.toDevice(write);
    expect(registers.log).toEqual([]);
    expect(endpoint.counters).toMatchObject({ poisoned: 1, unsupportedRequests: 0 });
  });
});

describe('completions and messages', () => {
  it('counts a completion nobody waits for', () => {
    const completion = new Tlp();
    completion.kind = TlpKind.Cpl;
    completion.byteCount = 4;
    completion.requesterId = 0x0300;
    host.toDevice(completion);
    expect(endpoint.counters.unexpectedCompletions).toBe(1);
  });

  it('took payloads above Max_Payload_Size: they are malformed, and dropped (2.2.2)', () => {
    const before = memory.slice();
    const write = new Tlp();
    setMemoryWrite(write, BAR2, 132, 0x10);
    write.payload = new Uint8Array(132).fill(0xee);
    host.toDevice(write);
    // Max_Payload_Size is 128 after reset.
    expect(memory).toEqual(before);
    const completion = new Tlp();
    completion.kind = TlpKind.CplD;
    completion.lengthDw = 64;
    completion.byteCount = 256;
    completion.requesterId = 0x0300;
    completion.payload = new Uint8Array(256);
    completion.payloadBytes = 256;
    host.toDevice(completion);
    expect(endpoint.counters).toMatchObject({ malformed: 2, unexpectedCompletions: 0 });
    const { config, aer, pcie } = endpoint;
    const status = config.read32(aer.offset + UNCORRECTABLE_ERROR_STATUS);
    expect(status).toBe(1 << UncorrectableError.MALFORMED_TLP);
    // Severity fatal after reset: Fatal Error Detected, bit 2 of Device Status.
    expect(config.read32(pcie.offset + DEVICE_CONTROL) >>> 16).toBe(1 << 2);
    host.configWrite(pcie.offset + DEVICE_CONTROL, 1 << 5, 1);
    host.toDevice(write);
    expect(memory.subarray(0, 132)).toEqual(new Uint8Array(132).fill(0xee));
  });

  it('left PME_Turn_Off without PME_TO_Ack (5.3.3.2.1)', () => {
    const turnOff = new Tlp();
    turnOff.kind = TlpKind.Msg;
    turnOff.messageCode = 0x19;
    turnOff.messageRouting = 3; // broadcast from the root complex
    const acks = (): Tlp[] => host.sent.map(({ tlp }) => tlp).filter((t) => t.kind === TlpKind.Msg);
    host.toDevice(turnOff);
    // Code 1Bh, gathered and routed to the root complex: 101b (table 2-21).
    expect(acks()).toMatchObject([
      { messageCode: 0x1b, messageRouting: 5, requesterId: 0x0300, lengthDw: 0, payloadBytes: 0 },
    ]);
    // Without credit it goes when there is some; in D3hot, where it is asked for, all the same.
    host.configWrite(endpoint.config.findCapability(1) + 4, 3, 1);
    host.postedCredits = 0;
    host.toDevice(turnOff);
    expect(acks()).toHaveLength(1);
    host.postedCredits = 1;
    endpoint.resume(host.now);
    expect(acks()).toHaveLength(2);
    endpoint.resume(host.now);
    expect(acks()).toHaveLength(2);
  });

  it('called the messages that are to be ignored unsupported (2.2.8.7)', () => {
    for (const code of [0x40, 0x41, 0x43, 0x44, 0x45, 0x47, 0x48]) {
      const message = new Tlp();
      message.kind = TlpKind.Msg;
      message.messageCode = code;
      message.messageRouting = 4;
      host.toDevice(message);
    }
    expect(endpoint.counters.unsupportedRequests).toBe(0);
    expect(host.sent.filter(({ tlp }) => tlp.kind === TlpKind.Msg)).toEqual([]);
  });

  it('takes Set_Slot_Power_Limit, and counts a message it does not know', () => {
    const message = new Tlp();
    message.kind = TlpKind.MsgD;
    message.messageCode = 0x50;
    message.messageRouting = 4;
    message.lengthDw = 1;
    message.payload = new Uint8Array(4);
    message.payloadBytes = 4;
    host.toDevice(message);
    expect(endpoint.counters.unsupportedRequests).toBe(0);
    const other = cloneTlp(message);
    other.kind = TlpKind.Msg;
    other.messageCode = 0x52;
    other.lengthDw = 0;
    other.payloadBytes = 0;
    host.toDevice(other);
    expect(endpoint.counters.unsupportedRequests).toBe(1);
  });
});

describe('reset', () => {
  it('forgets the configuration and the captured number', () => {
    endpoint.reset();
    expect(endpoint.config.bdf).toBe(0);
    expect(host.memoryRead(BAR2, 4)[0]?.status).toBe(CompletionStatus.UR);
    expect(host.configRead(0x10)).toBe(0);
  });
});
