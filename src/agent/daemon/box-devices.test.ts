import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { ServedInProcess } from '#testkit/served-in-process';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { MemoryFds } from '#testkit/memory-fds';
import { BoxDevices } from './box-devices.ts';
import type { RemoteSocket } from './remote-device.ts';

const WITHIN_NS = 2e9;

/** A box with an accelerator of its own in slot 0, and a device behind each socket in the next ones. */
function boxOf(sockets: readonly ((clock: VirtualClock) => RemoteSocket)[]) {
  const clock = new VirtualClock();
  const remotes = sockets.map((_make, i) => ({
    slot: i + 1,
    kind: 'vfio-user' as const,
    options: { path: `/run/${i}.sock`, uuid: `00000000-0000-0000-0000-00000000000${i}` },
  }));
  const uuid = '00000000-0000-0000-0000-0000000000ff';
  const changed: number[] = [];
  const box: BoxDevices = new BoxDevices({
    devices: [{ slot: 0, kind: 'accel', options: { uuid } }, ...remotes],
    remoteSocket: (path) => {
      const make = sockets[Number(/\d/.exec(path))];
      return make!(clock);
    },
    clock,
    log: { info() {}, warn() {}, error() {}, debug() {} } as never,
    onWork: () => {},
    onChanged: (_now, slot) => changed.push(slot),
  });
  let isSeen = false;
  box.start();
  const seen = box.allSeen(WITHIN_NS).then(() => {
    isSeen = true;
  });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 20; i++) await Promise.resolve();
  };
  return {
    box,
    seen,
    isSeen: () => isSeen,
    /** The slots whose device has changed. */
    changed,
    /** Whether all are seen when all that is due by `ns` is done. */
    async seenBy(ns: number): Promise<boolean> {
      await settle();
      for (let i = 0; i < 50; i++) {
        for (const device of box.bySlot.values()) device.tick(clock.now());
        clock.runUntil(Math.max(clock.now(), Math.min(ns, clock.now() + 1000)));
      }
      clock.runUntil(nanos(ns));
      await settle();
      return isSeen;
    },
  };
}

const served = (clock: VirtualClock): RemoteSocket =>
  new ServedInProcess(clock, new ExampleDevice());
const nobody = (clock: VirtualClock): RemoteSocket => new ServedInProcess(clock, undefined);
/** As a process that is stopped: it takes the connection, and says nothing. */
const mute = (clock: VirtualClock): RemoteSocket => ({
  fds: new MemoryFds(clock),
  open: () => ({ start() {}, send() {}, close() {}, limitBytes: 0 }),
});

// A box that restarts while a device is there said at first that its GPU node is gone: its binding failed for good.
it('has seen all once each is there or away, and not before (regression)', async () => {
  const rig = boxOf([served, nobody]);
  expect(rig.isSeen()).toBe(false);
  expect(rig.box.nodeOf(1)).toBeUndefined();
  expect(await rig.seenBy(1e6)).toBe(true);
  expect(rig.box.nodeOf(1)).toMatchObject({ model: expect.stringMatching(/:/) });
  expect(rig.box.nodeOf(2)).toBeUndefined();
});

it('waits no longer than it may for one that says nothing', async () => {
  const rig = boxOf([served, mute]);
  expect(await rig.seenBy(WITHIN_NS - 1)).toBe(false);
  expect(await rig.seenBy(WITHIN_NS)).toBe(true);
});

it('waits for nothing where all devices are its own', async () => {
  await boxOf([]).seen;
});

// Each normal end of a box said in its log that the slot of such a device was quarantined.
it('says nothing of a device that it lets go of at its end (regression)', async () => {
  const rig = boxOf([served]);
  await rig.seenBy(1e6);
  expect(rig.changed).toEqual([1]);
  rig.box.stop(nanos(1e6));
  expect(rig.box.bySlot.get(1)?.outage).toMatchObject({ kind: 'absent' });
  expect(rig.changed).toEqual([1]);
});
