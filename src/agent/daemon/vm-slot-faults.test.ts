/** A slot whose function a VM uses: surprises, and VMs that come and go. */
import { describe, expect, it } from 'vitest';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { placeBars, VmSlotRig } from '#testkit/vm-slot-rig';

const ADD = '0 add dxpu-slot0 rp0 /run/slot0';
const DEL = '0 del dxpu-slot0';
const SECOND = 1e9;
const vmGone = { kind: 'vm-gone', message: 'the VM has ended, or its QMP socket is gone' };

describe('a function that goes without notice', () => {
  it('reads all ones at once, and its device is asked for every 7 s until the guest lets go', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    rig.fabric.unplug(0);
    expect(rig.slot.used).toBeUndefined();
    expect(guest.startRead(0, 0, 4).hex).toBe('ffffffff');
    expect(guest.startRead(REGION_CONFIG, 0, 4).hex).toBe('ffffffff');
    expect(rig.servers[0]?.isOpen).toBe(true);
    rig.answer();
    rig.pass(7 * SECOND);
    rig.refuse('GenericError', 'Device dxpu-slot0 is already in the process of unplug');
    expect(rig.slot.note).toContain('(Device dxpu-slot0 is already in the process of unplug)');
    rig.pass(7 * SECOND);
    expect(rig.asked).toEqual([ADD, DEL, '7 del dxpu-slot0', '14 del dxpu-slot0']);
    rig.slot.removed(rig.now);
    expect([rig.servers[0]?.isOpen, rig.slot.note]).toEqual([false, undefined]);
    rig.pass(60 * SECOND);
    expect(rig.asked).toHaveLength(4);
  });

  it('makes the next one wait until the guest has let go', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    rig.fabric.unplug(0);
    rig.plug();
    expect(rig.asked).toEqual([ADD, DEL]);
    expect([rig.slot.used, rig.slot.problem]).toEqual([undefined, undefined]);
    expect(rig.slot.note).toBe('the guest has yet to let go of the function at rp0');
    // What the guest still does to the old one places nothing of the new one.
    guest.configWrite(0x10, 0xe000_0000);
    expect(rig.slot.used).toBeUndefined();
    rig.answer();
    rig.slot.removed(rig.now);
    expect(rig.asked).toEqual([ADD, DEL, ADD]);
    expect(rig.servers.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    placeBars(rig.connectGuest());
    expect(rig.slot.used?.bars).toHaveLength(2);
  });

  it('is taken back once it was added, where it went meanwhile', () => {
    const rig = new VmSlotRig();
    rig.plug();
    rig.fabric.unplug(0);
    expect(rig.asked).toEqual([ADD]);
    rig.answer();
    expect(rig.asked).toEqual([ADD, DEL]);
  });

  it('ends its survey, and is as if it had never been', () => {
    const rig = new VmSlotRig();
    rig.plug({ readyAtNs: 5 * SECOND });
    rig.fabric.unplug(0);
    rig.pass(10 * SECOND);
    expect([rig.asked, rig.slot.problem, rig.slot.note]).toEqual([[], undefined, undefined]);
  });

  it('has left, as far as who waits for it goes', () => {
    const rig = new VmSlotRig();
    rig.use();
    let hasLeft = false;
    rig.slot.leave(rig.now, () => {
      hasLeft = true;
    });
    rig.fabric.unplug(0);
    expect([hasLeft, rig.slot.used]).toEqual([false, undefined]);
    rig.slot.removed(rig.now);
    expect(hasLeft).toBe(true);
  });
});

describe('a device of an earlier process', () => {
  it('is removed, whether or not there is a function', () => {
    const rig = new VmSlotRig();
    rig.connect(true);
    expect(rig.asked).toEqual([DEL]);
    expect(rig.slot.note).toBe('the guest has yet to let go of the function at rp0');
    rig.answer();
    rig.slot.removed(rig.now);
    expect([rig.asked, rig.slot.note]).toEqual([[DEL], undefined]);
  });

  it('is removed before the function is added', () => {
    const rig = new VmSlotRig();
    rig.isConnected = false;
    rig.plug();
    rig.connect(true);
    expect(rig.asked).toEqual([DEL]);
    rig.answer();
    rig.slot.removed(rig.now);
    expect(rig.asked).toEqual([DEL, ADD]);
    placeBars(rig.connectGuest());
    expect(rig.slot.used).toBeDefined();
  });
});

describe('a VM that goes', () => {
  it('takes the function with it, once its session has ended too', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    rig.disconnect();
    // The monitor alone is lost: the guest goes on.
    expect([rig.slot.used === undefined, rig.slot.problem]).toEqual([false, undefined]);
    guest.disconnect();
    expect([rig.slot.used, rig.slot.problem]).toEqual([undefined, vmGone]);
    expect([rig.servers[0]?.isOpen, rig.slot.note]).toEqual([false, 'the VM is not there']);
    expect(rig.asked).toEqual([ADD]);
  });

  it('takes the function with it, whichever goes first', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    guest.disconnect();
    expect(rig.slot.problem).toBeUndefined();
    rig.disconnect();
    expect([rig.slot.used, rig.slot.problem]).toEqual([undefined, vmGone]);
  });

  it('has let go of what is to leave', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    let left = 0;
    rig.slot.leave(rig.now, () => left++);
    rig.disconnect();
    guest.disconnect();
    expect(left).toBe(1);
    rig.pass(60 * SECOND);
    expect(rig.asked).toEqual([ADD, DEL]);
  });

  it('goes while a function is being added', () => {
    const rig = new VmSlotRig();
    rig.plug();
    // What is pending ends before anybody knows that the connection is lost.
    rig.refuse('gone', 'QMP device_add: QEMU has closed its QMP socket');
    expect(rig.asked).toEqual([ADD]);
    rig.disconnect();
    expect([rig.slot.problem, rig.servers[0]?.isOpen]).toEqual([vmGone, false]);
  });

  it('says nothing of a slot that is empty', () => {
    const rig = new VmSlotRig();
    rig.disconnect();
    expect([rig.slot.problem, rig.slot.note]).toEqual([undefined, undefined]);
  });
});

// A binding stayed attached, with a card in the guest that read as all ones.
describe('a QEMU that gives up its connection and goes on', () => {
  it('has the function taken back, and the reason is told', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    guest.disconnect();
    rig.pass(SECOND / 2);
    expect([rig.slot.problem, rig.asked]).toEqual([undefined, [ADD]]);
    rig.pass(SECOND);
    expect(rig.slot.problem?.kind).toBe('connection-lost');
    expect(rig.asked).toEqual([ADD, '1 del dxpu-slot0']);
    rig.answer();
    rig.slot.removed(rig.now);
    // It is not added again by itself, but with the next link.
    expect(rig.asked).toHaveLength(2);
    rig.fabric.unplug(0);
    rig.plug();
    expect([rig.slot.problem, rig.asked.length]).toEqual([undefined, 3]);
  });

  it('was asked to let it go, or the guest has by itself', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    guest.disconnect();
    rig.slot.removed(rig.now);
    rig.pass(2 * SECOND);
    expect(rig.slot.problem).toBeUndefined();
  });
});

describe('a VM that comes back', () => {
  it('gets the function again', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    rig.isConnected = false;
    guest.disconnect();
    expect(rig.slot.problem).toEqual(vmGone);
    rig.connect(false);
    expect([rig.slot.problem, rig.asked]).toEqual([undefined, [ADD, ADD]]);
    placeBars(rig.connectGuest());
    expect(rig.slot.used).toBeDefined();
  });

  it('keeps the function where it was the monitor alone that had gone', () => {
    const rig = new VmSlotRig();
    rig.use();
    const { used } = rig.slot;
    rig.disconnect();
    rig.connect(true);
    expect([rig.asked, rig.slot.used]).toEqual([[ADD], used]);
  });

  it('is asked again for what it was to give back', () => {
    const rig = new VmSlotRig();
    rig.use();
    rig.disconnect();
    rig.fabric.unplug(0);
    expect(rig.asked).toEqual([ADD]);
    rig.connect(true);
    expect(rig.asked).toEqual([ADD, DEL]);
    // And once more where the answer was lost with the connection.
    rig.refuse('gone');
    rig.disconnect();
    rig.connect(true);
    expect(rig.asked).toEqual([ADD, DEL, DEL]);
    // Or has given back meanwhile.
    rig.connect(false);
    expect(rig.servers[0]?.isOpen).toBe(false);
    expect(rig.slot.note).toBeUndefined();
  });
});

describe('two functions', () => {
  it('have lives of their own', () => {
    const rig = new VmSlotRig(2);
    const [first, second] = rig.slots as [typeof rig.slot, typeof rig.slot];
    const guests = [rig.use(0), rig.use(1)] as const;
    expect(rig.asked).toEqual([ADD, '0 add dxpu-slot1 rp1 /run/slot1']);
    expect([first.used?.bdf, second.used?.bdf]).toEqual([0x0100, 0x0200]);
    expect(second.used?.bars[0]?.address).toBe(0xe100_0000);
    first.interrupt(0);
    second.interrupt(2);
    second.setPin(true);
    expect(guests.map(({ vectors }) => vectors)).toEqual([[0], []]);
    expect(guests.map(({ levels }) => levels)).toEqual([[], [true]]);
    rig.fabric.unplug(0);
    expect(rig.asked[2]).toBe(DEL);
    first.removed(rig.now);
    expect(rig.servers.map(({ isOpen }) => isOpen)).toEqual([false, true]);
    expect([first.used, second.used?.bdf]).toEqual([undefined, 0x0200]);
    expect(guests[1].read(REGION_CONFIG, 0, 4)).toBe('34127856');
  });
});
