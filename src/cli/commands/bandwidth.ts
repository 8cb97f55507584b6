import {
  checkPcieLink,
  encodedGbps,
  isApproximate,
  outstandingReadGbytesPerS,
  type PcieLink,
  rawGbps,
  readGbytesPerS,
  tlpLayerGbps,
  writeGbytesPerS,
} from '#pcie/bandwidth';
import { DxpuError } from '#base/errors';
import { formatTable, type OutputFormat, printJson, printLine, UsageError } from '../output.ts';
import { formatDuration, formatSize } from '../quantity.ts';

export interface BandwidthOptions {
  readonly gen: number;
  readonly lanes: number;
  readonly mps: number;
  readonly mrrs: number;
  readonly rcb: number;
  readonly addressBits: number;
  readonly ecrc?: boolean;
  readonly splitAtRcb?: boolean;
  readonly transfer?: number;
  readonly tags?: number;
  /** Nanoseconds. */
  readonly rtt?: number;
  /** Bits a second. */
  readonly network?: number;
  readonly output: OutputFormat;
}

const USUAL_TRANSFERS = [64, 256, 1024, 4096, 65536, 1 << 20];

interface Row {
  readonly transferBytes: number;
  readonly writeGbytesPerS: number;
  readonly readGbytesPerS: number;
  /** What bounds the reads. */
  readonly readBound: 'link' | 'tags' | 'network';
}

export function bandwidth(options: BandwidthOptions): void {
  const link = linkOf(options);
  if ((options.tags === undefined) !== (options.rtt === undefined)) {
    throw new UsageError('--tags and --rtt belong together: give both or neither');
  }
  const transfers = options.transfer === undefined ? USUAL_TRANSFERS : [options.transfer];
  const rows = transfers.map((bytes) => rowOf(link, bytes, options));
  const facts = {
    rawGbps: rawGbps(link),
    encodedGbps: encodedGbps(link),
    tlpLayerGbps: tlpLayerGbps(link),
    approximate: isApproximate(link),
  };
  if (options.output === 'json') {
    const { tags, rtt: rttNs, network: networkBps } = options;
    printJson({ link, tags, rttNs, networkBps, ...facts, transfers: rows });
    return;
  }
  printLine(
    `PCIe generation ${link.generation} x${link.lanes}, MPS ${link.mpsBytes}, ` +
      `MRRS ${link.mrrsBytes}, RCB ${link.rcbBytes}, ${link.addressBits}-bit addresses` +
      `${link.ecrc ? ', ECRC' : ''}`,
  );
  printLine(
    `raw ${facts.rawGbps.toFixed(1)} Gbit/s, after encoding ${facts.encodedGbps.toFixed(1)}, ` +
      `left for TLPs ${facts.tlpLayerGbps.toFixed(1)}`,
  );
  if (facts.approximate) printLine('Generation 6 is approximate: flits are not modelled.');
  if (options.tags !== undefined && options.rtt !== undefined) {
    const request = Math.min(link.mrrsBytes, options.transfer ?? link.mrrsBytes);
    const limit = outstandingReadGbytesPerS(options.tags, request, options.rtt);
    printLine(
      `${options.tags} tags x ${request} B / ${formatDuration(options.rtt)} = ` +
        `${limit.toFixed(2)} GB/s of reads at most`,
    );
  }
  printLine('');
  printLine(
    formatTable(
      ['transfer', 'write GB/s', 'read GB/s', 'reads bound by'],
      rows.map((row) => [
        formatSize(row.transferBytes),
        row.writeGbytesPerS.toFixed(3),
        row.readGbytesPerS.toFixed(3),
        row.readBound,
      ]),
    ),
  );
}

function linkOf(options: BandwidthOptions): PcieLink {
  const link: PcieLink = {
    generation: options.gen,
    lanes: options.lanes,
    mpsBytes: options.mps,
    mrrsBytes: options.mrrs,
    rcbBytes: options.rcb,
    addressBits: options.addressBits as 32 | 64,
    ecrc: options.ecrc === true,
    completionsSplitAtRcb: options.splitAtRcb === true,
    duplex: true,
  };
  try {
    checkPcieLink(link);
  } catch (error) {
    throw new UsageError(DxpuError.from(error).message);
  }
  if (options.transfer === 0) throw new UsageError('--transfer must be at least 1 byte');
  if (options.rtt === 0) throw new UsageError('--rtt must be above 0');
  return link;
}

function rowOf(link: PcieLink, transferBytes: number, options: BandwidthOptions): Row {
  const network = options.network === undefined ? Infinity : options.network / 8e9;
  let read = readGbytesPerS(link, transferBytes);
  let readBound: Row['readBound'] = 'link';
  if (options.tags !== undefined && options.rtt !== undefined) {
    // The last request of a transfer, or the only one, may be smaller than MRRS.
    const request = transferBytes / Math.ceil(transferBytes / link.mrrsBytes);
    const byTags = outstandingReadGbytesPerS(options.tags, request, options.rtt);
    if (byTags < read) {
      read = byTags;
      readBound = 'tags';
    }
  }
  if (network < read) {
    read = network;
    readBound = 'network';
  }
  return {
    transferBytes,
    writeGbytesPerS: Math.min(network, writeGbytesPerS(link, transferBytes)),
    readGbytesPerS: read,
    readBound,
  };
}
