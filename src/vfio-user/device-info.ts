/** DEVICE_GET_INFO: how many regions and interrupt types (specification, "VFIO_USER_DEVICE_GET_INFO"). */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  payloadBytes,
  refuseArgsz,
  refuseShort,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

const INFO_BYTES = 16;
/** Clients built on later headers send, and wait for, the structure with `cap_offset` and padding. */
const LONGEST_INFO_BYTES = 24;
const FLAG_RESET = 1 << 0;
const FLAG_PCI = 1 << 1;

export interface DeviceInfo {
  readonly resettable: boolean;
  readonly pci: boolean;
  readonly regions: number;
  readonly irqs: number;
}

export function encodeDeviceInfoRequest(id: number): Uint8Array {
  const message = newMessage(id, Command.DEVICE_GET_INFO, TYPE_COMMAND, INFO_BYTES);
  viewOf(message).setUint32(HEADER_BYTES, INFO_BYTES, true);
  return message;
}

export function refuseDeviceInfoRequest(message: Message): Refusal | undefined {
  return refuseArgsz(message, INFO_BYTES);
}

/** As long a structure as the request's, 16 to 24 bytes: some clients read just that many. */
export function encodeDeviceInfoReply(request: Message, info: DeviceInfo): Uint8Array {
  const length = Math.min(payloadBytes(request), LONGEST_INFO_BYTES);
  const message = newMessage(request.id, Command.DEVICE_GET_INFO, TYPE_REPLY, length);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, length, true);
  const flags = (info.resettable ? FLAG_RESET : 0) | (info.pci ? FLAG_PCI : 0);
  view.setUint32(HEADER_BYTES + 4, flags, true);
  view.setUint32(HEADER_BYTES + 8, info.regions, true);
  view.setUint32(HEADER_BYTES + 12, info.irqs, true);
  return message;
}

/** The info of a reply, with at most `max` regions and `max` interrupt types. */
export function decodeDeviceInfoReply(reply: Message, max: number): DeviceInfo | Refusal {
  const short = refuseShort(reply, INFO_BYTES);
  if (short !== undefined) return short;
  const flags = reply.view.getUint32(HEADER_BYTES + 4, true);
  const regions = reply.view.getUint32(HEADER_BYTES + 8, true);
  const irqs = reply.view.getUint32(HEADER_BYTES + 12, true);
  if (regions > max || irqs > max) {
    return new Refusal(
      Errno.EINVAL,
      `${regions} regions and ${irqs} interrupt types, ${max} at most`,
    );
  }
  return { resettable: (flags & FLAG_RESET) !== 0, pci: (flags & FLAG_PCI) !== 0, regions, irqs };
}
