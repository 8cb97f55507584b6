/** The pool in memory as the last commit left it: no agent is connected, and nothing is observed. */
import { assertDefined } from '#base/assert';
import type { Snapshot } from './batch.ts';
import type { FactsKeeper } from './facts-keeper.ts';
import { Inventory } from './inventory.ts';

export function restoreInventory(snapshot: Snapshot, facts: FactsKeeper): Inventory {
  const inventory = new Inventory();
  for (const record of snapshot.boxes) {
    facts.box(inventory.addBox(record), false);
  }
  for (const record of snapshot.boxSlots) {
    const slot = inventory.boxSlot(box(inventory, record.box), record.slot);
    slot.record = record;
    const isFirst = !inventory.nodes.has(record.node.uuid);
    if (record.present && isFirst) inventory.nodes.set(record.node.uuid, slot);
  }
  for (const record of snapshot.hosts) facts.host(inventory.addHost(record));
  for (const record of snapshot.hostSlots) {
    inventory.hostSlot(host(inventory, record.host), record.slot).record = record;
  }
  for (const record of snapshot.bindings) {
    inventory.addBinding(
      record,
      inventory.boxSlot(box(inventory, record.box), record.boxSlot),
      inventory.hostSlot(host(inventory, record.host), record.hostSlot),
    );
  }
  for (const one of inventory.boxes.values()) {
    for (const slot of one.slots.values()) facts.boxSlot(slot, true);
  }
  for (const one of inventory.hosts.values()) {
    for (const slot of one.slots.values()) facts.hostSlot(slot);
  }
  for (const record of snapshot.paths) {
    const owner = host(inventory, record.host);
    facts.path(owner, inventory.path(owner, record));
  }
  return inventory;
}

function box(inventory: Inventory, id: string) {
  return assertDefined(
    inventory.boxes.get(id),
    `the store has a slot of box ${id}, but not the box`,
  );
}

function host(inventory: Inventory, id: string) {
  return assertDefined(
    inventory.hosts.get(id),
    `the store has parts of host ${id}, but not the host`,
  );
}
