/** The answer of `dxpu emulate` for one trace and link, and for a microbenchmark. */
import { TLP_FRAMING_BYTES } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import { linkFigures } from '#report/link-figures';
import type { Timeline } from '#trace/timeline';
import {
  type DeviceFigures,
  EMULATE_SCHEMA,
  type MicrobenchAnswer,
  microbenchAnswer as microbenchSchema,
  type RunAnswer,
  type TraceAnswer,
} from './answer.ts';
import {
  COMPLETION_WIRE_BYTES,
  linkBytesPerNs,
  READ_WIRE_BYTES,
  WRITE_WIRE_BYTES,
} from './device-link.ts';
import type { Emulation } from './emulate.ts';
import { type EmulatedDevice, USUAL_DEVICE } from './emulated-system.ts';
import type { Microbench, MicrobenchRow } from './microbench.ts';
import type { WorkloadRun } from './run-workload.ts';
import type { DirectionCounts } from './tlp-probe.ts';

/** A native run further off the record is not what was recorded. */
const MAX_NATIVE_ERROR_PCT = 1;

/** What was emulated, as the user asked for it. */
export interface AskedEmulation {
  /** The trace as the user named it. */
  readonly trace: string;
  readonly link: LinkProfile;
  /** GPUs that share the path: the emulated one has such a part of the network's rate. */
  readonly sharing: number;
  readonly device: EmulatedDevice;
  readonly seed: number;
  readonly wholeCopies: boolean;
  readonly budgetPct: number;
}

/** What the model says of the same. */
export interface ModelEstimates {
  readonly additiveOverheadPct: number | null;
  readonly replayOverheadPct: number | null;
  readonly curve?: TraceAnswer['curve'];
}

/** The profile that is emulated: the network with the part of its rate that the GPU has. */
export function sharedProfile(link: LinkProfile, sharing: number): LinkProfile {
  return sharing === 1 ? link : { ...link, networkGbps: link.networkGbps / sharing };
}

/** `emulation` is of `sharedProfile`. */
export function emulateAnswer(
  timeline: Timeline,
  asked: AskedEmulation,
  emulation: Emulation,
  { curve, ...model }: ModelEstimates,
): TraceAnswer {
  const { trace, link, sharing, seed, wholeCopies, budgetPct } = asked;
  const { workload, nativeErrorPct, overheadPct } = emulation;
  const bulk = { htodBytes: workload.skippedHtod, dtohBytes: workload.skippedDtoh };
  const { networkGbps } = sharedProfile(link, sharing);
  return {
    schema: EMULATE_SCHEMA,
    kind: 'trace',
    trace,
    format: timeline.format,
    gpus: [...timeline.gpus].toSorted(([a], [b]) => a - b).map(([, name]) => name),
    link: linkAnswer(link, sharing),
    device: deviceFigures(asked.device),
    seed,
    wholeCopies,
    budgetPct,
    within: withinOf(overheadPct, budgetPct, nativeErrorPct),
    recordedSpanNs: emulation.recordedSpanNs,
    nativeErrorPct,
    estimates: { ...model, emulatedOverheadPct: overheadPct },
    native: runAnswer(emulation.native, link, bulk, null),
    pooled: runAnswer(emulation.pooled, link, bulk, networkGbps),
    bulk,
    ...(curve === undefined ? {} : { curve }),
    warnings: [...timeline.warnings.map(({ message }) => message), ...warningsOf(emulation, bulk)],
  };
}

function withinOf(
  overheadPct: number,
  budgetPct: number,
  nativeErrorPct: number,
): TraceAnswer['within'] {
  if (Math.abs(nativeErrorPct) > MAX_NATIVE_ERROR_PCT) return 'unsure';
  return overheadPct <= budgetPct ? 'yes' : 'no';
}

/** The rows of a microbenchmark over a link, in their order. */
export function microbenchAnswer(
  kind: Microbench,
  link: LinkProfile,
  sharing: number,
  device: EmulatedDevice,
  rows: readonly MicrobenchRow[],
): MicrobenchAnswer {
  return microbenchSchema.parse({
    schema: EMULATE_SCHEMA,
    kind,
    link: linkAnswer(link, sharing),
    device: deviceFigures(device),
    rows,
  });
}

function linkAnswer(link: LinkProfile, sharing: number): TraceAnswer['link'] {
  return { ...linkFigures(link, sharing), rcbBytes: link.rcbBytes };
}

function deviceFigures(device: EmulatedDevice): DeviceFigures {
  const prefetchCommands = device.prefetchCommands ?? USUAL_DEVICE.prefetchCommands;
  return {
    prefetchCommands,
    fetchCommands: device.fetchCommands ?? prefetchCommands,
    fetchesInFlight: device.fetchesInFlight ?? USUAL_DEVICE.fetchesInFlight,
  };
}

function warningsOf(
  { workload, nativeErrorPct }: Emulation,
  { htodBytes, dtohBytes }: TraceAnswer['bulk'],
): string[] {
  const warnings: string[] = [];
  if (Math.abs(nativeErrorPct) > MAX_NATIVE_ERROR_PCT) {
    warnings.push(
      `the native emulation misses the record by ${nativeErrorPct.toFixed(2)} %: ` +
        'is the GPU of the trace on a faster link? --gen, --lanes, --mps and --mrrs say which',
    );
  }
  if (workload.quickCopies > 0) {
    warnings.push(
      `${counted(workload.quickCopies, 'copy', 'copies')} recorded faster than this link is natively`,
    );
  }
  if (workload.quickLaunches > 0) {
    warnings.push(
      `${counted(workload.quickLaunches, 'launch', 'launches')} recorded faster than doorbell and fetch ` +
        'are natively',
    );
  }
  if (htodBytes + dtohBytes > 0) {
    warnings.push(
      `${((htodBytes + dtohBytes) / 1e6).toFixed(1)} MB of long copies were advanced in ` +
        'bulk once steady; --whole-copies moves every TLP',
    );
  }
  return warnings;
}

function counted(count: number, one: string, more: string): string {
  return count === 1 ? `1 ${one} was` : `${count} ${more} were`;
}

function runAnswer(
  run: WorkloadRun,
  link: LinkProfile,
  bulk: TraceAnswer['bulk'],
  networkGbps: number | null,
): RunAnswer {
  const { counts, spanNs, originNs } = run;
  const { mrrsBytes, mpsBytes } = link;
  const wireBytes = (direction: DirectionCounts): number =>
    direction.tlpBytes + TLP_FRAMING_BYTES * direction.total;
  const completionBytes = Math.min(mrrsBytes, mpsBytes);
  const bulkDown = bulk.htodBytes * (1 + COMPLETION_WIRE_BYTES / completionBytes);
  const bulkUp =
    (bulk.htodBytes * READ_WIRE_BYTES) / mrrsBytes +
    bulk.dtohBytes * (1 + WRITE_WIRE_BYTES / mpsBytes);
  const ofLink = (bytes: number): number => (100 * bytes) / (linkBytesPerNs(link) * spanNs);
  const ofNetwork = (bytes: number): number | null =>
    networkGbps === null || networkGbps === Infinity
      ? null
      : (100 * bytes * 8) / (networkGbps * spanNs);
  return {
    spanNs,
    originNs,
    down: { ...counts.down, tlps: { ...counts.down.tlps } },
    up: { ...counts.up, tlps: { ...counts.up.tlps } },
    downOccupancyPct: ofLink(wireBytes(counts.down) + bulkDown),
    upOccupancyPct: ofLink(wireBytes(counts.up) + bulkUp),
    meanTags: counts.readNs / spanNs,
    mostTags: counts.mostReads,
    networkDownPct: ofNetwork(run.frameBytesDown),
    networkUpPct: ofNetwork(run.frameBytesUp),
  };
}
