import {
  checkPcieLink,
  encodedGbps,
  isApproximate,
  networkReadGbytesPerS,
  networkWriteGbytesPerS,
  type NetworkPath,
  outstandingReadGbytesPerS,
  type PcieLink,
  rawGbps,
  readGbytesPerS,
  tlpLayerGbps,
  writeGbytesPerS,
} from '#pcie/bandwidth';
import { DxpuError } from '#base/errors';
import { ENTRY_HEADER_BYTES, SESSION_HEADER_BYTES } from '#fabric/frame';
import { formatTable, type OutputFormat, printData, printLine, UsageError } from '../output.ts';
import { formatDuration, formatSize } from '../quantity.ts';

export interface BandwidthOptions {
  readonly gen: number;
  readonly lanes: number;
  readonly mps: number;
  readonly mrrs: number;
  readonly rcb: number;
  readonly addressBits: '32' | '64';
  readonly ecrc?: boolean;
  readonly splitAtRcb?: boolean;
  readonly transfer?: readonly number[];
  readonly tags?: number;
  /** Nanoseconds. */
  readonly rtt?: number;
  /** Bits a second. */
  readonly network?: number;
  readonly output: OutputFormat;
}

const USUAL_TRANSFERS = [64, 256, 1024, 4096, 65536, 1 << 20];

/** A TLP alone in its frame, as it is while the network is not the limit. */
const ENVELOPE_BYTES = SESSION_HEADER_BYTES + ENTRY_HEADER_BYTES;

/** The option behind each field of a link. */
const OPTION_OF: Readonly<Record<string, string>> = {
  generation: '--gen',
  lanes: '--lanes',
  mpsBytes: '--mps',
  mrrsBytes: '--mrrs',
  rcbBytes: '--rcb',
  addressBits: '--address-bits',
};

interface Row {
  readonly transferBytes: number;
  readonly writeGbytesPerS: number;
  /** What bounds the writes. */
  readonly writeBound: 'link' | 'network';
  readonly readGbytesPerS: number;
  /** What bounds the reads. */
  readonly readBound: 'link' | 'tags' | 'network';
}

export async function bandwidth(options: BandwidthOptions): Promise<void> {
  const link = linkOf(options);
  if ((options.tags === undefined) !== (options.rtt === undefined)) {
    throw new UsageError('--tags and --rtt belong together: give both or neither');
  }
  const transfers = options.transfer ?? USUAL_TRANSFERS;
  const network = networkOf(options);
  const rows = transfers.map((bytes) => rowOf(link, network, bytes, options));
  const facts = {
    rawGbps: rawGbps(link),
    encodedGbps: encodedGbps(link),
    tlpLayerGbps: tlpLayerGbps(link),
    approximate: isApproximate(link),
  };
  if (options.output !== 'table') {
    const { tags, rtt: rttNs, network: networkBps } = options;
    const networkEnvelopeBytes = network?.envelopeBytes;
    await printData(
      { link, tags, rttNs, networkBps, networkEnvelopeBytes, ...facts, transfers: rows },
      options.output,
    );
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
    const request = Math.min(link.mrrsBytes, Math.max(...transfers));
    const limit = outstandingReadGbytesPerS(options.tags, request, options.rtt);
    printLine(
      `${options.tags} tags x ${request} B / ${formatDuration(options.rtt)} = ` +
        `${limit.toFixed(2)} GB/s of reads at most`,
    );
  }
  if (network !== undefined) {
    printLine(
      `network ${network.gbps} Gbit/s, each TLP in a frame of its own: ${ENVELOPE_BYTES} bytes beside ` +
        'its header and payload; TLS, TCP and IP are not counted',
    );
  }
  printLine('');
  printLine(
    formatTable(
      ['transfer', 'write GB/s', 'bound by', 'read GB/s', 'bound by'],
      rows.map((row) => [
        formatSize(row.transferBytes),
        row.writeGbytesPerS.toFixed(3),
        row.writeBound,
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
    addressBits: options.addressBits === '32' ? 32 : 64,
    ecrc: options.ecrc === true,
    completionsSplitAtRcb: options.splitAtRcb === true,
    duplex: true,
  };
  try {
    checkPcieLink(link);
  } catch (error) {
    const { message, details } = DxpuError.from(error);
    const field = String(details['field']);
    throw new UsageError(message.replace(field, OPTION_OF[field] ?? field));
  }
  if (options.transfer?.includes(0) === true)
    throw new UsageError('--transfer must be at least 1 byte');
  if (options.rtt === 0) throw new UsageError('--rtt must be above 0');
  if (options.network === 0) throw new UsageError('--network must be above 0');
  return link;
}

function networkOf({ network }: BandwidthOptions): NetworkPath | undefined {
  return network === undefined ? undefined : { gbps: network / 1e9, envelopeBytes: ENVELOPE_BYTES };
}

function rowOf(
  link: PcieLink,
  network: NetworkPath | undefined,
  transferBytes: number,
  options: BandwidthOptions,
): Row {
  let write = writeGbytesPerS(link, transferBytes);
  let writeBound: Row['writeBound'] = 'link';
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
  if (network !== undefined) {
    const byNetwork = networkReadGbytesPerS(link, network, transferBytes);
    if (byNetwork < read) {
      read = byNetwork;
      readBound = 'network';
    }
    const writeByNetwork = networkWriteGbytesPerS(link, network, transferBytes);
    if (writeByNetwork < write) {
      write = writeByNetwork;
      writeBound = 'network';
    }
  }
  return {
    transferBytes,
    writeGbytesPerS: write,
    writeBound,
    readGbytesPerS: read,
    readBound,
  };
}
