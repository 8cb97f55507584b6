/** The life of a VM's slots, against a QEMU in virtual time. */
import { describe, expect, it } from 'vitest';
import { lentMemory } from '#testkit/fake-qemu';
import { PREFETCHABLE_BASE, VmSlotsRig } from '#testkit/vm-slots-rig';
import { FAKE_DEVICE_ID, FAKE_VENDOR_ID } from '#testkit/fake-function';

const MIB = 2 ** 20;
const S = 1e9;
const CONFIG = 7;

describe('a function that comes', () => {
  it('is added at its root port, and reported once the guest has placed it', () => {
    const rig = new VmSlotsRig(2);
    rig.qemu.connect();
    rig.pass(0.1 * S);
    rig.plug(1);
    rig.pass(0.1 * S);
    expect(rig.qemu.commands).toEqual(['qom-list', 'device_add dxpu-slot1 rp1']);
    expect(rig.slots.functionAt(1)).toBeUndefined();
    expect(rig.slots.noteAt(1)).toMatch(/yet to give the function its addresses/);

    // The second slot's window: 256 MiB behind that of the first.
    const address = PREFETCHABLE_BASE + 256 * MIB;
    const device = rig.qemu.device(1);
    device.configWrite(0x10, 0xffff_ffff);
    device.configWrite(0x14, 0xffff_ffff);
    expect(rig.slots.functionAt(1), 'addresses that ask for a size').toBeUndefined();
    device.configWrite(0x10, address % 2 ** 32);
    expect(rig.slots.functionAt(1), 'half an address').toBeUndefined();
    device.configWrite(0x14, Math.floor(address / 2 ** 32));
    expect(rig.slots.functionAt(1)).toEqual({
      bdf: 0x0200,
      vendorId: FAKE_VENDOR_ID,
      deviceId: FAKE_DEVICE_ID,
      bars: [{ index: 0, address, sizeBytes: 16 * MIB }],
    });
    expect(rig.slots.noteAt(1)).toBeUndefined();
  });

  it('waits for QEMU, and for the firmware of the guest', () => {
    const rig = new VmSlotsRig();
    rig.blankPort(0);
    rig.plug();
    rig.pass(5 * S);
    expect(rig.slots.noteAt(0)).toMatch(/QEMU is not connected/);
    rig.qemu.connect();
    rig.pass(5 * S);
    expect(rig.qemu.commands).toEqual(['qom-list']);
    expect(rig.slots.noteAt(0)).toMatch(/yet to set up root port rp0/);
    rig.bootPort(0);
    rig.pass(3 * S);
    expect(rig.slots.noteAt(0)).toMatch(/guest starts/);
    expect(rig.qemu.commands).toEqual(['qom-list']);
    // 20 s for its kernel to start, looked at every second.
    rig.pass(18 * S);
    expect(rig.qemu.commands).toEqual(['qom-list', 'device_add dxpu-slot0 rp0']);
    expect(rig.routings).toBe(1);
    expect(rig.slots.problemAt(0)).toBeUndefined();
  });

  // It was attached, and its DMA went to a copy of the memory that the guest does not see.
  it('is not added to a VM whose memory is not shared', () => {
    const rig = new VmSlotsRig();
    const value = [{ id: 'memory', size: 2 ** 29, share: false }];
    rig.qemu.answers.set('query-memdev', { ok: true, value });
    rig.qemu.connect();
    rig.plug();
    rig.pass(S);
    expect(rig.qemu.commands).toEqual(['qom-list']);
    expect(rig.slots.problemAt(0)?.message).toMatch(/memory \(memory\) is not shared: start QEMU/);
    expect(rig.slots.noteAt(0)).toMatch(/not shared/);
  });

  it('finds no root port: what to write on the command line is said', () => {
    const rig = new VmSlotsRig();
    rig.qemu.ports.clear();
    rig.qemu.connect();
    rig.pass(S);
    expect(rig.slots.noteAt(0)).toMatch(
      /no root port rp0: start it with -device pcie-root-port,id=rp0/,
    );
  });
});

describe('a function that goes', () => {
  it('is asked for: done when the guest has let go, and reported until then', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const there = rig.slots.functionAt(0);
    const left: number[] = [];
    const asked = rig.clock.now();
    expect(rig.slots.leave(asked, 0, (now) => left.push((now - asked) / S))).toBe(true);
    rig.pass(3 * S);
    expect(rig.qemu.commands.at(-1)).toBe('device_del dxpu-slot0');
    expect(left).toEqual([]);
    expect(rig.slots.functionAt(0)).toEqual(there);
    expect(rig.slots.noteAt(0)).toMatch(/yet to let go of the function at rp0/);
    rig.pass(4 * S);
    // 1 ms until QEMU has heard of it, and 6 s of the guest.
    expect(left.map((s) => s.toFixed(3))).toEqual(['6.001']);
    expect(rig.slots.functionAt(0)).toBeUndefined();
    expect(rig.qemu.served.size).toBe(0);
    rig.fabric.unplug(0, false);
    rig.pass(60 * S);
    expect(rig.qemu.commands).toHaveLength(3);
  });

  it('and a guest that keeps it: the slot says so, and it is asked again', () => {
    const rig = new VmSlotsRig();
    rig.use();
    rig.qemu.letsGoAfterNs = Infinity;
    const leaving = rig.leave();
    rig.pass(S);
    rig.qemu.event('DEVICE_UNPLUG_GUEST_ERROR', { device: 'dxpu-slot0' });
    expect(rig.slots.noteAt(0)).toMatch(/guest has refused to let the function go/);
    rig.pass(29 * S);
    // At 0, 7, 14, 21 and 28 s.
    expect(rig.qemu.commands.filter((one) => one.startsWith('device_del'))).toHaveLength(5);
    expect(leaving.hasLeft).toBe(false);
    expect(rig.slots.functionAt(0)).toBeDefined();
    rig.qemu.release('dxpu-slot0');
    expect(leaving.hasLeft).toBe(true);
  });
});

describe('a function that is gone without notice', () => {
  // What is under way is answered just before, with all ones: "nothing answers" was an error in the log.
  it('while it is surveyed is no problem of its own', () => {
    const rig = new VmSlotsRig();
    rig.qemu.connect();
    rig.pass(0.1 * S);
    const said = rig.log.length;
    rig.fabric.hold = () => true;
    rig.plug();
    rig.pass(0.1 * S);
    rig.fabric.unplug(0);
    rig.pass(S);
    expect(rig.log.slice(said)).toEqual([]);
    expect(rig.slots.problemAt(0)).toBeUndefined();
  });

  it('stays in QEMU as all ones until the guest lets go; the next one waits, out of its reach', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const old = rig.qemu.device(0);
    expect(old.read(CONFIG, 0, 4)).toBe('34127856');
    rig.fabric.unplug(0);
    expect(old.read(CONFIG, 0, 4)).toBe('ffffffff');
    expect(old.read(0, 16, 8)).toBe('f'.repeat(16));
    expect(rig.slots.functionAt(0)).toBeUndefined();
    expect(rig.qemu.served.size).toBe(1);

    const next = rig.plug();
    rig.pass(S);
    const seen = next.configWrites.length;
    const requests = rig.fabric.requests.length;
    // The guest's driver still has the old one's addresses, and those are in the slot's window.
    expect(old.read(CONFIG, 0, 4)).toBe('ffffffff');
    expect(old.read(0, 0, 4)).toBe('ffffffff');
    old.configWrite(0x04, 0x0006);
    old.write(0, 0, '01020304');
    expect(old.reset()).toBe(0);
    expect(next.configWrites).toHaveLength(seen);
    expect(rig.fabric.requests).toHaveLength(requests);
    expect(rig.slots.noteAt(0)).toMatch(/yet to let go/);
    expect(rig.qemu.commands.slice(-1)).toEqual(['device_del dxpu-slot0']);

    rig.pass(6 * S);
    expect(rig.qemu.commands.slice(-2)).toEqual([
      'device_del dxpu-slot0',
      'device_add dxpu-slot0 rp0',
    ]);
    expect(rig.qemu.device(0)).not.toBe(old);
    rig.place();
    expect(rig.slots.functionAt(0)).toBeDefined();
  });

  it('reaches no memory any more, and interrupts nobody, while QEMU still has the device', () => {
    const rig = new VmSlotsRig(2);
    rig.qemu.memory = [lentMemory(0, new Uint8Array(8192)), lentMemory(2 ** 32)];
    rig.use(0);
    rig.plug(1);
    rig.pass(0.1 * S);
    expect([...rig.memory]).toEqual(['0: 0+8192', '1: 0+8192']);
    const old = rig.qemu.device(0);
    rig.root.interruptPin(rig.clock.now(), 0, true);
    rig.fabric.unplug(0);
    expect([...rig.memory]).toEqual(['1: 0+8192']);
    old.device.memoryAdded?.(rig.clock.now(), lentMemory(2 ** 20, new Uint8Array(4096)));
    rig.root.interruptPin(rig.clock.now(), 0, true);
    rig.root.interrupt(rig.clock.now(), 0, 0xfee0_0000, 0);
    expect([...rig.memory]).toEqual(['1: 0+8192']);
    expect([old.levels, old.vectors]).toEqual([[true, false], []]);
    rig.pass(7 * S);
    expect([...rig.qemu.devices.keys()]).toEqual(['dxpu-slot1']);
  });
});

it('a BAR that the guest puts into the window of another slot is all ones, and takes no writes', () => {
  const rig = new VmSlotsRig(2);
  rig.use(0);
  const other = rig.plug(1);
  rig.pass(0.1 * S);
  rig.place(1);
  const device = rig.qemu.device(0);
  device.place(new Map([[0, PREFETCHABLE_BASE + 256 * MIB]]));
  const requests = rig.fabric.requests.length;
  device.write(0, 0, '01020304');
  expect(device.read(0, 0, 4)).toBe('ffffffff');
  expect(device.read(0, 0, 16)).toBe('f'.repeat(32));
  expect(rig.fabric.requests).toHaveLength(requests);
  expect(other.memory.get(0)?.[0]).toBe(0);
});

describe('QEMU', () => {
  it.each([
    ['its devices first', false],
    ['its monitor first', true],
  ])('that ends, %s, takes all functions with it', (_name, isMonitorFirst) => {
    const rig = new VmSlotsRig();
    rig.use();
    rig.qemu.end(isMonitorFirst);
    expect(rig.slots.problemAt(0)?.kind).toBe('vm-gone');
    expect(rig.slots.functionAt(0)).toBeUndefined();
    expect(rig.qemu.served.size).toBe(0);
    // And one that comes instead gets the function.
    rig.qemu.connect();
    rig.pass(S);
    expect(rig.slots.problemAt(0)).toBeUndefined();
    expect(rig.qemu.commands.slice(-1)).toEqual(['device_add dxpu-slot0 rp0']);
  });

  it('that ends has let go of what was asked for', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const leaving = rig.leave();
    rig.qemu.end();
    expect(leaving.hasLeft).toBe(true);
    rig.qemu.connect();
    rig.pass(S);
    expect(rig.qemu.devices.size).toBe(0);
  });

  it('whose monitor alone is lost keeps its functions', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const there = rig.slots.functionAt(0);
    rig.qemu.disconnect();
    rig.pass(5 * S);
    expect(rig.slots.functionAt(0)).toEqual(there);
    expect(rig.slots.problemAt(0)).toBeUndefined();
    rig.qemu.connect();
    rig.pass(5 * S);
    expect(rig.slots.functionAt(0)).toEqual(there);
    expect(rig.qemu.commands.filter((one) => one.startsWith('device_'))).toHaveLength(1);
  });

  it('that let go while nobody listened has let go', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const leaving = rig.leave();
    rig.pass(S);
    rig.qemu.disconnect();
    rig.qemu.devices.clear();
    rig.qemu.connect();
    rig.pass(S);
    expect(leaving.hasLeft).toBe(true);
  });

  it('that has devices of an earlier host proxy is told to remove them first', () => {
    const earlier = new VmSlotsRig();
    earlier.use();
    const rig = new VmSlotsRig();
    for (const [id, device] of earlier.qemu.devices) rig.qemu.devices.set(id, device);
    rig.plug();
    rig.qemu.connect();
    rig.pass(S);
    expect(rig.qemu.commands).toEqual(['qom-list', 'device_del dxpu-slot0']);
    expect(rig.slots.noteAt(0)).toMatch(/yet to let go/);
    rig.pass(6 * S);
    expect(rig.qemu.commands.slice(2)).toEqual(['device_add dxpu-slot0 rp0']);
  });

  it('that does not say what it has is asked again, and nothing is taken for gone', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const there = rig.slots.functionAt(0);
    rig.qemu.disconnect();
    rig.qemu.answers.set('qom-list', { ok: false, kind: 'timeout', message: 'no answer' });
    rig.qemu.connect();
    rig.pass(S);
    expect(rig.slots.functionAt(0)).toEqual(there);
    expect(rig.slots.noteAt(0)).toMatch(/QEMU is not connected/);
    rig.qemu.answers.clear();
    rig.pass(S);
    expect(rig.slots.functionAt(0)).toEqual(there);
    expect(rig.slots.noteAt(0)).toBeUndefined();
  });

  it('that answers with errors alone is a line of the log and a reason, however often it is asked', () => {
    const rig = new VmSlotsRig();
    rig.qemu.answers.set('qom-list', { ok: false, kind: 'GenericError', message: 'no such path' });
    rig.qemu.connect();
    rig.pass(10 * S);
    expect(rig.qemu.commands.length).toBeGreaterThan(50);
    expect(rig.log.filter((line) => line.includes('no such path'))).toHaveLength(1);
    expect(rig.slots.noteAt(0)).toBe('QEMU is not connected: no such path');
  });

  it('whose guest restarts and numbers buses anew: the rows follow, the function stays in the slot', () => {
    const rig = new VmSlotsRig();
    rig.use();
    const device = rig.qemu.device(0);
    rig.qemu.event('RESET');
    device.reset();
    rig.blankPort(0);
    rig.pass(2 * S);
    expect(rig.slots.functionAt(0)).toBeUndefined();
    rig.bootPort(0, 5);
    rig.pass(2 * S);
    expect(rig.soft.ports[0]?.routing.secondaryBus).toBe(5);
    expect(rig.routings).toBe(3);
    rig.place();
    expect(rig.slots.functionAt(0)?.bdf).toBe(0x0500);
    expect(rig.qemu.commands.filter((one) => one.startsWith('device_'))).toHaveLength(1);
  });

  it('whose guest starts hears of nothing until its hot-plug driver is there', () => {
    const rig = new VmSlotsRig(2);
    rig.use(0);
    rig.qemu.event('RESET');
    rig.fabric.unplug(0);
    rig.plug(1);
    rig.pass(10 * S);
    rig.qemu.event('RESET');
    rig.pass(19.9 * S);
    const after = rig.qemu.commands.indexOf('device_add dxpu-slot0 rp0') + 1;
    expect(rig.qemu.commands.slice(after)).toEqual([]);
    rig.pass(0.2 * S);
    expect(rig.qemu.commands.slice(after).sort()).toEqual([
      'device_add dxpu-slot1 rp1',
      'device_del dxpu-slot0',
    ]);
  });
});

// QEMU 11.1.3 waits in vain for an answer to what it has asked when its connection ends.
it('a proxy that stops answers with all ones, and then closes what QEMU is connected to', () => {
  const rig = new VmSlotsRig();
  rig.use();
  rig.slots.stop();
  rig.pass(0.1 * S);
  expect(rig.qemu.device(0).read(CONFIG, 0, 4)).toBe('ffffffff');
  rig.pass(0.1 * S);
  expect(rig.qemu.served.size).toBe(0);
  expect(rig.qemu.isStopped).toBe(true);
});

// A read behind a picture's worth of writes took more than the 5 s of QEMU, which lost the card for it.
it('QEMU waits long for answers, where it can be told so (regression)', () => {
  const rig = new VmSlotsRig(2);
  rig.use(0);
  expect(rig.qemu.added.get('dxpu-slot0')).toMatchObject({ 'x-msg-timeout': 20_000 });
  rig.qemu.unknown.add('x-msg-timeout');
  rig.use(1);
  expect(Object.keys(rig.qemu.added.get('dxpu-slot1') ?? {})).toEqual([
    'driver',
    'id',
    'bus',
    'socket',
  ]);
});

// QEMU 11.1.3 ended by a fault of its memory when a host proxy was stopped while it took a card in.
it('a proxy that is to stop waits for what QEMU takes in, and no longer than it may (regression)', async () => {
  const rig = new VmSlotsRig(2);
  await rig.slots.allAdded(5 * S);
  rig.qemu.connect();
  rig.pass(0.1 * S);
  const doneAt = async (answerNs: number, slot: number): Promise<number> => {
    rig.qemu.answerNs = answerNs;
    rig.plug(slot);
    // Surveyed first: no time passes in that.
    rig.pass(0.001 * S);
    expect(rig.qemu.commands.at(-1)).toBe(`device_add dxpu-slot${slot} rp${slot}`);
    const began = rig.clock.now();
    const times: number[] = [];
    const done = rig.slots.allAdded(5 * S).then(() => times.push(rig.clock.now() - began));
    for (let i = 0; i < 60 && times.length === 0; i++) {
      rig.pass(0.1 * S);
      for (let turn = 0; turn < 5; turn++) await Promise.resolve();
    }
    await done;
    return times[0] ?? Number.NaN;
  };
  // It looks each 0.1 s.
  const [answered, limit] = [await doneAt(2 * S, 0), await doneAt(20 * S, 1)];
  expect(answered).toBeGreaterThanOrEqual(1.9 * S);
  expect(answered).toBeLessThanOrEqual(2.1 * S);
  expect(limit).toBeGreaterThanOrEqual(4.9 * S);
  expect(limit).toBeLessThanOrEqual(5.1 * S);
});
