/**
 * The emergent rate of the copy engine through both proxies in virtual time, against
 * `min(payload limit, tags × MRRS ÷ RTT₁)`. Nothing here computes a rate from tags: requests, frames
 * and completions take their times, and the rate is what comes of it.
 */
import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { createAccelerator } from '#devices/accel';
import { AccelDriver } from '#host/accel-driver';
import type { Task } from '#host/task';
import { DEFAULT_PCIE_LINK, tlpLayerGbps } from '#pcie/bandwidth';
import type { Device, DeviceIdentity, DevicePort } from '#pcie/device';
import { FlowClass, type Tlp, flowClassOf } from '#pcie/tlp';
import { PcieWire } from '#pcie/wire';
import { VirtualPool } from './virtual-pool.ts';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const NETWORK_GBPS = 200;
/** Figures of frame.ts and of PCIe 5.0 2.2.1, written out: 3 and 4 DW headers, framing as pcie-bench. */
const FRAME_BYTES = 40;
const ENTRY_BYTES = 12;
const MRD64_BYTES = 16;
const CPLD_BYTES = 12;
const MRD_WIRE = 24;
const CPLD_WIRE = 20;
const MWR_WIRE = 24;

interface Setting {
  readonly rttUs: number;
  readonly tags: number;
  readonly mrrs: number;
  readonly mps: number;
}

/** Notes when payload passes a device's link, in either direction. */
class Meter implements Device {
  readonly identity: DeviceIdentity;
  readonly #inner: Device;
  readonly #marks: { bytes: number; atNs: number }[];
  #down = 0;
  #up = 0;
  readonly direction: 'down' | 'up';

  constructor(inner: Device, direction: 'down' | 'up', marks: number[]) {
    this.#inner = inner;
    this.identity = inner.identity;
    this.direction = direction;
    this.#marks = marks.map((bytes) => ({ bytes, atNs: -1 }));
  }

  get bytes(): number {
    return this.direction === 'down' ? this.#down : this.#up;
  }

  /** Bytes per ns between the first and the last mark. */
  rate(): number {
    const [first, last] = [this.#marks[0]!, this.#marks.at(-1)!];
    expect(first.atNs).toBeGreaterThan(0);
    expect(last.atNs).toBeGreaterThan(first.atNs);
    return (last.bytes - first.bytes) / (last.atNs - first.atNs);
  }

  plug(port: DevicePort): void {
    this.#inner.plug({
      canSend: (flow, bytes) => port.canSend(flow, bytes),
      send: (now, tlp) => {
        port.send(now, tlp);
        if (this.direction === 'up' && flowClassOf(tlp.kind) === FlowClass.POSTED) {
          this.#up += tlp.payloadBytes;
          this.#mark(now, this.#up);
        }
      },
    });
  }
  receive(now: Nanos, tlp: Tlp): void {
    if (this.direction === 'down' && flowClassOf(tlp.kind) === FlowClass.COMPLETION) {
      this.#down += tlp.payloadBytes;
      this.#mark(now, this.#down);
    }
    this.#inner.receive(now, tlp);
  }
  #mark(now: number, bytes: number): void {
    for (const mark of this.#marks) {
      if (mark.atNs < 0 && bytes >= mark.bytes) {
        mark.bytes = bytes;
        mark.atNs = now;
      }
    }
  }
  resume(now: Nanos): void {
    this.#inner.resume(now);
  }
  reset(now: Nanos): void {
    this.#inner.reset(now);
  }
  scrub(now: Nanos): void {
    this.#inner.scrub(now);
  }
  nextDeadlineNs(): number {
    return this.#inner.nextDeadlineNs();
  }
  tick(now: Nanos): void {
    this.#inner.tick(now);
  }
}

/** Bytes per ns that PCIe gen 3 ×16 leaves the TLP layer. */
function pcieRate(mps: number): number {
  return tlpLayerGbps({ ...DEFAULT_PCIE_LINK, mpsBytes: mps }) / 8;
}

/** Copies `totalBytes` and returns the steady rate between 15 % and 95 % of them, in bytes per ns. */
function measure(setting: Setting, direction: 'down' | 'up', totalBytes: number): number {
  const pool = new VirtualPool(1);
  const copyBytes = Math.ceil(totalBytes / 4096) * 4096;
  const memoryBytes = Math.max(MIB, 2 ** Math.ceil(Math.log2(copyBytes)));
  const accelerator = createAccelerator({
    uuid: '00000000-0000-4000-8000-000000000001',
    memoryBytes,
    tags: setting.tags,
    maxPayloadBytes: setting.mps,
    maxReadRequestBytes: setting.mrrs,
  });
  const meter = new Meter(accelerator, direction, [totalBytes * 0.15, totalBytes * 0.95]);
  const wire = new PcieWire({ device: meter, bytesPerNs: pcieRate(setting.mps) });
  pool.startBox({ id: 'b', devices: new Map([[0, wire]]) });
  const host = pool.startHost({
    id: 'h',
    soft: {
      ports: [
        {
          secondaryBus: 1,
          nonPrefetchableBase: 0xe000_0000,
          nonPrefetchableBytes: 16 * MIB,
          prefetchableBase: 64 * GIB,
          prefetchableBytes: memoryBytes,
        },
      ],
      memory: [{ base: 4 * GIB, sizeBytes: 8 * MIB + memoryBytes }],
      maxPayloadBytes: setting.mps,
      maxReadRequestBytes: setting.mrrs,
    },
    proxy: { maxPayloadBytes: setting.mps },
  });
  const path = pool.addPath({
    rttNs: setting.rttUs * 1e3,
    rateToListener: NETWORK_GBPS * 1e9,
    rateToDialer: NETWORK_GBPS * 1e9,
  });
  pool
    .box('b')
    .setTable([{ slot: 0, valid: true, used: true, host: 'h', path: 'p', generation: 1 }]);
  host.setTable([
    {
      virtualSlot: 0,
      used: true,
      secondaryBus: 1,
      nonPrefetchable: { base: 0xe000_0000, limit: 0xe0ff_ffff },
      prefetchable: { base: 64 * GIB, limit: 64 * GIB + memoryBytes - 1 },
      box: 'b',
      slot: 0,
      path: 'p',
      generation: 1,
    },
  ]);
  pool.link('h', 'b', [path]);

  let ended = false;
  function* copy(): Task<void> {
    const fn = yield* host.hotPlug.waitForFunction(0, 1e9);
    const driver = yield* AccelDriver.open(host.soft, fn, { commandTimeoutNs: 60e9 });
    const buffer = host.soft.memory.alloc(copyBytes);
    if (direction === 'down') yield* driver.upload(buffer, 0);
    else yield* driver.download(0, buffer);
  }
  host.run(copy(), (_now, outcome) => {
    if (!outcome.ok) throw outcome.error;
    ended = true;
  });
  pool.clock.runWhile(() => !ended, 600e9);
  expect(ended).toBe(true);
  return meter.rate();
}

function payloadLimit(setting: Setting): number {
  const pcie = (pcieRate(setting.mps) * setting.mps) / (setting.mps + CPLD_WIRE);
  const networkFrame = FRAME_BYTES + ENTRY_BYTES + CPLD_BYTES + setting.mps;
  const network = ((NETWORK_GBPS / 8) * setting.mps) / networkFrame;
  return Math.min(pcie, network);
}

/** One read of MRRS bytes on an idle path: each wire's serialisation, and the round trip. */
function roundTripByHand(setting: Setting): number {
  const completions = setting.mrrs / setting.mps;
  const network =
    FRAME_BYTES +
    ENTRY_BYTES +
    MRD64_BYTES +
    // The completions of one request leave in one frame.
    FRAME_BYTES +
    completions * (ENTRY_BYTES + CPLD_BYTES) +
    setting.mrrs;
  const pcie = MRD_WIRE + completions * CPLD_WIRE + setting.mrrs;
  return setting.rttUs * 1e3 + (network * 8) / NETWORK_GBPS + pcie / pcieRate(setting.mps);
}

const RTTS_US = [1.2, 2, 4.9, 6.8, 10, 20];
const TAGS = [32, 140, 256, 768];
const SIZES = [
  { mrrs: 128, mps: 128 },
  { mrrs: 512, mps: 256 },
];

describe.each(SIZES)('HtoD at MRRS $mrrs, MPS $mps', ({ mrrs, mps }) => {
  it.each(RTTS_US)('round trip %s µs: one-tag time by hand, rate by tags', (rttUs) => {
    const one: Setting = { rttUs, tags: 1, mrrs, mps };
    const rtt1Ns = mrrs / measure(one, 'down', mrrs * 260);
    expect(Math.abs(rtt1Ns / roundTripByHand(one) - 1)).toBeLessThan(1e-3);
    for (const tags of TAGS) {
      const setting = { ...one, tags };
      const expected = Math.min(payloadLimit(setting), (tags * mrrs) / rtt1Ns);
      // 0.8 of the bytes lie between the marks: at least 200 round trips.
      const rate = measure(setting, 'down', expected * rtt1Ns * 260);
      expect(
        Math.abs(rate / expected - 1),
        `${tags} tags: ${rate} against ${expected} B/ns`,
      ).toBeLessThan(0.01);
    }
  });
});

describe('DtoH', () => {
  it.each(RTTS_US)('stays at the rate of the link at a round trip of %s µs', (rttUs) => {
    const setting: Setting = { rttUs, tags: 140, mrrs: 128, mps: 128 };
    const expected = (pcieRate(128) * 128) / (128 + MWR_WIRE);
    const rate = measure(setting, 'up', expected * rttUs * 1e3 * 260);
    expect(Math.abs(rate / expected - 1), `${rate} against ${expected} B/ns`).toBeLessThan(0.01);
  });
});
