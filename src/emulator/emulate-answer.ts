/** The answer of `dxpu emulate` for one trace and link, as it is printed for machines. */
import { TLP_FRAMING_BYTES } from '#pcie/bandwidth';
import type { LinkProfile } from '#pcie/link-profile';
import {
  COMPLETION_WIRE_BYTES,
  linkBytesPerNs,
  READ_WIRE_BYTES,
  WRITE_WIRE_BYTES,
} from './device-link.ts';
import type { Emulation } from './emulate.ts';
import type { WorkloadRun } from './run-workload.ts';
import type { DirectionCounts } from './tlp-probe.ts';

/** One run in figures. Occupancies are shares of the span, percent. */
export interface RunAnswer {
  readonly spanNs: number;
  /** To the device, and from it: TLPs that passed one by one, without those of copies in bulk. */
  readonly down: DirectionCounts;
  readonly up: DirectionCounts;
  /** Of the device's link, each direction, copies in bulk included. */
  readonly downOccupancyPct: number;
  readonly upOccupancyPct: number;
  /** Reads outstanding, while TLPs pass one by one. */
  readonly meanTags: number;
  readonly mostTags: number;
  /** Of the network, each direction, without copies in bulk; null natively, or where it has no rate. */
  readonly networkDownPct: number | null;
  readonly networkUpPct: number | null;
}

export interface EmulateAnswer {
  readonly schema: 'dxpu.emulate/1';
  readonly trace: string;
  readonly link: LinkProfile;
  readonly recordedSpanNs: number;
  /** Native emulation against the record, percent. */
  readonly nativeErrorPct: number;
  /** Overheads in percent; null where there is no such estimate. */
  readonly estimates: {
    readonly additiveOverheadPct: number | null;
    readonly replayOverheadPct: number | null;
    readonly emulatedOverheadPct: number;
  };
  readonly native: RunAnswer;
  readonly pooled: RunAnswer;
  /** Bytes of copies that were advanced in bulk once they were steady. */
  readonly bulk: { readonly htodBytes: number; readonly dtohBytes: number };
  readonly warnings: readonly string[];
}

export function emulateAnswer(
  trace: string,
  link: LinkProfile,
  emulation: Emulation,
  others: Omit<EmulateAnswer['estimates'], 'emulatedOverheadPct'>,
): EmulateAnswer {
  const { workload, nativeErrorPct } = emulation;
  const bulk = { htodBytes: workload.skippedHtod, dtohBytes: workload.skippedDtoh };
  const warnings: string[] = [];
  if (Math.abs(nativeErrorPct) > 1) {
    warnings.push(
      `the native emulation misses the record by ${nativeErrorPct.toFixed(2)} %: ` +
        'is the GPU of the trace on a faster link? --gen, --lanes, --mps and --mrrs say which',
    );
  }
  if (workload.quickCopies > 0) {
    warnings.push(`${workload.quickCopies} copies were recorded faster than this link is natively`);
  }
  if (workload.quickLaunches > 0) {
    warnings.push(
      `${workload.quickLaunches} launches were recorded faster than doorbell and fetch are natively`,
    );
  }
  if (bulk.htodBytes + bulk.dtohBytes > 0) {
    warnings.push(
      `${((bulk.htodBytes + bulk.dtohBytes) / 1e6).toFixed(1)} MB of long copies were advanced in ` +
        'bulk once steady; --whole-copies moves every TLP',
    );
  }
  return {
    schema: 'dxpu.emulate/1',
    trace,
    link,
    recordedSpanNs: emulation.recordedSpanNs,
    nativeErrorPct,
    estimates: { ...others, emulatedOverheadPct: emulation.overheadPct },
    native: runAnswer(emulation.native, link, bulk, null),
    pooled: runAnswer(emulation.pooled, link, bulk, link.networkGbps),
    bulk,
    warnings,
  };
}

function runAnswer(
  run: WorkloadRun,
  link: LinkProfile,
  bulk: EmulateAnswer['bulk'],
  networkGbps: number | null,
): RunAnswer {
  const { counts, spanNs } = run;
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
    down: counts.down,
    up: counts.up,
    downOccupancyPct: ofLink(wireBytes(counts.down) + bulkDown),
    upOccupancyPct: ofLink(wireBytes(counts.up) + bulkUp),
    meanTags: counts.readNs / spanNs,
    mostTags: counts.mostReads,
    networkDownPct: ofNetwork(run.frameBytesDown),
    networkUpPct: ofNetwork(run.frameBytesUp),
  };
}
