/**
 * A row set while the session of its peer has no connection belongs to what comes next: it joins the
 * session if that goes on, and is not contained with it if it ends. What ran in a session is contained
 * at its end in any case (invariant 6c).
 */
import { describe, expect, test } from 'vitest';
import { FakeDevice } from '#testkit/fake-device';
import { FakeLink } from '#testkit/fake-link';
import { HostProxyWorld, hostRow, NOW } from '#testkit/host-proxy-world';
import { LinkWorld } from '#testkit/link-world';
import { BoxProxy } from './box-proxy.ts';
import { SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';

const { READY, GONE } = SlotState;

function row(slot: number, generation: number): BoxRow {
  return { slot, valid: true, used: true, host: 'h', path: 'net', generation };
}

/** Slots 0 and 1 under generation 11 ran; the host is lost, and slot 0 is raised to 12. */
function raisedBox() {
  const devices = new Map([0, 1].map((slot) => [slot, new FakeDevice()]));
  const box = new BoxProxy({ boxId: 'b', devices });
  box.setTable(NOW, [row(0, 11), row(1, 11)]);
  const link = new FakeLink('host', 'h');
  box.linkUp(NOW, link);
  link.takeStates();
  link.attached = false;
  expect(box.setTable(NOW, [row(0, 12), row(1, 11)])).toEqual([]);
  return { box, link };
}

describe('a box: a generation raised within the resume window was contained with the old session', () => {
  test('the session ends: what ran is contained, what did not is ready for the next', () => {
    const { box, link } = raisedBox();
    expect(link.takeStates()).toEqual([{ slot: 0, generation: 11, state: GONE }]);
    link.up = false;
    box.linkDown(NOW, link, 'the host has begun another session');
    expect(box.slotState(0)).toBe('ready');
    expect(box.slotState(1)).toBe('contained');
    const next = new FakeLink('host', 'h');
    box.linkUp(NOW, next);
    expect(next.takeStates()).toEqual([
      { slot: 0, generation: 12, state: READY },
      { slot: 1, generation: 11, state: GONE },
    ]);
    // There it runs, and ends as anything else.
    box.linkDown(NOW, next, 'cut');
    expect(box.slotState(0)).toBe('contained');
  });

  test('the session goes on: it joins it, and is contained when it ends', () => {
    const { box, link } = raisedBox();
    link.takeStates();
    // Credits alone do not make it one that goes on.
    box.linkResume(NOW, link);
    expect(link.takeStates()).toEqual([]);
    link.attached = true;
    box.linkResume(NOW, link);
    expect(link.takeStates()).toEqual([{ slot: 0, generation: 12, state: READY }]);
    box.linkResume(NOW, link);
    expect(link.takeStates()).toEqual([]);
    box.linkDown(NOW, link, 'cut');
    expect(box.slotState(0)).toBe('contained');
  });

  test('raised twice, or taken back, within the window', () => {
    const { box, link } = raisedBox();
    link.takeStates();
    expect(box.setTable(NOW, [row(0, 13)])).toEqual([]);
    link.attached = true;
    box.linkResume(NOW, link);
    expect(link.takeStates()).toEqual([
      { slot: 0, generation: 12, state: GONE },
      { slot: 1, generation: 11, state: GONE },
      { slot: 0, generation: 13, state: READY },
    ]);
  });
});

describe('a host: the same for a row the box was ready for before', () => {
  function raisedHost(): HostProxyWorld {
    const world = new HostProxyWorld();
    world.ready([11, 12, 13]);
    // The box has its row already.
    world.proxy.linkSlotState(NOW, world.linkB, 7, 11, GONE);
    world.proxy.linkSlotState(NOW, world.linkB, 7, 21, READY);
    world.linkB.attached = false;
    const rows = [hostRow(0, 21), hostRow(1, 12), hostRow(2, 13)];
    expect(world.proxy.setTable(NOW, rows)).toEqual([]);
    expect(world.proxy.slotState(0)).toBe('waiting');
    return world;
  }

  test('the session ends: the row waits for the next', () => {
    const world = raisedHost();
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    expect([0, 1].map((slot) => world.proxy.slotState(slot))).toEqual(['waiting', 'contained']);
    const next = new FakeLink('box', 'b');
    world.proxy.linkUp(NOW, next);
    world.proxy.linkSlotState(NOW, next, 7, 21, READY);
    expect(world.proxy.slotState(0)).toBe('ready');
  });

  test('the session goes on: it comes up in it, and is contained when it ends', () => {
    const world = raisedHost();
    world.linkB.attached = true;
    world.proxy.linkResume(NOW, world.linkB);
    expect(world.proxy.slotState(0)).toBe('ready');
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    expect(world.proxy.slotState(0)).toBe('contained');
  });
});

test('a session tells its user when it has lost its connection and when it has another', () => {
  const world = new LinkWorld().up();
  const { hostUser, boxUser } = world;
  for (const user of [hostUser, boxUser]) expect(user.link?.attached).toBe(true);
  world.paths[0]?.cut('reset');
  for (const user of [hostUser, boxUser]) expect(user.link?.attached).toBe(false);
  expect([hostUser.resumes, boxUser.resumes]).toEqual([0, 0]);
  world.paths[0]?.heal();
  world.run(100e6);
  for (const user of [hostUser, boxUser]) expect(user.link?.attached).toBe(true);
  expect([hostUser.resumes, boxUser.resumes]).toEqual([1, 1]);
});
