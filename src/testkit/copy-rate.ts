/**
 * Measures the copy engine through both proxies in virtual time. Nothing here computes a rate from
 * tags: requests, frames and completions take their times, and the rate is what comes of it. Beside
 * it stands the arithmetic a rate is compared with.
 */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import { createAccelerator } from '#devices/accel';
import { AccelDriver } from '#host/accel-driver';
import type { Task } from '#host/task';
import { DEFAULT_PCIE_LINK, tlpLayerGbps } from '#pcie/bandwidth';
import type { Device } from '#pcie/device';
import { DeviceTap } from '#pcie/device-tap';
import { FlowClass, type Tlp, flowClassOf } from '#pcie/tlp';
import { PcieWire } from '#pcie/wire';
import { portFor, singleSlotPool } from '#emulator/single-slot-pool';

const GIB = 2 ** 30;
const MIB = 2 ** 20;
const NETWORK_GBPS = 200;
const STEADY_ROUND_TRIPS = 200;
/** The shares of a copy between which it is taken to run steadily. */
const FIRST_MARK = 0.05;
const LAST_MARK = 0.98;
/** Figures of frame.ts and of PCIe 5.0 2.2.1, written out: 3 and 4 DW headers, framing as pcie-bench. */
const FRAME_BYTES = 40;
const ENTRY_BYTES = 12;
const MRD64_BYTES = 16;
const CPLD_BYTES = 12;
const MRD_WIRE = 24;
const CPLD_WIRE = 20;
const MWR_WIRE = 24;

export interface CopySetting {
  readonly rttUs: number;
  readonly tags: number;
  readonly mrrs: number;
  readonly mps: number;
}

/** Notes when payload passes a device's link in one direction. */
class Meter extends DeviceTap {
  readonly #direction: 'down' | 'up';
  readonly #marks: { bytes: number; atNs: number }[];
  #bytes = 0;

  constructor(device: Device, direction: 'down' | 'up', marks: number[]) {
    super(device);
    this.#direction = direction;
    this.#marks = marks.map((bytes) => ({ bytes, atNs: -1 }));
  }

  /** Bytes per ns between the first and the last mark. */
  rate(): number {
    const [first, last] = [this.#marks[0]!, this.#marks.at(-1)!];
    assert(first.atNs > 0 && last.atNs > first.atNs, 'the copy did not pass both marks');
    return (last.bytes - first.bytes) / (last.atNs - first.atNs);
  }

  override send(now: Nanos, tlp: Tlp): void {
    super.send(now, tlp);
    if (this.#direction === 'up' && flowClassOf(tlp.kind) === FlowClass.POSTED)
      this.#pass(now, tlp);
  }

  override receive(now: Nanos, tlp: Tlp): void {
    const isCompletion = flowClassOf(tlp.kind) === FlowClass.COMPLETION;
    if (this.#direction === 'down' && isCompletion) this.#pass(now, tlp);
    super.receive(now, tlp);
  }

  #pass(now: Nanos, tlp: Tlp): void {
    this.#bytes += tlp.payloadBytes;
    for (const mark of this.#marks) {
      if (mark.atNs < 0 && this.#bytes >= mark.bytes) {
        mark.bytes = this.#bytes;
        mark.atNs = now;
      }
    }
  }
}

/** Bytes per ns that PCIe gen 3 ×16 leaves the TLP layer. */
function pcieRate(mps: number): number {
  return tlpLayerGbps({ ...DEFAULT_PCIE_LINK, mpsBytes: mps }) / 8;
}

/**
 * Copies so much that `STEADY_ROUND_TRIPS` of `roundTripNs` pass at `expectedRate` between the marks,
 * and returns the rate between them, in bytes per ns.
 */
export function measureCopyRate(
  setting: CopySetting,
  direction: 'down' | 'up',
  expectedRate: number,
  roundTripNs: number,
): number {
  const totalBytes = (expectedRate * roundTripNs * STEADY_ROUND_TRIPS) / (LAST_MARK - FIRST_MARK);
  const copyBytes = Math.ceil(totalBytes / 4096) * 4096;
  const memoryBytes = Math.max(MIB, 2 ** Math.ceil(Math.log2(copyBytes)));
  const accelerator = createAccelerator({
    uuid: '00000000-0000-4000-8000-000000000001',
    memoryBytes,
    tags: setting.tags,
    maxPayloadBytes: setting.mps,
    maxReadRequestBytes: setting.mrrs,
  });
  const meter = new Meter(accelerator, direction, [
    totalBytes * FIRST_MARK,
    totalBytes * LAST_MARK,
  ]);
  const wire = new PcieWire({ device: meter, bytesPerNs: pcieRate(setting.mps) });
  const { pool, host } = singleSlotPool({
    device: wire,
    port: portFor(memoryBytes),
    soft: {
      memory: [{ base: 4 * GIB, sizeBytes: 8 * MIB + memoryBytes }],
      maxPayloadBytes: setting.mps,
      maxReadRequestBytes: setting.mrrs,
    },
    path: {
      rttNs: setting.rttUs * 1e3,
      rateToListener: NETWORK_GBPS * 1e9,
      rateToDialer: NETWORK_GBPS * 1e9,
    },
  });

  let ended = false;
  function* copy(): Task<void> {
    const fn = yield* host.hotPlug.waitForFunction(0, 1e9);
    const driver = yield* AccelDriver.open(host.soft, fn, { commandTimeoutNs: 60e9 });
    const buffer = host.soft.memory.alloc(copyBytes, 4096);
    if (direction === 'down') yield* driver.upload(buffer, 0);
    else yield* driver.download(0, buffer);
  }
  host.run(copy(), (_now, outcome) => {
    if (!outcome.ok) throw outcome.error;
    ended = true;
  });
  pool.clock.runWhile(() => !ended, 600e9);
  assert(ended, 'the copy did not end');
  return meter.rate();
}

/** What PCIe and the network leave the payload of completions, in bytes per ns. */
export function readPayloadLimit(setting: CopySetting): number {
  const pcie = (pcieRate(setting.mps) * setting.mps) / (setting.mps + CPLD_WIRE);
  const networkFrame = FRAME_BYTES + ENTRY_BYTES + CPLD_BYTES + setting.mps;
  const network = ((NETWORK_GBPS / 8) * setting.mps) / networkFrame;
  return Math.min(pcie, network);
}

/** One read of MRRS bytes on an idle path: each wire's serialisation, and the round trip. */
export function roundTripByHand(setting: CopySetting): number {
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

/** What PCIe leaves the payload of writes, in bytes per ns. */
export function writePayloadLimit(setting: CopySetting): number {
  return (pcieRate(setting.mps) * setting.mps) / (setting.mps + MWR_WIRE);
}
