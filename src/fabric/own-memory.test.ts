import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp } from '#pcie/tlp';
import { expect, test } from 'vitest';
import { encoded } from '#testkit/fake-link';
import { HostProxyWorld } from '#testkit/host-proxy-world';
import { Refusal } from './counters.ts';

const RW = { read: true, write: true };
const { SC, UR } = CompletionStatus;

/** Slots 0 and 1, ready and bus masters, with two different pages at the same address. */
function worldOfTwo() {
  const world = new HostProxyWorld({ ownMemory: true });
  world.ready();
  const pages = [0, 1].map((slot) => {
    world.setBusMaster(slot, true);
    const page = new Uint8Array(4096).fill(0x10 + slot);
    world.proxy.registerSlotMemory(slot, 0x1_0000, page, RW);
    return page;
  });
  return { world, pages };
}

function send(world: HostProxyWorld, virtualSlot: number, tlp: Tlp) {
  const { row, link } = world.routeOf(virtualSlot);
  link.take();
  world.receive(link, row.slot, row.generation, encoded(tlp));
  return link.take().map(({ tlp: answer }) => ({
    status: answer.status,
    first: answer.payloadBytes > 0 ? answer.payload[answer.payloadOffset] : undefined,
  }));
}

function read(world: HostProxyWorld, virtualSlot: number, address: number) {
  const tlp = new Tlp();
  setMemoryRead(tlp, address, 4, world.routeOf(virtualSlot).row.secondaryBus << 8, 1);
  return send(world, virtualSlot, tlp);
}

function write(world: HostProxyWorld, virtualSlot: number, address: number): void {
  const tlp = new Tlp();
  setMemoryWrite(tlp, address, 4, world.routeOf(virtualSlot).row.secondaryBus << 8);
  tlp.payload = Uint8Array.of(9, 9, 9, 9);
  send(world, virtualSlot, tlp);
}

test('one address is another memory for each slot', () => {
  const { world, pages } = worldOfTwo();
  expect(read(world, 0, 0x1_0000)).toEqual([{ status: SC, first: 0x10 }]);
  expect(read(world, 1, 0x1_0000)).toEqual([{ status: SC, first: 0x11 }]);
  write(world, 1, 0x1_0004);
  expect(pages.map((page) => page[4])).toEqual([0x10, 9]);
});

test('memory of one slot is none of another, and taking it back concerns that slot alone', () => {
  const { world } = worldOfTwo();
  world.proxy.registerSlotMemory(0, 0x2_0000, new Uint8Array(4096).fill(7), RW);
  expect(read(world, 0, 0x2_0000)).toEqual([{ status: SC, first: 7 }]);
  expect(read(world, 1, 0x2_0000)).toEqual([{ status: UR, first: undefined }]);
  expect(world.proxy.counters(1).refused[Refusal.UNREGISTERED]).toBe(1);
  world.proxy.unregisterSlotMemory(0, 0x1_0000);
  expect(read(world, 0, 0x1_0000)).toEqual([{ status: UR, first: undefined }]);
  expect(read(world, 1, 0x1_0000)).toEqual([{ status: SC, first: 0x11 }]);
  expect(() => world.proxy.unregisterSlotMemory(0, 0x1_0000)).toThrow(/no memory/);
});

test('an address of a window is memory where the slot has some, and a peer where it has none', () => {
  const { world } = worldOfTwo();
  const { base } = world.routeOf(1).row.nonPrefetchable;
  expect(read(world, 0, base)).toEqual([{ status: UR, first: undefined }]);
  expect(world.proxy.counters(0).refused[Refusal.PEER_TO_PEER]).toBe(1);
  world.proxy.registerSlotMemory(0, base, new Uint8Array(4096).fill(5), RW);
  expect(read(world, 0, base)).toEqual([{ status: SC, first: 5 }]);
});

test('memory for all slots has no place beside it', () => {
  const { world } = worldOfTwo();
  expect(() => world.proxy.registerMemory(0x8_0000, new Uint8Array(4096), RW)).toThrow();
});
