/**
 * DEVICE_SET_IRQS: where interrupts go, and masking (specification, "VFIO_USER_DEVICE_SET_IRQS";
 * `struct vfio_irq_set` of linux/vfio.h).
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  payloadBytes,
  refuseArgsz,
  TYPE_COMMAND,
  viewOf,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';
import { IRQ_COUNT } from './irq-info.ts';

const FIXED_BYTES = 20;
const DATA_NONE = 1 << 0;
const DATA_BOOL = 1 << 1;
const DATA_EVENTFD = 1 << 2;
const ACTION_MASK = 1 << 3;
const ACTION_UNMASK = 1 << 4;
const ACTION_TRIGGER = 1 << 5;
const DATA_BITS = { none: DATA_NONE, bool: DATA_BOOL, eventfd: DATA_EVENTFD } as const;
const ACTION_BITS = { mask: ACTION_MASK, unmask: ACTION_UNMASK, trigger: ACTION_TRIGGER } as const;

export interface IrqSet {
  readonly index: number;
  readonly start: number;
  readonly count: number;
  readonly data: keyof typeof DATA_BITS;
  readonly action: keyof typeof ACTION_BITS;
  /** With `data` bool: one byte for each interrupt of the range. Of a decoded message it is a view. */
  readonly bools?: Uint8Array;
}

/** Refuses another range than [0, 0) or one inside the `total(index)` interrupts of the type. */
export function decodeIrqSet(message: Message, total: (index: number) => number): IrqSet | Refusal {
  const refused = refuseArgsz(message, FIXED_BYTES);
  if (refused !== undefined) return refused;
  const { view, bytes } = message;
  const flags = view.getUint32(HEADER_BYTES + 4, true);
  const index = view.getUint32(HEADER_BYTES + 8, true);
  const start = view.getUint32(HEADER_BYTES + 12, true);
  const count = view.getUint32(HEADER_BYTES + 16, true);
  const data = named(DATA_BITS, flags & 7);
  const action = named(ACTION_BITS, flags & 0x38);
  if (data === undefined || action === undefined || flags > 0x3f) {
    return new Refusal(Errno.EINVAL, `SET_IRQS has flags 0x${flags.toString(16)}`);
  }
  if (index >= IRQ_COUNT) return new Refusal(Errno.EINVAL, `there is no interrupt type ${index}`);
  const isDisable = count === 0 && start === 0 && data === 'none' && action === 'trigger';
  if ((count === 0 && !isDisable) || start + count > total(index)) {
    const have = `type ${index} has ${total(index)}`;
    return new Refusal(Errno.EINVAL, `SET_IRQS of ${count} from ${start} on; ${have}`);
  }
  const argsz = view.getUint32(HEADER_BYTES, true);
  const length = FIXED_BYTES + (data === 'bool' ? count : 0);
  if (payloadBytes(message) !== length || argsz < length) {
    const got = payloadBytes(message);
    return new Refusal(Errno.EINVAL, `SET_IRQS has ${got} bytes, argsz ${argsz}, not ${length}`);
  }
  const set = { index, start, count, data, action };
  if (data !== 'bool') return set;
  return { ...set, bools: bytes.subarray(HEADER_BYTES + FIXED_BYTES, HEADER_BYTES + length) };
}

export function encodeIrqSet(id: number, set: IrqSet): Uint8Array {
  const bools = set.bools ?? new Uint8Array(0);
  const length = FIXED_BYTES + bools.length;
  const message = newMessage(id, Command.DEVICE_SET_IRQS, TYPE_COMMAND, length);
  const view = viewOf(message);
  view.setUint32(HEADER_BYTES, length, true);
  view.setUint32(HEADER_BYTES + 4, DATA_BITS[set.data] | ACTION_BITS[set.action], true);
  view.setUint32(HEADER_BYTES + 8, set.index, true);
  view.setUint32(HEADER_BYTES + 12, set.start, true);
  view.setUint32(HEADER_BYTES + 16, set.count, true);
  message.set(bools, HEADER_BYTES + FIXED_BYTES);
  return message;
}

function named<K extends string>(bits: Readonly<Record<K, number>>, value: number): K | undefined {
  for (const name in bits) if (bits[name] === value) return name;
  return undefined;
}
