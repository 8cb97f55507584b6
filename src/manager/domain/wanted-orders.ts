/** What the two slots of a binding should hold: derived, never stored. */
import type { BoxSlotOrder, HostSlotOrder } from '#proto/agent-messages';
import type { Binding } from './inventory.ts';
import { OrderBook } from './order-book.ts';
import type { BindingRecord } from './records.ts';

/** The host's programs would not let go: everything stays as it was. */
function isStuckInDrain({ state, failure }: BindingRecord): boolean {
  return state === 'failed' && failure?.reason === 'drain-timeout';
}

/**
 * From `programming` on, and while detaching as long as the host may still use it. Then it is kept,
 * never added: a row put back would give out its generation a second time.
 */
export function wantedOfBox(binding: Binding): BoxSlotOrder | undefined {
  const { record, boxReleasing } = binding;
  switch (record.state) {
    case 'programming':
    case 'attaching':
    case 'attached':
    case 'draining':
      break;
    case 'detaching':
      if (boxReleasing) return undefined;
      break;
    default:
      if (!isStuckInDrain(record)) return undefined;
  }
  const { host, generation, path } = record;
  return { slot: record.boxSlot, row: { host, generation, path } };
}

/** Behind the box: a host that could use a row without its counterpart would only be answered UR. */
export function wantedOfHost(binding: Binding): HostSlotOrder | undefined {
  const { record, boxInForce, hostHeld } = binding;
  const isStuck = isStuckInDrain(record);
  switch (record.state) {
    case 'programming':
      if (!boxInForce && !hostHeld) return undefined;
      break;
    case 'attaching':
    case 'attached':
    case 'draining':
      break;
    default:
      if (!isStuck) return undefined;
  }
  const { box, boxSlot, generation, path, state } = record;
  return {
    slot: record.hostSlot,
    row: { box, boxSlot, generation, path },
    plugged: state === 'attaching' || state === 'attached' || isStuck,
    surprise: state !== 'draining' || record.force,
  };
}

export function newBoxBook(onDirty?: () => void): OrderBook<BoxSlotOrder> {
  return new OrderBook<BoxSlotOrder>(
    (a, b) =>
      a.row?.generation === b.row?.generation &&
      a.row?.host === b.row?.host &&
      a.row?.path === b.row?.path,
    (slot) => ({ slot, row: undefined }),
    onDirty,
  );
}

export function newHostBook(onDirty?: () => void): OrderBook<HostSlotOrder> {
  return new OrderBook<HostSlotOrder>(
    (a, b) =>
      a.row?.generation === b.row?.generation &&
      a.row?.box === b.row?.box &&
      a.row?.boxSlot === b.row?.boxSlot &&
      a.row?.path === b.row?.path &&
      a.plugged === b.plugged &&
      a.surprise === b.surprise,
    (slot) => ({ slot, row: undefined, plugged: false, surprise: true }),
    onDirty,
  );
}
