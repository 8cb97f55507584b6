import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import type { Device, DevicePort } from '#pcie/device';
import { completeWithData, completeWithoutData } from '#pcie/completion';
import { CompletionStatus, resetTlp, setTlpAddress, Tlp, TlpKind } from '#pcie/tlp';
import { encodedTlpBytes, encodeTlp } from '#pcie/tlp-codec';
import { replayCapture } from './replay-engine.ts';
import type { CapturedPacket } from './replay-index.ts';

const HOST = 0x0000;
const FUNCTION = 0x0100;

/**
 * A device that answers a read with its register, and on a write of an address reads 8 bytes of host
 * memory from there and writes them back 4096 bytes further on.
 */
class CopyDevice implements Device {
  readonly identity = { kind: 'test', model: 'copy', memoryBytes: 0, uuid: '' };
  readonly #register: number;
  #port: DevicePort | undefined;
  #from = 0;
  readonly configWrites: [number, number][] = [];

  constructor(register: number) {
    this.#register = register;
  }

  plug(port: DevicePort): void {
    this.#port = port;
  }

  receive(now: Nanos, tlp: Tlp): void {
    const out = new Tlp();
    const word = Buffer.alloc(4);
    switch (tlp.kind) {
      case TlpKind.MRd32:
        word.writeUInt32LE(this.#register);
        completeWithData(out, tlp, FUNCTION, tlp.addressLo, 4, 4, word, 0);
        break;
      case TlpKind.CfgWr0:
        this.configWrites.push([
          tlp.register,
          Buffer.from(tlp.payload).readUInt32LE(tlp.payloadOffset),
        ]);
        completeWithoutData(out, tlp, FUNCTION, CompletionStatus.SC);
        break;
      case TlpKind.MWr32:
        this.#from = Buffer.from(tlp.payload).readUInt32LE(tlp.payloadOffset);
        read(out, this.#from, 8, FUNCTION, 77);
        break;
      case TlpKind.CplD: {
        const data = tlp.payload.slice(tlp.payloadOffset, tlp.payloadOffset + tlp.payloadBytes);
        write(out, this.#from + 4096, Buffer.from(data), FUNCTION);
        break;
      }
      default: // An error: the copy is not made.
        return;
    }
    this.#port?.send(now, out);
  }

  resume(): void {}
  reset(): void {}
  scrub(): void {}
  nextDeadlineNs(): number {
    return Infinity;
  }
  tick(): void {}
}

function read(out: Tlp, address: number, bytes: number, requesterId: number, tag: number): void {
  resetTlp(out);
  setTlpAddress(out, address, TlpKind.MRd32, TlpKind.MRd64);
  out.lengthDw = bytes / 4;
  out.requesterId = requesterId;
  out.tag = tag;
  out.firstBe = 15;
  out.lastBe = bytes === 4 ? 0 : 15;
}

function write(out: Tlp, address: number, data: Buffer, requesterId: number): void {
  resetTlp(out);
  setTlpAddress(out, address, TlpKind.MWr32, TlpKind.MWr64);
  out.lengthDw = data.length / 4;
  out.requesterId = requesterId;
  out.firstBe = 15;
  out.lastBe = data.length === 4 ? 0 : 15;
  out.payload = data;
  out.payloadBytes = data.length;
}

const encoded = (tlp: Tlp): Uint8Array => {
  const bytes = new Uint8Array(encodedTlpBytes(tlp));
  encodeTlp(tlp, bytes, 0);
  return bytes;
};

function wordOf(value: number): Buffer {
  const word = Buffer.alloc(4);
  word.writeUInt32LE(value);
  return word;
}

interface Changes {
  /** What the captured device answered to the read of its register. */
  readonly register?: number;
  /** What it wrote back. */
  readonly copied?: Buffer;
}

const DATA = Buffer.from('0102030405060708', 'hex');

/** What an analyser would have seen of a `CopyDevice`, written by hand; it may have seen more before. */
function captured(changes: Changes = {}, before: CapturedPacket[] = []): CapturedPacket[] {
  const packets: CapturedPacket[] = [...before];
  const add = (direction: 'down' | 'up', tlp: Tlp): void => {
    const number = packets.length + 1;
    packets.push({ number, timeNs: BigInt(number * 1000), direction, tlp: encoded(tlp) });
  };
  const request = new Tlp();
  const answer = new Tlp();
  read(request, 0xe000_0000, 4, HOST, 5 + packets.length);
  add('down', request);
  const register = wordOf(changes.register ?? 0xcafe);
  completeWithData(answer, request, FUNCTION, 0xe000_0000, 4, 4, register, 0);
  add('up', answer);
  write(request, 0xe000_0004, wordOf(0x8000), HOST);
  add('down', request);
  // Another tag than the replay will use.
  read(request, 0x8000, 8, FUNCTION, 3 + packets.length);
  add('up', request);
  completeWithData(answer, request, 0, 0x8000, 8, 8, DATA, 0);
  add('down', answer);
  write(request, 0x9000, changes.copied ?? DATA, FUNCTION);
  add('up', request);
  return packets;
}

const twice = (): CapturedPacket[] => captured({}, captured());

describe('a replay', () => {
  it('of what the device does again finds no difference, whatever tags it uses', () => {
    expect(replayCapture(new CopyDevice(0xcafe), captured(), undefined)).toEqual({
      requests: 2,
      completions: 1,
      dmaReads: 1,
      dmaWrites: 1,
      differences: [],
    });
  });

  it('shows a completion that differs beside its request', () => {
    const report = replayCapture(new CopyDevice(0xbeef), captured(), undefined);
    expect(report.differences).toEqual([
      {
        packet: 1,
        what: 'completion',
        request: expect.stringContaining('MRd32'),
        captured: [expect.stringContaining('CplD')],
        replayed: [expect.stringContaining('CplD')],
      },
    ]);
    expect(report.differences[0]?.captured).not.toEqual(report.differences[0]?.replayed);
  });

  it('shows what the device writes otherwise, and what it does no more', () => {
    const wrong = replayCapture(
      new CopyDevice(0xcafe),
      captured({ copied: Buffer.from('ffffffffffffffff', 'hex') }),
      undefined,
    );
    expect(wrong.differences.map(({ packet, what }) => [packet, what])).toEqual([[6, 'dma-write']]);
    // The write that started the copy is not in the capture: the device neither reads nor writes.
    const without = captured().filter((packet) => packet.number !== 3);
    const report = replayCapture(new CopyDevice(0xcafe), without, undefined);
    expect(report.differences.map(({ packet, what }) => [packet, what])).toEqual([
      [4, 'dma-read'],
      [6, 'dma-write'],
    ]);
  });

  it('answers a read the capture does not have with an error, and shows it', () => {
    // Of two copies, the first one's read, completion and write are missing.
    const without = twice().filter(({ number }) => number < 4 || number > 6);
    const report = replayCapture(new CopyDevice(0xcafe), without, undefined);
    // The other read of the same address takes its place; the second finds none and fails.
    expect(report.differences.map(({ packet, what }) => [packet, what])).toEqual([[0, 'dma-read']]);
  });

  it('does not blame the device for what it did after the end of the capture', () => {
    const without = captured().filter((packet) => packet.number < 4);
    expect(replayCapture(new CopyDevice(0xcafe), without, undefined).differences).toEqual([]);
  });

  it('blames it where the capture went on for longer than anything takes', () => {
    const [first, second, third] = captured();
    const late = { ...second!, number: 4, timeNs: 5_000_000_000n, direction: 'down' as const };
    const report = replayCapture(
      new CopyDevice(0xcafe),
      [first!, second!, third!, late],
      undefined,
    );
    expect(report.differences.map(({ what }) => what)).toEqual(['dma-read']);
  });

  describe('of a capture that contradicts itself', () => {
    // Two copies, and the read of the register that a third begins with.
    const intact = captured({}, twice()).slice(0, -4);
    const differences = (packets: readonly CapturedPacket[]): [number, string][] =>
      replayCapture(new CopyDevice(0xcafe), packets, undefined).differences.map(
        ({ packet, what }) => [packet, what],
      );

    it('has no difference while it does not', () => {
      expect(differences(intact)).toEqual([]);
    });

    it.each<[string, number, [number, string][]]>([
      ['a completion of the device', 2, [[1, 'unanswered']]],
      ['a request of the host', 7, [[8, 'unasked']]],
      [
        'a completion of the host',
        5,
        [
          [4, 'unanswered'],
          // The first copy is never made: the second one's write takes its place.
          [12, 'dma-write'],
        ],
      ],
    ])('without %s, %d (regression: no difference)', (_name, number, expected) => {
      expect(differences(intact.filter((packet) => packet.number !== number))).toEqual(
        expect.arrayContaining(expected),
      );
    });

    it('with a request twice under one tag (regression: no difference)', () => {
      const again = intact.flatMap((one) =>
        one.number === 7 ? [one, { ...one, number: 99 }] : [one],
      );
      expect(differences(again)).toEqual([[99, 'tag-in-use']]);
    });

    it('shows any one TLP missing, doubled or turned round, but for the ends', () => {
      // The first exchange and the last may be of before and after.
      for (const { number } of intact.slice(2, -2)) {
        const change = (how: (one: CapturedPacket) => CapturedPacket[]): CapturedPacket[] =>
          intact.flatMap((one) => (one.number === number ? how(one) : [one]));
        expect(differences(change(() => [])), `${number} missing`).not.toEqual([]);
        expect(differences(change((one) => [one, one])), `${number} doubled`).not.toEqual([]);
        const turned = change((one) => [
          { ...one, direction: one.direction === 'up' ? 'down' : 'up' },
        ]);
        expect(differences(turned), `${number} turned round`).not.toEqual([]);
      }
    });
  });

  it('does not compare what the end of the capture cut off', () => {
    const cut = captured().slice(0, 1);
    expect(replayCapture(new CopyDevice(0xbeef), cut, undefined).differences).toEqual([]);
  });

  it('sets the config space first, the command register last', () => {
    const device = new CopyDevice(0xcafe);
    const configSpace = new Uint8Array(256);
    new DataView(configSpace.buffer).setUint32(0x10, 0xe000_0000, true);
    new DataView(configSpace.buffer).setUint32(4, 0x0010_0406, true);
    replayCapture(device, [], { bdf: FUNCTION, configSpace });
    expect(device.configWrites).toHaveLength(64);
    expect(device.configWrites).toContainEqual([0x10, 0xe000_0000]);
    expect(device.configWrites.at(-1)).toEqual([4, 0x0010_0406]);
  });
});
