/**
 * The parts of a capture that a replay can judge. What a device does depends on what its registers
 * hold; that is known from the beginning of the capture, if it was not in use before, and from each
 * reset by the host on, until the capture lacks TLPs.
 */
import { Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import type { CapturedPacket } from './replay-index.ts';

export interface ReplaySegment {
  readonly packets: CapturedPacket[];
  /** Config writes of the capture before it, judged or not. */
  readonly configWrites: readonly CapturedPacket[];
}

export function segmentsOf(
  packets: readonly CapturedPacket[],
  inUse: boolean,
  isReset: (packet: CapturedPacket) => boolean,
): ReplaySegment[] {
  const segments: ReplaySegment[] = [];
  const configWrites: CapturedPacket[] = [];
  const tlp = new Tlp();
  const begin = (): ReplaySegment => {
    const segment = { packets: [], configWrites: [...configWrites] };
    segments.push(segment);
    return segment;
  };
  let current = inUse || packets.length === 0 ? undefined : begin();
  for (const packet of packets) {
    if (packet.lostBefore !== undefined) current = undefined;
    if (current === undefined && isReset(packet)) current = begin();
    current?.packets.push(packet);
    const decoded = decodeTlp(packet.tlp, 0, packet.tlp.length, tlp) === TlpDecode.OK;
    if (decoded && packet.direction === 'down' && tlp.kind === TlpKind.CfgWr0) {
      configWrites.push(packet);
    }
  }
  return segments.filter((segment) => segment.packets.length > 0);
}
