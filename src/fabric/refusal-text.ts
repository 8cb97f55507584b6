import { formatBdf } from '#base/units';
import { TLP_KIND_NAMES, type Tlp } from '#pcie/tlp';
import { Refusal } from './counters.ts';
import type { HostSlot } from './host-slot.ts';

/** One line for an operator: what came from the function behind `slot`, and why it was refused. */
export function describeRefused(slot: HostSlot, refusal: Refusal, tlp: Tlp): string {
  const where = `virtual slot ${slot.virtualSlot}`;
  if (refusal === Refusal.MALFORMED) return `${where}: a malformed TLP was dropped`;
  if (refusal === Refusal.ECRC) return `${where}: a TLP with a wrong ECRC was dropped`;
  const kind = TLP_KIND_NAMES[tlp.kind] ?? `TLP of kind 0x${tlp.kind.toString(16)}`;
  const address = (BigInt(tlp.addressHi) << 32n) | BigInt(tlp.addressLo);
  const access = `${where}: ${kind} at 0x${address.toString(16)} refused`;
  switch (refusal) {
    case Refusal.UNSUPPORTED_KIND:
    case Refusal.CONFIG_OR_IO:
    case Refusal.MESSAGE:
      return `${where}: ${kind} from a function is not supported`;
    case Refusal.ADDRESS_TYPE:
      return `${access}: address type ${tlp.addressType}, but translation was never offered`;
    case Refusal.REQUESTER_ID: {
      const { capturedBdf } = slot.shadow;
      const captured = capturedBdf < 0 ? 'it has none yet' : `it is ${formatBdf(capturedBdf)}`;
      return `${access}: requester ${formatBdf(tlp.requesterId)} is not the function's (${captured})`;
    }
    case Refusal.BUS_MASTER_OFF:
      return `${access}: bus mastering is off`;
    case Refusal.ADDRESS:
      return `${access}: above 2^53`;
    case Refusal.INTERRUPT:
      return `${access}: not an interrupt the host has set up for this function`;
    case Refusal.PEER_TO_PEER:
      return `${access}: a window of this host; requests between functions are not supported`;
    case Refusal.UNREGISTERED:
      return `${access}: the host has not opened this memory`;
    case Refusal.ACCESS:
      return `${access}: the host has not opened this memory for that`;
    default:
      return `${access}: the payload is poisoned`;
  }
}
