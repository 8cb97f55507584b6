/** DEVICE_SET_IRQS, black box: bytes by hand, real eventfds. */
import { openSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ExampleDevice, type ExampleDeviceOptions } from '#testkit/vfio-user-device';
import { hex, openFds, SessionRig, until } from '#testkit/vfio-user-rig';
import type { EventFd } from './fd-operations.ts';
import { IRQ_MSI, IRQ_MSIX, IRQ_REQ } from './irq-info.ts';
import type { Message } from './message.ts';
import { Errno } from './refusal.ts';
import { createMemoryFile, systemFds } from './system-fds.ts';

const NONE = 1;
const BOOL = 2;
const EVENTFD = 4;
const MASK = 8;
const UNMASK = 16;
const TRIGGER = 32;

let device: ExampleDevice;
let rig: SessionRig;
let before: number;
const ours: EventFd[] = [];

beforeEach(() => {
  before = openFds();
  start();
});

afterEach(() => {
  rig.end();
  for (const eventFd of ours.splice(0)) eventFd.close();
  expect(openFds()).toBe(before);
});

function start(options: ExampleDeviceOptions = {}): void {
  device = new ExampleDevice(options);
  rig = new SessionRig(device).hello();
}

/** A SET_IRQS request, `argsz` as long as the payload. */
function set(
  flags: number,
  index: number,
  first: number,
  count: number,
  data: readonly number[] = [],
): Uint8Array {
  const bytes = Buffer.alloc(36 + data.length);
  bytes.set(hex('0500 0800'));
  [bytes.length, 0, 0, 20 + data.length, flags, index, first, count].forEach((value, at) =>
    bytes.writeUInt32LE(value >>> 0, 4 + 4 * at),
  );
  bytes.set(data, 36);
  return bytes;
}

/** An eventfd: a descriptor for the session, and a way to see how often it has been signalled. */
function eventFd(): { fd: number; count: () => number; signal: () => void } {
  const own = systemFds.createEventFd();
  ours.push(own);
  const fd = systemFds.duplicate(own.fd);
  const bytes = new Uint8Array(8);
  return {
    fd,
    count: () => (systemFds.read(own.fd, -1, bytes, 0, 8) ? (bytes[0] as number) : 0),
    signal: () => own.signal(),
  };
}

function expectError(reply: Message, errno = Errno.EINVAL as number): void {
  expect(reply).toMatchObject({ flags: 0x21, errno });
}

test('golden: MSI vector 1 goes to an eventfd, and no more after it is let go of', () => {
  const one = eventFd();
  const request = hex(`
    0500 0800 24000000 00000000 00000000
    14000000                              # argsz 20
    24000000                              # DATA_EVENTFD, ACTION_TRIGGER
    01000000 01000000 01000000            # MSI, from 1 on, one
  `);
  expect(Buffer.from(set(EVENTFD | TRIGGER, 1, 1, 1))).toEqual(Buffer.from(request));
  expect(Buffer.from(rig.ask(request, [one.fd]).bytes)).toEqual(
    Buffer.from(hex('0500 0800 10000000 01000000 00000000')),
  );
  device.client!.trigger(IRQ_MSI, 1);
  device.client!.trigger(IRQ_MSI, 0);
  expect(one.count()).toBe(1);
  // No descriptors: that interrupt is let go of.
  expect(rig.ask(set(EVENTFD | TRIGGER, 1, 1, 1)).flags).toBe(1);
  device.client!.trigger(IRQ_MSI, 1);
  expect(one.count()).toBe(0);
});

test('all of a type are let go of at once', () => {
  const fds = [eventFd(), eventFd(), eventFd()];
  rig.ask(
    set(EVENTFD | TRIGGER, 1, 0, 3),
    fds.map(({ fd }) => fd),
  );
  device.client!.trigger(IRQ_MSI, 2);
  expect(fds.map(({ count }) => count())).toEqual([0, 0, 1]);
  rig.ask(set(NONE | TRIGGER, 1, 0, 0));
  for (let vector = 0; vector < 3; vector++) device.client!.trigger(IRQ_MSI, vector);
  expect(fds.map(({ count }) => count())).toEqual([0, 0, 0]);
});

test('a client may trigger interrupts itself, all of a range or some', () => {
  const fds = [eventFd(), eventFd(), eventFd(), eventFd()];
  rig.ask(
    set(EVENTFD | TRIGGER, 1, 0, 4),
    fds.map(({ fd }) => fd),
  );
  rig.ask(set(NONE | TRIGGER, 1, 1, 2));
  expect(fds.map(({ count }) => count())).toEqual([0, 1, 1, 0]);
  rig.ask(set(BOOL | TRIGGER, 1, 1, 3, [1, 0, 1]));
  expect(fds.map(({ count }) => count())).toEqual([0, 1, 0, 1]);
});

test('MSI-X as MSI, where it is exposed; hidden, it has no interrupts', () => {
  const hidden = eventFd();
  rig.end();
  start({ msix: 'hide' });
  expectError(rig.ask(set(EVENTFD | TRIGGER, IRQ_MSIX, 0, 1), [hidden.fd]));
  rig.end();
  start({ msix: 'expose' });
  const shown = eventFd();
  expect(rig.ask(set(EVENTFD | TRIGGER, IRQ_MSIX, 3, 1), [shown.fd]).flags).toBe(1);
  device.client!.trigger(IRQ_MSIX, 3);
  expect(shown.count()).toBe(1);
});

test('a request to give the device back', () => {
  const request = eventFd();
  rig.ask(set(EVENTFD | TRIGGER, IRQ_REQ, 0, 1), [request.fd]);
  device.client!.trigger(IRQ_REQ, 0);
  expect(request.count()).toBe(1);
});

describe('INTx', () => {
  test('masks itself, and fires again at unmask while asserted', () => {
    const line = eventFd();
    rig.ask(set(EVENTFD | TRIGGER, 0, 0, 1), [line.fd]);
    device.client!.setIntx(true);
    device.client!.setIntx(true);
    expect(line.count()).toBe(1);
    rig.ask(set(NONE | UNMASK, 0, 0, 1));
    expect(line.count()).toBe(1);
    device.client!.setIntx(false);
    rig.ask(set(NONE | UNMASK, 0, 0, 1));
    expect(line.count()).toBe(0);
  });

  test('masked it waits, and comes at unmask', () => {
    const line = eventFd();
    rig.ask(set(EVENTFD | TRIGGER, 0, 0, 1), [line.fd]);
    rig.ask(set(NONE | MASK, 0, 0, 1));
    device.client!.setIntx(true);
    expect(line.count()).toBe(0);
    // A boolean that is false does nothing.
    rig.ask(set(BOOL | UNMASK, 0, 0, 1, [0]));
    expect(line.count()).toBe(0);
    rig.ask(set(BOOL | UNMASK, 0, 0, 1, [1]));
    expect(line.count()).toBe(1);
  });

  test('asserted before it is enabled, it fires then', () => {
    const line = eventFd();
    device.client!.setIntx(true);
    rig.ask(set(EVENTFD | TRIGGER, 0, 0, 1), [line.fd]);
    expect(line.count()).toBe(1);
  });

  test('is unmasked by an eventfd of the client, as KVM does it', async () => {
    const line = eventFd();
    const resample = eventFd();
    rig.ask(set(EVENTFD | TRIGGER, 0, 0, 1), [line.fd]);
    rig.ask(set(EVENTFD | UNMASK, 0, 0, 1), [resample.fd]);
    device.client!.setIntx(true);
    expect(line.count()).toBe(1);
    resample.signal();
    let again = 0;
    await until(() => (again += line.count()) === 1, 'INTx again');
    rig.ask(set(NONE | TRIGGER, 0, 0, 0));
  });
});

describe('refused, and every descriptor closed:', () => {
  const wrong: [string, Uint8Array, number][] = [
    ['no action', set(NONE, 1, 0, 1), 0],
    ['two actions', set(NONE | MASK | UNMASK, 0, 0, 1), 0],
    ['no data', set(TRIGGER, 1, 0, 1), 0],
    ['two kinds of data', set(NONE | BOOL | TRIGGER, 1, 0, 1, [1]), 0],
    ['unknown flags', set(NONE | TRIGGER | 64, 1, 0, 1), 0],
    ['another type', set(NONE | TRIGGER, 5, 0, 1), 0],
    ['one more than there are', set(NONE | TRIGGER, 1, 1, 4), 0],
    ['from far away', set(NONE | TRIGGER, 1, 0xffff_ffff, 1), 0],
    ['as many as can be', set(NONE | TRIGGER, 1, 1, 0xffff_ffff), 0],
    ['none, but from 1 on', set(NONE | TRIGGER, 1, 1, 0), 0],
    ['none masked', set(NONE | MASK, 0, 0, 0), 0],
    ['no eventfds', set(EVENTFD | TRIGGER, 1, 0, 0), 0],
    ['a mask of MSI', set(NONE | MASK, 1, 0, 1), 0],
    ['fewer booleans than said', set(BOOL | TRIGGER, 1, 0, 3, [1, 1]), 0],
    ['more booleans than said', set(BOOL | TRIGGER, 1, 0, 1, [1, 1]), 0],
    ['data that should not be', set(NONE | TRIGGER, 1, 0, 1, [1]), 0],
    ['fewer eventfds than said', set(EVENTFD | TRIGGER, 1, 0, 3), 2],
    ['more eventfds than said', set(EVENTFD | TRIGGER, 1, 0, 1), 2],
    ['eventfds for a mask of MSI', set(EVENTFD | UNMASK, 1, 0, 1), 1],
    ['eventfds without need', set(NONE | TRIGGER, 1, 0, 1), 1],
    ['half a message', set(NONE | TRIGGER, 1, 0, 1).subarray(0, 32), 0],
  ];
  test.each(wrong)('%s', (_name, bytes, fds) => {
    const given = Array.from({ length: fds }, () => eventFd().fd);
    expectError(rig.ask(bytes, given));
    expect(openFds()).toBe(before + ours.length);
  });

  test('a small argsz', () => {
    const bytes = set(NONE | TRIGGER, 1, 0, 1);
    bytes[16] = 19;
    expectError(rig.ask(bytes));
  });

  test('descriptors that are not eventfds, the good ones with them', () => {
    const good = eventFd();
    for (const bad of [createMemoryFile('m', 8, false), openSync('/dev/null', 'w')]) {
      expectError(rig.ask(set(EVENTFD | TRIGGER, 1, 0, 2), [systemFds.duplicate(good.fd), bad]));
    }
    systemFds.close(good.fd);
    device.client!.trigger(IRQ_MSI, 0);
  });
});
