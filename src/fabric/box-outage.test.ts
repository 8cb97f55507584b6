/** Devices that are away for a while, or take their time to reset (`Device.outage`). */
import { expect, test } from 'vitest';
import type { Outage } from '#pcie/device';
import { setMemoryRead } from '#pcie/split';
import { CompletionStatus, Tlp } from '#pcie/tlp';
import { arrivedTlp } from '#testkit/arrived-tlp';
import { FakeDevice } from '#testkit/fake-device';
import { encoded, FakeLink } from '#testkit/fake-link';
import { NOW } from '#testkit/host-proxy-world';
import { BoxProxy, type BoxProxyEvent } from './box-proxy.ts';
import { SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';

const ABSENT: Outage = { kind: 'absent', reason: 'it is away' };
const RESETTING: Outage = { kind: 'resetting', reason: 'it is being reset' };

class OutagingDevice extends FakeDevice {
  outage: Outage | undefined;
  /** A reset outlasts its call. */
  slow = false;

  override reset(): void {
    super.reset();
    if (this.slow && this.outage === undefined) this.outage = RESETTING;
  }
}

const row = (slot: number, generation: number): BoxRow => ({
  slot,
  valid: true,
  used: true,
  host: 'h',
  path: 'net',
  generation,
});

function rig(outage?: Outage) {
  const device = new OutagingDevice();
  device.outage = outage;
  const other = new FakeDevice();
  const events: BoxProxyEvent[] = [];
  const box = new BoxProxy({
    boxId: 'b',
    devices: new Map<number, FakeDevice>([
      [0, device],
      [1, other],
    ]),
    onEvent: (_now, event) => events.push(event),
  });
  const link = new FakeLink('host', 'h');
  const change = (to: Outage | undefined): void => {
    device.outage = to;
    box.deviceChanged(NOW, 0);
  };
  const read = (slot: number, generation: number): void => {
    const tlp = new Tlp();
    setMemoryRead(tlp, 0x4000_0000, 4, 0x0008, 1);
    box.linkTlp(NOW, link, arrivedTlp(slot, generation, encoded(tlp)));
  };
  return { box, device, other, events, link, change, read };
}

test('a slot whose device was never there is quarantined, and clean when it has come', () => {
  const { box, change, events } = rig(ABSENT);
  box.scrubUnbound(NOW);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['quarantined', false]);
  expect([box.slotState(1), box.isClean(1)]).toEqual(['unused', true]);
  change(ABSENT);
  expect(events).toEqual([{ kind: 'quarantined', slot: 0, reason: 'it is away' }]);
  change(undefined);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['unused', true]);
  expect(events.at(-1)).toEqual({ kind: 'device-ready', slot: 0 });
});

test('a row waits for a device that has never been there, and its host hears of neither', () => {
  const { box, link, change } = rig(ABSENT);
  box.setTable(NOW, [row(0, 11)]);
  box.linkUp(NOW, link);
  expect(link.takeStates()).toEqual([]);
  expect(box.slotState(0)).toBe('quarantined');
  change(undefined);
  expect(box.slotState(0)).toBe('ready');
  expect(link.takeStates()).toEqual([{ slot: 0, generation: 11, state: SlotState.READY }]);
});

test('a device that is lost takes its binding with it, and no other', () => {
  const { box, link, change, events, read, other } = rig();
  box.linkUp(NOW, link);
  box.setTable(NOW, [row(0, 11), row(1, 12)]);
  link.takeStates();
  events.length = 0;
  change(ABSENT);
  expect(box.slotState(0)).toBe('quarantined');
  expect(link.takeStates()).toEqual([{ slot: 0, generation: 11, state: SlotState.GONE }]);
  expect(events).toEqual([
    { kind: 'slot-gone', slot: 0, generation: 11, reason: 'it is away' },
    { kind: 'quarantined', slot: 0, reason: 'it is away' },
  ]);
  read(0, 11);
  expect(link.take()).toMatchObject([{ slot: 0, tlp: { status: CompletionStatus.UR } }]);
  expect(box.slotState(1)).toBe('ready');
  other.take();
  read(1, 12);
  expect(other.take()).toHaveLength(1);

  // Back, it is not what the binding was about: a new generation is.
  change(undefined);
  expect(box.slotState(0)).toBe('contained');
  expect(link.takeStates()).toEqual([]);
  expect(box.setTable(NOW, [row(1, 12)])).toEqual([]);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['unused', true]);
  expect(box.setTable(NOW, [row(0, 13), row(1, 12)])).toEqual([]);
  expect(box.slotState(0)).toBe('ready');
});

test('a slot is unbound while its device is away, and used again when that is back', () => {
  const { box, link, change } = rig();
  box.linkUp(NOW, link);
  box.setTable(NOW, [row(0, 11)]);
  change(ABSENT);
  expect(box.setTable(NOW, [])).toEqual([]);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['quarantined', false]);
  change(undefined);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['unused', true]);
});

test('a slot is clean once a slow reset is done, and not before', () => {
  const { box, device, change } = rig();
  box.setTable(NOW, [row(0, 11)]);
  device.slow = true;
  expect(box.setTable(NOW, [])).toEqual([]);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['unused', false]);
  change(undefined);
  expect([box.slotState(0), box.isClean(0)]).toEqual(['unused', true]);
});

test('the next binding waits for a slow reset; nothing reaches the device meanwhile', () => {
  const { box, device, link, change, read } = rig();
  box.linkUp(NOW, link);
  box.setTable(NOW, [row(0, 11)]);
  device.slow = true;
  link.takeStates();
  expect(box.setTable(NOW, [row(0, 12)])).toEqual([]);
  expect(link.takeStates()).toEqual([{ slot: 0, generation: 11, state: SlotState.GONE }]);
  device.take();
  read(0, 12);
  expect(link.take()).toMatchObject([{ tlp: { status: CompletionStatus.UR } }]);
  expect(device.take()).toEqual([]);
  change(undefined);
  expect(link.takeStates()).toEqual([{ slot: 0, generation: 12, state: SlotState.READY }]);

  // One that does not answer it: the slot is quarantined, with its row, until it does.
  expect(box.setTable(NOW, [row(0, 13)])).toEqual([]);
  change(ABSENT);
  expect(box.slotState(0)).toBe('quarantined');
  change(undefined);
  expect(box.slotState(0)).toBe('ready');
});
