/** A host proxy that keeps functions out of their slots until it is told. */
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { encoded } from '#testkit/fake-link';
import { configRequest, HostProxyWorld, hostRow, NOW } from '#testkit/host-proxy-world';
import type { HostProxyEvent } from './host-proxy.ts';

const BDF = 0x0300;
const BAR = 0x4000_0000;
const { UR } = CompletionStatus;

/** Three slots, ready, their functions held. */
function heldWorld() {
  const events: HostProxyEvent[] = [];
  const world = new HostProxyWorld({
    holdsFunctions: true,
    onEvent: (_now, event) => events.push(event),
  });
  world.ready();
  const memory = new Uint8Array(4096);
  world.proxy.registerMemory(0x1_0000, memory, { read: true, write: true });
  return { world, memory, events };
}

function mmioRead(tag: number): Tlp {
  const tlp = new Tlp();
  setMemoryRead(tlp, BAR, 4, 0x0008, tag);
  return tlp;
}

function dmaWrite(): Uint8Array {
  const tlp = new Tlp();
  setMemoryWrite(tlp, 0x1_0000, 4, BDF);
  tlp.payload = Uint8Array.of(1, 2, 3, 4);
  return encoded(tlp);
}

describe('a function held out of its slot', () => {
  test('is not there for its host, though the row is ready', () => {
    const { world } = heldWorld();
    expect(world.proxy.slotState(0)).toBe('ready');
    expect(world.proxy.functionPlace(0)).toBe('held');
    expect(world.root.links).toEqual([]);
    world.proxy.request(NOW, mmioRead(1));
    const config = configRequest(TlpKind.CfgRd1, 3, 0, 0xf);
    config.tag = 2;
    world.proxy.request(NOW, config);
    expect(world.root.takeCompletions().map(({ tag, status }) => [tag, status])).toEqual([
      [1, UR],
      [2, UR],
    ]);
    expect(world.linkB.take()).toEqual([]);
  });

  test('learns nothing of its configuration and may not touch memory', () => {
    const { world, memory } = heldWorld();
    world.setBusMaster(0, true);
    world.receive(world.linkB, 7, 11, dmaWrite());
    expect(memory[0]).toBe(0);
    expect(world.proxy.counters(0).stalePosted).toBe(1);
    expect(world.proxy.command(0)).toEqual({ memoryEnable: false, busMaster: false });
  });

  test('enters when told, and works', () => {
    const { world, memory } = heldWorld();
    world.proxy.plug(NOW, 0);
    expect(world.root.links).toEqual([{ virtualSlot: 0, active: true, surprise: false }]);
    world.setBusMaster(0, true);
    expect(world.proxy.command(0)).toEqual({ memoryEnable: true, busMaster: true });
    world.receive(world.linkB, 7, 11, dmaWrite());
    expect([...memory.subarray(0, 4)]).toEqual([1, 2, 3, 4]);
    world.proxy.plug(NOW, 0);
    expect(world.root.links).toHaveLength(1);
  });

  test('told before its row is ready enters with READY', () => {
    const world = new HostProxyWorld({ holdsFunctions: true });
    expect(world.proxy.setTable(NOW, [hostRow(0, 11)])).toEqual([]);
    world.proxy.plug(NOW, 0);
    expect(world.root.links).toEqual([]);
    world.ready();
    expect(world.root.links).toEqual([{ virtualSlot: 0, active: true, surprise: false }]);
  });

  test('told to stay out again before it entered can still enter later', () => {
    const world = new HostProxyWorld({ holdsFunctions: true });
    expect(world.proxy.setTable(NOW, [hostRow(0, 11)])).toEqual([]);
    world.proxy.plug(NOW, 0);
    world.proxy.unplug(NOW, 0, false);
    world.ready();
    expect(world.root.links).toEqual([]);
    world.proxy.plug(NOW, 0);
    expect(world.root.links).toHaveLength(1);
  });

  test('goes down with its session in silence: its host never saw it', () => {
    const { world, events } = heldWorld();
    world.linkB.up = false;
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    expect(world.proxy.slotState(0)).toBe('contained');
    expect(world.root.links).toEqual([]);
    expect(events).toContainEqual({
      kind: 'slot-down',
      virtualSlot: 0,
      generation: 11,
      surprise: false,
      reason: 'link to box b is down: cut',
    });
    world.proxy.plug(NOW, 0);
    expect(world.root.links).toEqual([]);
  });
});

describe('a function taken out of its slot', () => {
  test.each([true, false])(
    'has its requests ended, and nothing passes (surprise: %s)',
    (surprise) => {
      const { world, memory } = heldWorld();
      world.proxy.plug(NOW, 0);
      world.setBusMaster(0, true);
      world.linkB.take();
      world.proxy.request(NOW, mmioRead(1));
      expect(world.linkB.take()).toHaveLength(1);
      world.proxy.unplug(NOW, 0, surprise);
      expect(world.root.takeCompletions()).toMatchObject([{ tag: 1, status: UR }]);
      expect(world.root.links.at(-1)).toEqual({ virtualSlot: 0, active: false, surprise });
      world.receive(world.linkB, 7, 11, dmaWrite());
      expect(memory[0]).toBe(0);
      world.proxy.request(NOW, mmioRead(1));
      expect(world.root.takeCompletions()).toMatchObject([{ tag: 1, status: UR }]);
      expect(world.linkB.take()).toEqual([]);
      expect([world.proxy.slotState(0), world.proxy.functionPlace(0)]).toEqual(['ready', 'left']);
    },
  );

  // An answer to a request of before could pass for one to a later request with its tag.
  test('does not come back under its generation, but under the next', () => {
    const { world } = heldWorld();
    world.proxy.plug(NOW, 0);
    world.proxy.unplug(NOW, 0, false);
    world.proxy.plug(NOW, 0);
    expect(world.root.links.filter(({ active }) => active)).toHaveLength(1);
    world.ready([21, 12, 13]);
    expect(world.proxy.functionPlace(0)).toBe('held');
    world.proxy.plug(NOW, 0);
    expect(world.root.links.at(-1)).toEqual({ virtualSlot: 0, active: true, surprise: false });
  });

  test('is told once: neither its row nor its session say it again', () => {
    const { world } = heldWorld();
    world.proxy.plug(NOW, 0);
    world.proxy.plug(NOW, 1);
    world.proxy.unplug(NOW, 0, false);
    world.proxy.unplug(NOW, 1, false);
    const count = world.root.links.length;
    world.proxy.unplug(NOW, 0, true);
    const rows = world.proxy.rows.filter(({ virtualSlot }) => virtualSlot !== 0);
    expect(world.proxy.setTable(NOW, rows)).toEqual([]);
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    expect(world.root.links).toHaveLength(count);
  });

  test('by its row going while it is in is a surprise', () => {
    const { world } = heldWorld();
    world.proxy.plug(NOW, 0);
    expect(world.proxy.setTable(NOW, [])).toEqual([]);
    expect(world.root.links.at(-1)).toEqual({ virtualSlot: 0, active: false, surprise: true });
    expect(world.proxy.functionPlace(0)).toBeUndefined();
  });
});

test('without the option functions are in while their rows are ready', () => {
  const world = new HostProxyWorld();
  world.ready();
  expect(world.root.links.map(({ active }) => active)).toEqual([true, true, true]);
  expect(world.proxy.functionPlace(0)).toBe('in');
});
