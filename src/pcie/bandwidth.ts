/**
 * What a PCIe link can carry, after the model of pcie-bench (Neugebauer et al., SIGCOMM 2018):
 * encoding, then DLLPs (acknowledgements and flow-control updates, as often as PCIe says they are
 * due), then headers. To that comes the limit of outstanding reads: tags × MRRS ÷ round trip.
 *
 * Rates are payload bytes a nanosecond, that is GB/s (10^9), unless the name says Gb/s. Generation 6
 * is approximate: its flits are treated as an encoding of 242 in 256 with the DLLPs of generation 5.
 */
import { DxpuError } from '#base/errors';

export interface PcieLink {
  /** 1 to 6. */
  readonly generation: number;
  /** 1, 2, 4, 8, 12, 16 or 32. */
  readonly lanes: number;
  /** 128, 256 … 4096. */
  readonly mpsBytes: number;
  readonly mrrsBytes: number;
  /** 64 or 128. */
  readonly rcbBytes: number;
  readonly addressBits: 32 | 64;
  /** 4 bytes more in every TLP. */
  readonly ecrc: boolean;
  /** Whether a completer answers in pieces of RCB (the worst it may do) rather than of MPS. */
  readonly completionsSplitAtRcb: boolean;
  /**
   * Whether TLPs flow the other way too, whose acknowledgements and credits then take their share of
   * this direction. pcie-bench always assumes so. Without, DLLPs travel the idle direction.
   */
  readonly duplex: boolean;
}

export const DEFAULT_PCIE_LINK: PcieLink = {
  generation: 3,
  lanes: 16,
  mpsBytes: 256,
  mrrsBytes: 512,
  rcbBytes: 64,
  addressBits: 64,
  ecrc: false,
  completionsSplitAtRcb: false,
  duplex: true,
};

interface Generation {
  readonly gigatransfersPerS: number;
  readonly encoding: number;
  /** The term D of the acknowledgement limit, in symbol times. */
  readonly ackDelaySymbols: number;
}

const GENERATIONS: readonly Generation[] = [
  { gigatransfersPerS: 2.5, encoding: 8 / 10, ackDelaySymbols: 19 },
  { gigatransfersPerS: 5, encoding: 8 / 10, ackDelaySymbols: 70 },
  { gigatransfersPerS: 8, encoding: 128 / 130, ackDelaySymbols: 115 },
  { gigatransfersPerS: 16, encoding: 128 / 130, ackDelaySymbols: 115 },
  { gigatransfersPerS: 32, encoding: 128 / 130, ackDelaySymbols: 115 },
  { gigatransfersPerS: 64, encoding: 242 / 256, ackDelaySymbols: 115 },
];

const LANES: readonly number[] = [1, 2, 4, 8, 12, 16, 32];

/** Framing, sequence number and LCRC around every TLP. */
export const TLP_FRAMING_BYTES = 8;
const COMPLETION_HEADER_BYTES = 12;
const ECRC_BYTES = 4;
const DLLP_BYTES = 8;
/** A skip ordered set of 4 symbols, at least every 1538. */
const SKIP_SHARE = 4 / 1538;
/** Header, framing and CRCs that the specification's acknowledgement limit allows a TLP. */
const ACK_LIMIT_TLP_OVERHEAD = 28;

/**
 * Checks every field. Throws `DxpuError` `invalid_argument` that names the first wrong one
 * (`details.field`).
 */
export function checkPcieLink(link: PcieLink): void {
  check('generation', link.generation, [1, 2, 3, 4, 5, 6]);
  check('lanes', link.lanes, LANES);
  check('mpsBytes', link.mpsBytes, [128, 256, 512, 1024, 2048, 4096]);
  check('mrrsBytes', link.mrrsBytes, [128, 256, 512, 1024, 2048, 4096]);
  check('rcbBytes', link.rcbBytes, [64, 128]);
  check('addressBits', link.addressBits, [32, 64]);
}

/** Generation 6 is only approximated. */
export function isApproximate(link: PcieLink): boolean {
  return link.generation >= 6;
}

/** Bits on the wires, all lanes, one direction. */
export function rawGbps(link: PcieLink): number {
  return generationOf(link).gigatransfersPerS * link.lanes;
}

/** What is left after the line code. */
export function encodedGbps(link: PcieLink): number {
  return rawGbps(link) * generationOf(link).encoding;
}

/** What is left for TLPs, framing included, after DLLPs and skip ordered sets. */
export function tlpLayerGbps(link: PcieLink): number {
  const dllpShare = link.duplex ? (2 * DLLP_BYTES) / ackLimitSymbols(link) : 0;
  return encodedGbps(link) * (1 - dllpShare - SKIP_SHARE);
}

/**
 * How many symbol times a receiver may wait with an acknowledgement, on each lane; the same is taken
 * for flow-control updates.
 */
export function ackLimitSymbols(link: PcieLink): number {
  const tlpSymbols = ((link.mpsBytes + ACK_LIMIT_TLP_OVERHEAD) * ackFactor(link)) / link.lanes;
  return Math.floor(tlpSymbols + generationOf(link).ackDelaySymbols);
}

/** Bytes of one memory read request on the wire. */
export function readRequestWireBytes(link: PcieLink): number {
  return TLP_FRAMING_BYTES + requestHeaderBytes(link) + ecrcBytes(link);
}

/** Bytes of one memory write on the wire beside its payload. */
export function writeOverheadBytes(link: PcieLink): number {
  return TLP_FRAMING_BYTES + requestHeaderBytes(link) + ecrcBytes(link);
}

/** Bytes of one completion with data on the wire beside its payload. */
export function completionOverheadBytes(link: PcieLink): number {
  return TLP_FRAMING_BYTES + COMPLETION_HEADER_BYTES + ecrcBytes(link);
}

/** Payload rate of back-to-back writes of `transferBytes` each. */
export function writeGbytesPerS(link: PcieLink, transferBytes: number): number {
  const packets = Math.ceil(transferBytes / link.mpsBytes);
  const wireBytes = packets * writeOverheadBytes(link) + transferBytes;
  return (tlpLayerGbps(link) / 8) * (transferBytes / wireBytes);
}

/**
 * Payload rate of back-to-back reads of `transferBytes` each, as far as the link goes: the lesser of
 * what the completions and the requests, each in its direction, leave.
 */
export function readGbytesPerS(link: PcieLink, transferBytes: number): number {
  const completionBytes = link.completionsSplitAtRcb ? link.rcbBytes : link.mpsBytes;
  const down =
    Math.ceil(transferBytes / completionBytes) * completionOverheadBytes(link) + transferBytes;
  const up = Math.ceil(transferBytes / link.mrrsBytes) * readRequestWireBytes(link);
  return (tlpLayerGbps(link) / 8) * (transferBytes / Math.max(down, up));
}

/** A network that carries the TLPs. */
export interface NetworkPath {
  /** One direction, Gb/s. */
  readonly gbps: number;
  /** Bytes around each TLP, its own header apart. */
  readonly envelopeBytes: number;
}

/** Payload rate that a network leaves to writes of `transferBytes` each. */
export function networkWriteGbytesPerS(
  link: PcieLink,
  network: NetworkPath,
  transferBytes: number,
): number {
  const overhead = network.envelopeBytes + requestHeaderBytes(link) + ecrcBytes(link);
  const bytes = Math.ceil(transferBytes / link.mpsBytes) * overhead + transferBytes;
  return (network.gbps / 8) * (transferBytes / bytes);
}

/** The same for reads: the lesser of what completions and requests, each in its direction, leave. */
export function networkReadGbytesPerS(
  link: PcieLink,
  network: NetworkPath,
  transferBytes: number,
): number {
  const { envelopeBytes, gbps } = network;
  const requests = Math.ceil(transferBytes / link.mrrsBytes);
  // A completion is of one request alone.
  const completionBytes = Math.min(
    link.mrrsBytes,
    link.completionsSplitAtRcb ? link.rcbBytes : link.mpsBytes,
  );
  const completions = Math.ceil(transferBytes / completionBytes);
  const down =
    completions * (envelopeBytes + COMPLETION_HEADER_BYTES + ecrcBytes(link)) + transferBytes;
  const up = requests * (envelopeBytes + requestHeaderBytes(link) + ecrcBytes(link));
  return (gbps / 8) * (transferBytes / Math.max(down, up));
}

/**
 * The rate of reads with `tags` requests of `requestBytes` outstanding over a round trip: one
 * request's bytes come back for each tag each `rttNs`.
 */
export function outstandingReadGbytesPerS(
  tags: number,
  requestBytes: number,
  rttNs: number,
): number {
  return (tags * requestBytes) / rttNs;
}

/** `min(link, tags × MRRS ÷ round trip)`: the payload rate a device's reads reach. */
export function limitedReadGbytesPerS(
  link: PcieLink,
  transferBytes: number,
  tags: number,
  rttNs: number,
): number {
  // A transfer smaller than MRRS, or its last request, does not fill the request.
  const requestBytes = transferBytes / Math.ceil(transferBytes / link.mrrsBytes);
  return Math.min(
    readGbytesPerS(link, transferBytes),
    outstandingReadGbytesPerS(tags, requestBytes, rttNs),
  );
}

/** The specification's AckFactor: TLPs that one acknowledgement may stand for. */
function ackFactor(link: PcieLink): number {
  if (link.mpsBytes >= 512) return link.lanes >= 12 ? 2 : 1;
  if (link.lanes >= 12) return 3;
  return link.lanes >= 8 ? 2.5 : 1.4;
}

function requestHeaderBytes(link: PcieLink): number {
  return link.addressBits === 64 ? 16 : 12;
}

function ecrcBytes(link: PcieLink): number {
  return link.ecrc ? ECRC_BYTES : 0;
}

function generationOf(link: PcieLink): Generation {
  const generation = GENERATIONS[link.generation - 1];
  if (generation === undefined) checkPcieLink(link);
  return generation as Generation;
}

function check(field: string, value: number, allowed: readonly number[]): void {
  if (allowed.includes(value)) return;
  throw new DxpuError('invalid_argument', `${field} is ${value}: must be ${oneOf(allowed)}`, {
    details: { field, value, allowed },
  });
}

function oneOf(allowed: readonly number[]): string {
  return `${allowed.slice(0, -1).join(', ')} or ${allowed[allowed.length - 1]}`;
}
