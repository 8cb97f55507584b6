import { type Binding, isReporting } from './inventory.ts';
import { boxRow, hostRow } from './observe.ts';
import { wantedOfBox, wantedOfHost } from './wanted-orders.ts';

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
