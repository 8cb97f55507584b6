/** What the two slots of a binding should hold: derived, never stored; and the books that are told. */
import type { BoxSlotOrder, HostSlotOrder } from '#proto/agent-messages';
import { type Binding, isReporting } from './inventory.ts';
import { boxRow, hostRow } from './observe.ts';
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
function wantedOfBox(binding: Binding): BoxSlotOrder | undefined {
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
function wantedOfHost(binding: Binding): HostSlotOrder | undefined {
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

/** What was seen now and stays true of this generation; then what its slots should hold. */
export function settleOrders(binding: Binding): void {
  const { boxSlot, hostSlot, record } = binding;
  const atBox = boxRow(binding);
  const atHost = hostRow(binding);
  if (atBox === 'own') binding.boxHeld = true;
  if (atHost === 'own') binding.hostHeld = true;
  const boxBook = boxSlot.box.session?.book;
  const hostBook = hostSlot.host.session?.book;
  if (record.state === 'detaching') {
    hostBook?.want(hostSlot.slot, wantedOfHost(binding));
    const isGone = atHost === 'none' || atHost === 'other';
    if (isGone && hostBook?.isConfirmed(hostSlot.slot) === true) binding.hostReleased = true;
    const isNotThere = atBox === 'none' || atBox === 'other';
    const doesNotWait = record.force && !isReporting(hostSlot.host);
    if (binding.hostReleased || isNotThere || doesNotWait) binding.boxReleasing = true;
    boxBook?.want(boxSlot.slot, wantedOfBox(binding));
    return;
  }
  const ofBox = wantedOfBox(binding);
  if (ofBox === undefined && record.state !== 'reserved') binding.boxReleasing = true;
  boxBook?.want(boxSlot.slot, ofBox);
  if (atBox === 'own' && boxBook?.isConfirmed(boxSlot.slot) === true) binding.boxInForce = true;
  hostBook?.want(hostSlot.slot, wantedOfHost(binding));
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
