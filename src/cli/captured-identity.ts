/** What a capture shows of the accelerator it was taken of, for a model of the same identity. */
import {
  MEMORY_BYTES_HI,
  MEMORY_BYTES_LO,
  RESET,
  RESET_KEY,
  UUID_0,
  UUID_1,
  UUID_2,
  UUID_3,
} from '#devices/accel-registers';
import { Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import type { CapturedFunction } from './pcapng.ts';
import { type CapturedPacket, indexCapture } from './replay-index.ts';

/** Register of BAR 0 in config space. */
const BAR_0 = 0x10;

export interface CapturedIdentity {
  readonly uuid: string | undefined;
  readonly memoryBytes: number | undefined;
}

/** From what the host read of the identity registers; any driver does that when it starts. */
export function identityInCapture(
  packets: readonly CapturedPacket[],
  captured: CapturedFunction | undefined,
): CapturedIdentity {
  const bar0 = bar0Of(packets, captured);
  const registers = bar0 === undefined ? new Map<number, Buffer>() : registersRead(packets, bar0);
  const words = [UUID_0, UUID_1, UUID_2, UUID_3].map((at) => registers.get(at));
  const low = registers.get(MEMORY_BYTES_LO);
  const high = registers.get(MEMORY_BYTES_HI);
  return {
    uuid: words.every((word) => word !== undefined) ? uuidOf(words) : undefined,
    memoryBytes:
      low === undefined ? undefined : low.readUInt32LE() + (high?.readUInt32LE() ?? 0) * 2 ** 32,
  };
}

/** Tells the packets by which the host resets the accelerator's registers. */
export function resetsIn(
  packets: readonly CapturedPacket[],
  captured: CapturedFunction | undefined,
): (packet: CapturedPacket) => boolean {
  const bar0 = bar0Of(packets, captured);
  if (bar0 === undefined) return () => false;
  const tlp = new Tlp();
  return ({ direction, tlp: bytes }) => {
    if (direction !== 'down') return false;
    if (decodeTlp(bytes, 0, bytes.length, tlp) !== TlpDecode.OK) return false;
    if (tlp.kind !== TlpKind.MWr32 || tlpAddress(tlp) !== bar0 + RESET) return false;
    return Buffer.from(tlp.payload).readUInt32LE(tlp.payloadOffset) === RESET_KEY;
  };
}

/** Where BAR 0 was: as the capture says, or as the host last wrote it. */
function bar0Of(
  packets: readonly CapturedPacket[],
  captured: CapturedFunction | undefined,
): number | undefined {
  let value = captured === undefined ? 0 : Buffer.from(captured.configSpace).readUInt32LE(BAR_0);
  const tlp = new Tlp();
  for (const packet of packets) {
    if (packet.direction !== 'down') continue;
    if (decodeTlp(packet.tlp, 0, packet.tlp.length, tlp) !== TlpDecode.OK) continue;
    if (tlp.kind !== TlpKind.CfgWr0 || tlp.register !== BAR_0 || tlp.firstBe !== 15) continue;
    const written = Buffer.from(tlp.payload).readUInt32LE(tlp.payloadOffset);
    // All ones is the host asking for the size.
    if (written !== 0xffff_ffff && written !== 0) value = written;
  }
  return value === 0 ? undefined : (value & ~15) >>> 0;
}

/** The four bytes last read of each register of BAR 0. */
function registersRead(packets: readonly CapturedPacket[], bar0: number): Map<number, Buffer> {
  const request = new Tlp();
  const answer = new Tlp();
  const registers = new Map<number, Buffer>();
  for (const { packet, completions } of indexCapture(packets).hostRequests.values()) {
    const [completion] = completions;
    if (completion === undefined || completions.length !== 1) continue;
    if (decodeTlp(packet.tlp, 0, packet.tlp.length, request) !== TlpDecode.OK) continue;
    if (decodeTlp(completion.tlp, 0, completion.tlp.length, answer) !== TlpDecode.OK) continue;
    if (request.kind !== TlpKind.MRd32 || answer.kind !== TlpKind.CplD) continue;
    for (let dw = 0; dw < request.lengthDw; dw++) {
      const from = answer.payloadOffset + dw * 4;
      registers.set(
        tlpAddress(request) + dw * 4 - bar0,
        Buffer.from(answer.payload.subarray(from, from + 4)),
      );
    }
  }
  return registers;
}

function uuidOf(words: readonly (Buffer | undefined)[]): string {
  const hex = Buffer.concat(words.map((word) => word ?? Buffer.alloc(4))).toString('hex');
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
