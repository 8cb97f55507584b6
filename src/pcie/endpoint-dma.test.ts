import { beforeEach, describe, expect, it } from 'vitest';
import { cloneTlp, FakeHost } from '#testkit/fake-host';
import type { Nanos } from '#base/units';
import { Endpoint, type EndpointOptions } from './endpoint.ts';
import { type DmaClient, DmaStatus } from './endpoint-transfer.ts';
import { MSI_MESSAGE_ADDRESS, MSI_MESSAGE_DATA } from './msi.ts';
import { DEVICE_CONTROL, DEVICE_CONTROL_2 } from './pcie-capability.ts';
import { CompletionStatus, FlowClass, flowClassOf, TlpKind } from './tlp.ts';

const BASE = 0x10_0000;
const BYTES = 1 << 20;

class Client implements DmaClient {
  readonly done: [cookie: number, status: DmaStatus][] = [];
  then: ((now: Nanos, cookie: number) => void) | undefined;

  dmaDone(now: Nanos, cookie: number, status: DmaStatus): void {
    this.done.push([cookie, status]);
    this.then?.(now, cookie);
  }
}

let host: FakeHost;
let endpoint: Endpoint;
let client: Client;
const now = 0 as Nanos;
const target = new Uint8Array(BYTES);

function start(options: Partial<EndpointOptions> = {}): void {
  endpoint = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
    serial: 1n,
    bars: [],
    dmaChannels: 2,
    ...options,
  });
  host = new FakeHost(BASE, BYTES);
  for (let i = 0; i < BYTES; i++) host.memory[i] = (i * 13 + (i >> 8) * 5) & 255;
  host.plug(endpoint);
  host.configWrite(0x04, 6);
  host.sent.length = 0;
  client = new Client();
  target.fill(0);
}

/** Device Control: Max_Payload_Size and Max_Read_Request_Size as fields, 0 for 128 bytes. */
function setSizes(mps: number, mrrs: number): void {
  const control = endpoint.pcie.offset + DEVICE_CONTROL;
  host.configWrite(control, (mrrs << 12) | (1 << 8) | (mps << 5), 3);
  host.sent.length = 0;
}

function reads(): { address: number; dw: number; tag: number }[] {
  return host.sent
    .filter(({ tlp }) => flowClassOf(tlp.kind) === FlowClass.NON_POSTED)
    .map(({ tlp, address }) => ({ address, dw: tlp.lengthDw, tag: tlp.tag }));
}

beforeEach(() => start());

describe('reads', () => {
  it('are split at MRRS, and at 4 KiB', () => {
    setSizes(0, 2); // MRRS 512
    endpoint.dma.read(now, 0, BASE + 4096 - 100, target, 0, 1024, client, 7);
    // 100 bytes to the boundary, then 512, then the 412 that remain.
    expect(reads().map(({ address, dw }) => [address - BASE, dw])).toEqual([
      [3996, 25],
      [4096, 128],
      [4608, 103],
    ]);
    expect(client.done).toEqual([[7, DmaStatus.OK]]);
    expect(target.subarray(0, 1024)).toEqual(host.memory.subarray(3996, 5020));
    expect(target[1024]).toBe(0);
  });

  it('carry the captured requester ID', () => {
    host.bdf = 0x4200;
    host.configWrite(0x0c, 0);
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 0);
    expect(host.sent.at(-1)?.tlp.requesterId).toBe(0x4200);
  });

  it('never go below what the option allows of MRRS', () => {
    start({ maxReadRequestBytes: 128 });
    setSizes(0, 5);
    endpoint.dma.read(now, 0, BASE, target, 0, 512, client, 0);
    expect(reads().map(({ dw }) => dw)).toEqual([32, 32, 32, 32]);
  });

  it.each([
    { tags: 1, tagBits: 8, limit: 1 },
    { tags: 24, tagBits: 8, limit: 24 },
    { tags: 140, tagBits: 5, limit: 32 },
    { tags: 140, tagBits: 8, limit: 140 },
    { tags: 768, tagBits: 8, limit: 256 },
    { tags: 768, tagBits: 10, limit: 768 },
  ])('$tags tags with $tagBits-bit tags keep $limit in flight', ({ tags, tagBits, limit }) => {
    start({ tags });
    const { offset } = endpoint.pcie;
    host.configWrite(offset + DEVICE_CONTROL, tagBits === 5 ? 0 : 1 << 8, 3);
    if (tagBits === 10) host.configWrite(offset + DEVICE_CONTROL_2, 1 << 12, 3);
    host.sent.length = 0;
    host.answerReads = false;
    endpoint.dma.read(now, 0, BASE, target, 0, 128 * 1000, client, 0);
    expect(host.waiting.length).toBe(limit);
    const inUse = new Set(host.waiting.map(({ tag }) => tag));
    expect(inUse.size).toBe(limit);
    // Ten-bit requesters do not use the tags of eight-bit ones (2.2.6.2).
    expect(Math.min(...inUse)).toBe(tagBits === 10 ? 256 : 0);
    expect(Math.max(...inUse)).toBeLessThan(2 ** tagBits);
    while (host.waiting.length > 0) host.answerAll((requests) => requests.reverse());
    expect(host.mostOutstanding).toBe(limit);
    expect(client.done).toEqual([[0, DmaStatus.OK]]);
    expect(Buffer.compare(target.subarray(0, 128_000), host.memory.subarray(0, 128_000))).toBe(0);
  });

  it('wait for bus mastering, and stop when it goes', () => {
    host.configWrite(0x04, 2, 1);
    host.sent.length = 0;
    endpoint.dma.read(now, 0, BASE, target, 0, 64, client, 0);
    endpoint.dma.write(now, 1, BASE, target, 0, 64, client, 1);
    endpoint.resume(now);
    expect(host.sent).toEqual([]);
    host.configWrite(0x04, 6, 1);
    expect(client.done.map(([cookie]) => cookie).toSorted((a, b) => a - b)).toEqual([0, 1]);
  });

  it('wait for the port, and go on at resume', () => {
    setSizes(0, 0);
    host.nonPostedCredits = 3;
    endpoint.dma.read(now, 0, BASE, target, 0, 1024, client, 0);
    expect(reads()).toHaveLength(3);
    host.nonPostedCredits = 5;
    host.resume();
    expect(reads()).toHaveLength(8);
    expect(client.done).toEqual([[0, DmaStatus.OK]]);
  });

  it('of two channels take turns', () => {
    setSizes(0, 0);
    host.answerReads = false;
    host.nonPostedCredits = 0;
    endpoint.dma.read(now, 0, BASE, target, 0, 512, client, 0);
    endpoint.dma.read(now, 1, BASE + 0x8000, target, 4096, 512, client, 1);
    host.nonPostedCredits = 4;
    host.resume();
    expect(
      reads()
        .map(({ address }) => (address >= BASE + 0x8000 ? 1 : 0))
        .toSorted((a, b) => a - b),
    ).toEqual([0, 0, 1, 1]);
  });

  it('may be asked for from inside the answer of another, to any depth', () => {
    let left = 20_000;
    client.then = (at) => {
      if (--left > 0) endpoint.dma.read(at, 0, BASE, target, 0, 4, client, 0);
    };
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 0);
    expect(left).toBe(0);
  });
});

describe('failed reads', () => {
  beforeEach(() => {
    setSizes(0, 0);
    host.answerReads = false;
  });

  it('end with UNSUPPORTED once nothing of them is outstanding, and ask for no more', () => {
    start({ tags: 4 });
    setSizes(0, 0);
    host.answerReads = false;
    endpoint.dma.read(now, 0, BASE, target, 0, 4096, client, 3);
    const [first, ...rest] = host.waiting.splice(0);
    if (first !== undefined) host.answerWith(first, CompletionStatus.UR);
    expect(client.done).toEqual([]);
    for (const request of rest) host.answer(request);
    expect(client.done).toEqual([[3, DmaStatus.UNSUPPORTED]]);
    expect(reads()).toHaveLength(4);
    // Received Master Abort (7.5.1.1.4).
    expect(host.configRead(4) & (1 << 29)).not.toBe(0);
    // The engine goes on.
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 4);
    host.answerAll();
    expect(client.done.at(-1)).toEqual([4, DmaStatus.OK]);
  });

  it('end with ABORTED on CA and with POISONED on poisoned data', () => {
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 0);
    for (const request of host.waiting.splice(0)) host.answerWith(request, CompletionStatus.CA);
    expect(client.done).toEqual([[0, DmaStatus.ABORTED]]);
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 1);
    const toDevice = host.toDevice.bind(host);
    host.toDevice = (tlp) => {
      const poisoned = cloneTlp(tlp);
      poisoned.poisoned = true;
      toDevice(poisoned);
    };
    host.answerAll();
    expect(client.done.at(-1)).toEqual([1, DmaStatus.POISONED]);
    expect(target.subarray(0, 4)).toEqual(new Uint8Array(4));
  });

  it('time out after 4 s, keep their tag, and drop the answer that comes late', () => {
    start({ tags: 2 });
    host.answerReads = false;
    endpoint.dma.read(now, 0, BASE, target, 0, 64, client, 0);
    expect(endpoint.nextDeadlineNs()).toBe(4e9);
    endpoint.tick(3.999e9 as Nanos);
    expect(client.done).toEqual([]);
    endpoint.tick(4e9 as Nanos);
    expect(client.done).toEqual([[0, DmaStatus.TIMEOUT]]);
    const late = host.waiting.splice(0);
    // One of two tags is held: of two new reads one waits.
    endpoint.dma.read(4e9 as Nanos, 0, BASE + 64, target, 64, 4, client, 1);
    endpoint.dma.read(4e9 as Nanos, 0, BASE + 64, target, 64, 4, client, 2);
    expect(host.waiting).toHaveLength(1);
    expect(host.waiting[0]?.tag).not.toBe(late[0]?.tag);
    for (const request of late) host.answer(request);
    expect(target[0]).toBe(0);
    expect(host.waiting).toHaveLength(2);
    expect(endpoint.counters.unexpectedCompletions).toBe(0);
  });

  it('do not time out when the host switched that off (Device Control 2)', () => {
    host.configWrite(endpoint.pcie.offset + DEVICE_CONTROL_2, 1 << 4, 1);
    endpoint.dma.read(now, 0, BASE, target, 0, 64, client, 0);
    expect(endpoint.nextDeadlineNs()).toBe(Infinity);
  });

  it('of an aborted channel tell nobody and leave memory alone', () => {
    endpoint.dma.read(now, 0, BASE, target, 0, 256, client, 0);
    endpoint.dma.read(now, 1, BASE, target, 512, 128, client, 1);
    endpoint.dma.abort(0);
    host.answerAll();
    expect(client.done).toEqual([[1, DmaStatus.OK]]);
    expect(target.subarray(0, 256)).toEqual(new Uint8Array(256));
    expect(endpoint.dma.pending).toBe(false);
  });

  it('are forgotten by a reset: their completions are unexpected', () => {
    endpoint.dma.read(now, 0, BASE, target, 0, 64, client, 0);
    const late = host.waiting.splice(0);
    endpoint.reset();
    host.configWrite(0x04, 6);
    for (const request of late) host.answer(request);
    expect(client.done).toEqual([]);
    expect(endpoint.counters.unexpectedCompletions).toBe(1);
    expect(target[0]).toBe(0);
  });

  it('a completion for another requester is unexpected', () => {
    endpoint.dma.read(now, 0, BASE, target, 0, 64, client, 0);
    for (const request of host.waiting.splice(0)) {
      request.requesterId ^= 0x100;
      host.answer(request);
    }
    expect(endpoint.counters.unexpectedCompletions).toBe(1);
    expect(client.done).toEqual([]);
  });
});

describe('writes', () => {
  it('are split at MPS and at 4 KiB, with zeros where bytes are not enabled', () => {
    setSizes(1, 0); // MPS 256
    const source = Uint8Array.from({ length: 1024 }, (_, i) => (i * 3 + 1) & 255);
    endpoint.dma.write(now, 0, BASE + 4096 - 61, source, 0, 700, client, 5);
    const sent = host.sent.map(({ tlp, address }) => [address - BASE, tlp.lengthDw]);
    // 61 bytes to the boundary in 16 DW, then 256, 256, and the last 127 in 32 DW.
    expect(sent).toEqual([
      [4032, 16],
      [4096, 64],
      [4352, 64],
      [4608, 32],
    ]);
    expect(host.memory.subarray(4035, 4735)).toEqual(source.subarray(0, 700));
    expect(host.sent[0]?.tlp.firstBe).toBe(0b1000);
    expect([...(host.sent[0]?.tlp.payload.subarray(0, 4) ?? [])]).toEqual([0, 0, 0, 1]);
    expect(host.sent[3]?.tlp.lastBe).toBe(0b0111);
    expect(host.sent[3]?.tlp.payload[127]).toBe(0);
    expect(client.done).toEqual([[5, DmaStatus.OK]]);
  });

  it('keep their order in a channel: data, fence, interrupt, whatever the port does', () => {
    setSizes(0, 0);
    const msi = endpoint.msi!.offset;
    host.configWrite(msi + MSI_MESSAGE_ADDRESS, 0xfee0_1000);
    host.configWrite(msi + MSI_MESSAGE_DATA, 0x41, 3);
    host.configWrite(msi, 1 << 16, 4);
    host.msiAddress = 0xfee0_1000;
    host.sent.length = 0;
    host.postedCredits = 0;
    endpoint.dma.write(now, 0, BASE, target, 0, 512, client, 0);
    endpoint.dma.writeSmall(now, 0, BASE + 0x8000, 0x89abcdef, 0x01234567, 8, client, 1);
    expect(endpoint.interrupt(now, 0, 0, client, 2)).toBe(true);
    for (let round = 0; round < 6; round++) {
      expect(host.sent).toHaveLength(round);
      host.postedCredits = 1;
      host.resume();
    }
    expect(host.sent.map(({ address }) => address)).toEqual([
      BASE,
      BASE + 128,
      BASE + 256,
      BASE + 384,
      BASE + 0x8000,
      0xfee0_1000,
    ]);
    expect([...host.memory.subarray(0x8000, 0x8008)]).toEqual([
      0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01,
    ]);
    expect(host.interrupts).toEqual([0x41]);
    expect(host.sent.at(-1)?.tlp.lengthDw).toBe(1);
    expect(client.done.map(([cookie]) => cookie)).toEqual([0, 1, 2]);
  });

  it('hold back a later read of their channel alone, and are never held back by one', () => {
    host.postedCredits = 0;
    endpoint.dma.write(now, 0, BASE, target, 0, 4, client, 0);
    endpoint.dma.read(now, 0, BASE, target, 0, 4, client, 1);
    endpoint.dma.read(now, 1, BASE, target, 8, 4, client, 2);
    expect(client.done).toEqual([[2, DmaStatus.OK]]);
    host.nonPostedCredits = 0;
    host.postedCredits = 2;
    endpoint.dma.write(now, 0, BASE + 8, target, 0, 4, client, 3);
    host.resume();
    expect(client.done.map(([cookie]) => cookie)).toEqual([2, 0, 3]);
    host.nonPostedCredits = 1;
    host.resume();
    expect(client.done.at(-1)).toEqual([1, DmaStatus.OK]);
  });

  it('of an aborted channel are not sent', () => {
    host.postedCredits = 0;
    endpoint.dma.write(now, 0, BASE, target, 0, 512, client, 0);
    endpoint.dma.write(now, 1, BASE, target, 0, 4, client, 1);
    endpoint.dma.abort(0);
    host.postedCredits = 100;
    host.resume();
    expect(host.sent).toHaveLength(1);
    expect(client.done).toEqual([[1, DmaStatus.OK]]);
  });

  it('send no interrupt while MSI is off', () => {
    expect(endpoint.interrupt(now, 0, 0, client, 0)).toBe(false);
    expect(host.sent).toEqual([]);
  });

  it('use the 64-bit form above 4 GiB alone', () => {
    endpoint.dma.write(now, 0, 2 ** 32 - 4, target, 0, 8, client, 0);
    expect(host.sent.map(({ tlp }) => tlp.kind)).toEqual([TlpKind.MWr32, TlpKind.MWr64]);
  });
});
