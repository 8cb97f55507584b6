/**
 * DEVICE_GET_IRQ_INFO: how many interrupts of a type, and what can be done with them (specification,
 * "VFIO_USER_DEVICE_GET_IRQ_INFO"; indexes from linux/vfio.h).
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  refuseArgsz,
  refuseShort,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

export const IRQ_INTX = 0;
export const IRQ_MSI = 1;
export const IRQ_MSIX = 2;
/** An error of the device. QEMU stops the VM for it. */
export const IRQ_ERR = 3;
/** A request to give the device back. QEMU unplugs it. */
export const IRQ_REQ = 4;
export const IRQ_COUNT = 5;

const INFO_BYTES = 16;
const FLAG_EVENTFD = 1 << 0;
const FLAG_MASKABLE = 1 << 1;
const FLAG_AUTOMASKED = 1 << 2;
const FLAG_NORESIZE = 1 << 3;

/** What each type can do, at its index: INTx is a level, the message types are set up as a whole. */
const FLAGS = [
  FLAG_EVENTFD | FLAG_MASKABLE | FLAG_AUTOMASKED,
  FLAG_EVENTFD | FLAG_NORESIZE,
  FLAG_EVENTFD | FLAG_NORESIZE,
  FLAG_EVENTFD,
  FLAG_EVENTFD,
];

/** How many interrupts of each type the device has. */
export interface IrqCounts {
  readonly intx: 0 | 1;
  /** 0 to 32. */
  readonly msi: number;
  /** 0 to 2048. */
  readonly msix: number;
  readonly err: 0 | 1;
  readonly req: 0 | 1;
}

export function irqCount(counts: IrqCounts, index: number): number {
  return [counts.intx, counts.msi, counts.msix, counts.err, counts.req][index] ?? 0;
}

export function encodeIrqInfoRequest(id: number, index: number): Uint8Array {
  const message = newMessage(id, Command.DEVICE_GET_IRQ_INFO, TYPE_COMMAND, INFO_BYTES);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, INFO_BYTES, true);
  view.setUint32(HEADER_BYTES + 8, index, true);
  return message;
}

/** The index asked for. */
export function decodeIrqInfoRequest(message: Message): number | Refusal {
  const refused = refuseArgsz(message, INFO_BYTES);
  if (refused !== undefined) return refused;
  const index = message.view.getUint32(HEADER_BYTES + 8, true);
  if (index < IRQ_COUNT) return index;
  return new Refusal(Errno.EINVAL, `there is no interrupt type ${index}`);
}

export function encodeIrqInfoReply(request: Message, index: number, count: number): Uint8Array {
  const message = newMessage(request.id, Command.DEVICE_GET_IRQ_INFO, TYPE_REPLY, INFO_BYTES);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, INFO_BYTES, true);
  view.setUint32(HEADER_BYTES + 4, count === 0 ? 0 : (FLAGS[index] ?? 0), true);
  view.setUint32(HEADER_BYTES + 8, index, true);
  view.setUint32(HEADER_BYTES + 12, count, true);
  return message;
}

/** How many interrupts of type `index` the reply tells of, at most `max`. */
export function decodeIrqInfoReply(reply: Message, index: number, max: number): number | Refusal {
  const short = refuseShort(reply, INFO_BYTES);
  if (short !== undefined) return short;
  const count = reply.view.getUint32(HEADER_BYTES + 12, true);
  if (reply.view.getUint32(HEADER_BYTES + 8, true) !== index || count > max) {
    return new Refusal(Errno.EINVAL, `${count} interrupts of type ${index}, ${max} at most`);
  }
  return count;
}
