import { beforeEach, describe, expect, it } from 'vitest';
import { TimerDriver } from '#base/clock';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { FakeHost } from '#testkit/fake-host';
import type { Device } from './device.ts';
import { Endpoint, type EndpointOptions } from './endpoint.ts';
import { type DmaClient, DmaStatus } from './endpoint-transfer.ts';
import { DEVICE_CONTROL, DEVICE_CONTROL_2 } from './pcie-capability.ts';
import { Tlp, TlpKind } from './tlp.ts';
import { PcieWire, type PcieWireOptions } from './wire.ts';

/** Above 4 GiB, so that requests have the 4 DW header. */
const BASE = 2 ** 33;
const BYTES = 8 << 20;

/** An endpoint as a device: DMA and nothing else. */
class Engine implements Device {
  readonly identity = { kind: 'test', model: 'dma', memoryBytes: 0, uuid: '' };
  readonly endpoint: Endpoint;

  constructor(options: Partial<EndpointOptions>) {
    this.endpoint = new Endpoint({
      identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
      serial: 1n,
      bars: [],
      ...options,
    });
  }

  plug(port: Parameters<Device['plug']>[0]): void {
    this.endpoint.plug(port);
  }
  receive(now: Nanos, tlp: Tlp): void {
    this.endpoint.receive(now, tlp);
  }
  resume(now: Nanos): void {
    this.endpoint.resume(now);
  }
  reset(): void {
    this.endpoint.reset();
  }
  scrub(): void {}
  nextDeadlineNs(): number {
    return this.endpoint.nextDeadlineNs();
  }
  tick(now: Nanos): void {
    this.endpoint.tick(now);
  }
}

let clock: VirtualClock;
let host: FakeHost;
let engine: Engine;
let wire: PcieWire;
let driver: TimerDriver;
let doneAtNs: number;
const target = new Uint8Array(BYTES);
const client: DmaClient = {
  dmaDone: (now, _cookie, status) => {
    expect(status).toBe(DmaStatus.OK);
    doneAtNs = now;
  },
};

/** MPS and MRRS in bytes. Time starts at 0 when the set-up is done and both lines are free. */
function start(
  wireOptions: Omit<PcieWireOptions, 'device'>,
  endpointOptions: Partial<EndpointOptions> = {},
  mps = 128,
  mrrs = 512,
): void {
  clock = new VirtualClock();
  engine = new Engine(endpointOptions);
  host = new FakeHost(BASE, BYTES);
  host.mps = mps;
  host.rcb = 64;
  for (let i = 0; i < BYTES; i += 4) host.memory[i] = (i >> 8) & 255;
  // The set-up goes around the wire: it is not what is timed.
  const { endpoint } = engine;
  endpoint.config.captureBdf(0x0300);
  const control = endpoint.pcie.offset + DEVICE_CONTROL;
  endpoint.config.write(
    control,
    (Math.log2(mrrs / 128) << 12) | (1 << 8) | (Math.log2(mps / 128) << 5),
    3,
  );
  endpoint.config.write(endpoint.pcie.offset + DEVICE_CONTROL_2, 1 << 12, 3);
  wire = new PcieWire({ device: engine, ...wireOptions });
  host.plug(wire);
  const enable = new Tlp();
  enable.kind = TlpKind.CfgWr0;
  enable.lengthDw = 1;
  enable.firstBe = 3;
  enable.register = 4;
  enable.completerId = 0x0300;
  enable.payload = Uint8Array.of(6, 0, 0, 0);
  enable.payloadBytes = 4;
  engine.receive(0 as Nanos, enable);
  while (wire.nextDeadlineNs() < Infinity) wire.tick(wire.nextDeadlineNs() as Nanos);
  clock.runUntil(1e4);
  host.sent.length = 0;
  driver = new TimerDriver(clock, wire);
  doneAtNs = -1;
}

function read(bytes: number): void {
  engine.endpoint.dma.read(clock.now(), 0, BASE, target, 0, bytes, client, 0);
  driver.update();
}

function write(bytes: number): void {
  engine.endpoint.dma.write(clock.now(), 0, BASE, target, 0, bytes, client, 0);
  driver.update();
}

function runToEnd(): void {
  clock.runWhile(() => true, 4e9);
}

describe('timing', () => {
  it('of one read is both serialisations and two latencies', () => {
    start({ bytesPerNs: 8, latencyNs: 300 });
    const startNs = clock.now();
    read(128);
    runToEnd();
    // MRd 16 + 8 = 24 bytes: 3 ns. CplD 12 + 8 + 128 = 148 bytes: 18.5 ns.
    expect(host.sent.map(({ atNs }) => atNs - startNs)).toEqual([3 + 300]);
    expect(doneAtNs - startNs).toBeCloseTo(3 + 300 + 18.5 + 300, 9);
    expect(Buffer.compare(target.subarray(0, 128), host.memory.subarray(0, 128))).toBe(0);
  });

  it('of writes is one after another, 24 bytes beside the payload', () => {
    start({ bytesPerNs: 4, latencyNs: 100 });
    const startNs = clock.now();
    write(384);
    runToEnd();
    // (24 + 128) ÷ 4 = 38 ns each.
    expect(host.sent.map(({ atNs }) => atNs - startNs)).toEqual([138, 176, 214]);
  });

  it('of a request below 4 GiB counts its 3 DW header', () => {
    start({ bytesPerNs: 1 });
    const startNs = clock.now();
    engine.endpoint.dma.write(clock.now(), 0, 0x1000, target, 0, 4, client, 0);
    driver.update();
    runToEnd();
    expect(host.sent.map(({ atNs }) => atNs - startNs)).toEqual([12 + 8 + 4]);
  });

  it('of the completions of one read is each its own', () => {
    start({ bytesPerNs: 1 }, {}, 128, 512);
    const startNs = clock.now();
    read(512);
    runToEnd();
    expect(doneAtNs - startNs).toBe(24 + 4 * (20 + 128));
  });

  it('does not make the two directions wait for each other', () => {
    start({ bytesPerNs: 1 });
    const startNs = clock.now();
    read(128);
    write(128);
    runToEnd();
    // The write is queued behind the read request; the completion comes down meanwhile.
    expect(host.sent.map(({ atNs }) => atNs - startNs)).toEqual([24, 24 + 152]);
    expect(doneAtNs - startNs).toBe(24 + 148);
  });
});

describe('back-pressure', () => {
  beforeEach(() => start({ bytesPerNs: 1, queueTlps: 4 }));

  it('bounds what the wire holds for the device', () => {
    host.postedCredits = 0;
    write(128 * 100);
    runToEnd();
    expect(engine.endpoint.dma.writeRequests).toBe(4);
    host.postedCredits = 10;
    wire.resume(clock.now());
    driver.update();
    runToEnd();
    expect(host.sent).toHaveLength(10);
    expect(engine.endpoint.dma.writeRequests).toBe(14);
    host.postedCredits = Infinity;
    wire.resume(clock.now());
    driver.update();
    runToEnd();
    expect(host.sent).toHaveLength(100);
    expect(host.sent.map(({ address }) => address)).toEqual(
      Array.from({ length: 100 }, (_, i) => BASE + 128 * i),
    );
  });

  it('ends when half of what the wire holds has left', () => {
    const startNs = clock.now();
    write(128 * 8);
    const { dma } = engine.endpoint;
    expect(dma.writeRequests).toBe(4);
    // A write of 128 bytes takes 24 + 128 ns: one has left, then a second.
    for (const [atNs, requests] of [
      [303, 4],
      [304, 6],
      [2 * 304 - 1, 6],
      [2 * 304, 8],
    ] as const) {
      clock.runUntil(startNs + atNs);
      wire.catchUp((startNs + atNs + 1e-3) as Nanos);
      driver.update();
      expect(dma.writeRequests, `after ${atNs} ns`).toBe(requests);
    }
  });

  it('of reads lets later writes pass, and keeps reads behind earlier writes', () => {
    host.nonPostedCredits = 0;
    read(4096);
    write(512);
    runToEnd();
    expect(host.sent.map(({ tlp }) => tlp.kind)).toEqual(new Array(4).fill(TlpKind.MWr64));
    // Four reads wait in the wire. Now a write that is not taken comes behind them; the other four
    // reads come behind the write, and must not pass it.
    host.postedCredits = 0;
    write(128);
    runToEnd();
    host.nonPostedCredits = Infinity;
    wire.resume(clock.now());
    driver.update();
    runToEnd();
    expect(host.sent.slice(4).map(({ tlp }) => tlp.kind)).toEqual(new Array(4).fill(TlpKind.MRd64));
    host.postedCredits = 1;
    wire.resume(clock.now());
    driver.update();
    runToEnd();
    expect(host.sent.slice(8).map(({ tlp }) => tlp.kind)).toEqual([
      TlpKind.MWr64,
      ...new Array<number>(4).fill(TlpKind.MRd64),
    ]);
  });

  it('asks for no tick while nothing can move', () => {
    host.postedCredits = 0;
    write(128);
    runToEnd();
    expect(wire.nextDeadlineNs()).toBe(Infinity);
  });
});

it('a reset loses what is on the wires, both ways', () => {
  start({ bytesPerNs: 1, latencyNs: 1000 });
  write(256);
  host.now = clock.now();
  host.write32(BASE, 1);
  clock.runUntil(clock.now() + 100);
  wire.reset(clock.now());
  driver.update();
  runToEnd();
  expect(host.sent).toEqual([]);
  expect(wire.nextDeadlineNs()).toBe(Infinity);
  expect(engine.endpoint.counters.unsupportedRequests).toBe(0);
});

// What waited for the line used to keep it busy, although it was lost.
it('a reset leaves both lines free', () => {
  start({ bytesPerNs: 1, latencyNs: 1000 });
  host.now = clock.now();
  for (let sent = 0; sent < 10; sent++) host.write32(BASE, 1);
  wire.reset(clock.now());
  host.write32(BASE, 1);
  // A write of 4 bytes to a 64-bit address takes 24 + 4 bytes, then flies for 1000 ns.
  expect(wire.nextDeadlineNs()).toBe(clock.now() + 28 + 1000);
});

it('what the device sees, and when, does not depend on how often the wire catches up', () => {
  const seen = (stepNs: number): unknown[] => {
    start({ bytesPerNs: 1, latencyNs: 700, queueTlps: 3 });
    const log: unknown[] = [];
    const inner = engine.receive.bind(engine);
    engine.receive = (now, tlp) => {
      log.push([now, tlp.kind, tlp.tag]);
      inner(now, tlp);
    };
    const resume = engine.resume.bind(engine);
    engine.resume = (now) => {
      log.push([now, 'resume']);
      resume(now);
    };
    // The writes wait for the line, and a read behind them: rooms made matter.
    write(2048);
    read(1024);
    const endNs = clock.now() + 20_000;
    while (clock.now() < endNs) {
      clock.runUntil(clock.now() + stepNs);
      wire.catchUp(clock.now());
      driver.update();
    }
    expect(log.length).toBeGreaterThan(10);
    return [...log, ...host.sent.map(({ atNs, tlp }) => [atNs, tlp.kind])];
  };
  expect(seen(1)).toEqual(seen(20_000));
});

describe('the rate of reads', () => {
  /** Payload bytes a ns between the end of the tenth part and the end of a long read. */
  function rateOf(bytes: number): number {
    host.isRecording = false;
    const marks: [bytes: number, atNs: number][] = [];
    let seen = 0;
    const inner = engine.receive.bind(engine);
    engine.receive = (now, tlp) => {
      if (tlp.kind === TlpKind.CplD) {
        seen += tlp.payloadBytes;
        marks.push([seen, now]);
      }
      inner(now, tlp);
    };
    read(bytes);
    runToEnd();
    expect(doneAtNs).toBeGreaterThan(0);
    const first = marks.find(([at]) => at >= bytes * 0.2) ?? [0, 0];
    const last = marks.find(([at]) => at >= bytes * 0.9) ?? [0, 0];
    return (last[0] - first[0]) / (last[1] - first[1]);
  }

  it.each([
    { tags: 1, latencyNs: 500, mps: 128, mrrs: 128 },
    { tags: 32, latencyNs: 500, mps: 128, mrrs: 128 },
    { tags: 140, latencyNs: 3400, mps: 128, mrrs: 128 },
    { tags: 256, latencyNs: 500, mps: 128, mrrs: 128 },
    { tags: 140, latencyNs: 10_000, mps: 256, mrrs: 512 },
    { tags: 768, latencyNs: 2000, mps: 256, mrrs: 512 },
  ])(
    'emerges as min(link, tags × MRRS ÷ RTT): $tags tags, 2 × $latencyNs ns, $mps/$mrrs',
    ({ tags, latencyNs, mps, mrrs }) => {
      const bytesPerNs = 15;
      start({ bytesPerNs, latencyNs }, { tags }, mps, mrrs);
      const completions = mrrs / mps;
      const rttNs = (24 + completions * 20 + mrrs) / bytesPerNs + 2 * latencyNs;
      const link = (bytesPerNs * mps) / (mps + 20);
      const expected = Math.min(link, (tags * mrrs) / rttNs);
      const roundTrips = Math.min(300, Math.floor(BYTES / (expected * rttNs)));
      const rate = rateOf(Math.floor((roundTrips * expected * rttNs) / mrrs) * mrrs);
      expect(Math.abs(rate / expected - 1), `${rate} against ${expected}`).toBeLessThan(0.01);
    },
  );
});
