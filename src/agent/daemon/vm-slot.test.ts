/** A slot whose function a VM uses: how it comes to the guest, and how it is let go of. */
import { describe, expect, it } from 'vitest';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { BAR0, placeBars, VmSlotRig } from '#testkit/vm-slot-rig';

const MIB = 2 ** 20;
const GIB = 2 ** 30;
const EMPTY = { base: MIB, limit: MIB - 1 };
const ADD = '0 add dxpu-slot0 rp0 /run/slot0';

describe('a function that comes', () => {
  it('is surveyed, served, added, and in use once the guest has placed it', () => {
    const rig = new VmSlotRig();
    rig.plug();
    expect(rig.asked).toEqual([ADD]);
    expect(rig.servers).toMatchObject([{ path: '/run/slot0', isOpen: true }]);
    const guest = rig.connectGuest();
    expect(rig.slot.used).toBeUndefined();
    expect(rig.slot.isUnsettled).toBe(true);
    expect(rig.slot.note).toBe('the guest has yet to give the function its addresses');
    placeBars(guest);
    expect(rig.slot.used).toEqual({
      bdf: 0x0100,
      vendorId: 0x1234,
      deviceId: 0x5678,
      bars: [
        { index: 0, address: 0xe000_0000, sizeBytes: 65536 },
        { index: 2, address: 256 * GIB, sizeBytes: MIB },
      ],
    });
    expect([rig.slot.isUnsettled, rig.slot.note, rig.slot.problem]).toEqual([
      false,
      undefined,
      undefined,
    ]);
  });

  it('is not added where its BARs do not fit, with sizes and a way out, until they do', () => {
    const rig = new VmSlotRig();
    const large = { index: 2, sizeBytes: 8 * GIB, is64Bit: true, prefetchable: true };
    rig.plug({ bars: [BAR0, large] });
    expect(rig.slot.problem).toEqual({
      kind: 'no-space',
      message:
        'no space: BAR 2 needs 8 GiB, the prefetchable window of root port rp0 has 4 GiB: ' +
        "give it a larger pref64-reserve on QEMU's command line",
    });
    expect([rig.asked, rig.servers]).toEqual([[], []]);
    const prefetchable = { base: 512 * GIB, limit: 520 * GIB - 1 };
    rig.setRouting({ nonPrefetchable: EMPTY, prefetchable });
    expect(rig.slot.problem?.message).toBe(
      'no space: BAR 0 needs 64 KiB, the non-prefetchable window of root port rp0 has 0 bytes: ' +
        "give it a larger mem-reserve on QEMU's command line",
    );
    const nonPrefetchable = { base: 0xfc00_0000, limit: 0xfc0f_ffff };
    rig.setRouting({ nonPrefetchable });
    expect(rig.slot.problem).toBeUndefined();
    expect(rig.asked).toEqual([ADD]);
  });

  it('waits for the guest to set up the root port', () => {
    const rig = new VmSlotRig();
    const { routing } = rig.port;
    rig.setRouting({ nonPrefetchable: EMPTY, prefetchable: EMPTY });
    rig.plug();
    expect([rig.asked, rig.slot.problem]).toEqual([[], undefined]);
    expect(rig.slot.note).toBe('the guest has yet to set up root port rp0');
    rig.setRouting(routing);
    expect(rig.asked).toEqual([ADD]);
  });

  it('is surveyed again where the bus becomes another meanwhile', () => {
    const rig = new VmSlotRig();
    const { routing } = rig.port;
    rig.setRouting({ secondaryBus: 255, nonPrefetchable: EMPTY, prefetchable: EMPTY });
    rig.plug({ readyAtNs: 1e9 });
    rig.setRouting(routing);
    rig.pass(2e9);
    expect(rig.slot.problem).toBeUndefined();
    expect(rig.asked).toEqual(['1 add dxpu-slot0 rp0 /run/slot0']);
    // And once it is known, another bus is no matter.
    rig.setRouting({ secondaryBus: 7 });
    placeBars(rig.connectGuest());
    expect(rig.slot.used?.bdf).toBe(0x0700);
  });

  it('is surveyed again where it was a problem on another bus', () => {
    const rig = new VmSlotRig();
    rig.setRouting({ secondaryBus: 1 });
    rig.plug({ readyAtNs: 100e9 });
    rig.pass(90e9);
    expect(rig.slot.problem?.kind).toBe('not-ready');
    rig.pass(20e9);
    rig.setRouting({ secondaryBus: 2 });
    rig.pass(1e9);
    expect(rig.slot.problem).toBeUndefined();
    expect(rig.asked).toHaveLength(1);
  });

  it('is a problem where it cannot be served, and nothing is added', () => {
    const rig = new VmSlotRig();
    rig.refusesToServe = true;
    rig.plug();
    expect(rig.slot.problem).toEqual({
      kind: 'not-served',
      message: 'cannot listen at /run/slot0',
    });
    expect(rig.asked).toEqual([]);
  });

  it('is a problem where QEMU does not add it, and is asked for once', () => {
    const rig = new VmSlotRig();
    rig.plug();
    rig.refuse('GenericError', "QMP device_add: Bus 'rp0' not found");
    expect(rig.slot.problem).toEqual({
      kind: 'not-added',
      message: "QMP device_add: Bus 'rp0' not found",
    });
    rig.pass(60e9);
    expect(rig.asked).toEqual([ADD]);
    expect(rig.servers).toMatchObject([{ isOpen: false }]);
    // Another function is another try.
    rig.fabric.unplug(0);
    rig.plug();
    expect(rig.slot.problem).toBeUndefined();
    expect(rig.asked).toHaveLength(2);
  });

  it('says what to do where QEMU may not reach what is served for it', () => {
    const rig = new VmSlotRig();
    rig.plug();
    // As QEMU 11.1.3 of another user has answered.
    const refusal = "QMP device_add: Failed to connect to '/run/slot0': Permission denied";
    rig.refuse('GenericError', refusal);
    expect(rig.slot.problem).toEqual({
      kind: 'not-added',
      message: `${refusal}: run this process as the user of QEMU, and let AppArmor or SELinux pass the socket`,
    });
  });

  it('is taken back where QEMU does not say whether it was added', () => {
    const rig = new VmSlotRig();
    rig.plug();
    rig.refuse('timeout', 'QMP device_add: no answer within 10 s');
    expect(rig.asked).toEqual([ADD, '0 del dxpu-slot0']);
    expect(rig.servers).toMatchObject([{ isOpen: false }]);
    rig.refuse('DeviceNotFound');
    rig.pass(60e9);
    expect(rig.asked).toHaveLength(2);
    expect(rig.slot.problem).toMatchObject({ kind: 'not-added' });
  });

  it('is served on where QEMU is connected to it and says nothing in time, until QEMU has let go', () => {
    // QEMU 11.1.3 does not survive the end of the connection within device_add.
    const rig = new VmSlotRig();
    rig.plug();
    const guest = rig.beginGuest();
    rig.refuse('timeout', 'QMP device_add: no answer within 10 s');
    expect(rig.slot.problem?.kind).toBe('not-added');
    expect([rig.servers[0]?.isOpen, rig.asked.at(-1)]).toEqual([true, '0 del dxpu-slot0']);
    rig.fabric.unplug(0);
    expect(guest.startRead(REGION_CONFIG, 0, 4).hex).toBe('34127856');
    rig.refuse('DeviceNotFound');
    expect(rig.servers[0]?.isOpen).toBe(false);
  });

  it('hides MSI-X, and says so', () => {
    const rig = new VmSlotRig();
    const fn = rig.plug();
    expect(rig.slot.note).toBeUndefined();
    rig.fabric.unplug(0);
    fn.config.addCapability(0x11, 12, 0);
    const other = new VmSlotRig();
    other.fabric.plug(0, fn);
    other.pass(10e6);
    placeBars(other.connectGuest());
    expect(other.slot.note).toContain('its MSI-X is hidden from the guest');
  });
});

describe('a function that is to leave', () => {
  it('is asked for, and has left once the guest has let go', () => {
    const rig = new VmSlotRig();
    const guest = rig.use();
    // Of another one: where the function was used to be known for having been looked at.
    const other = new VmSlotRig();
    other.use();
    const { used } = other.slot;
    const left: string[] = [];
    // As the host's plane does it: out of the slot within the call.
    const leave = (name: string): boolean =>
      rig.slot.leave(rig.now, () => {
        left.push(name);
        rig.fabric.unplug(0, false);
      });
    expect(leave('a')).toBe(true);
    expect(rig.asked).toEqual([ADD, '0 del dxpu-slot0']);
    rig.answer();
    // The guest takes the addresses back on its way out.
    guest.configWrite(0x10, 0);
    expect(leave('b')).toBe(true);
    rig.pass(6e9);
    expect([left, rig.slot.used]).toEqual([[], used]);
    expect(rig.slot.note).toBe('the guest has yet to let go of the function at rp0');
    rig.slot.removed(rig.now);
    expect(left).toEqual(['a', 'b']);
    expect([rig.slot.used, rig.slot.note, rig.servers[0]?.isOpen]).toEqual([
      undefined,
      undefined,
      false,
    ]);
    rig.pass(60e9);
    expect(rig.asked).toHaveLength(2);
  });

  it('has left where QEMU has no such device', () => {
    const rig = new VmSlotRig();
    rig.use();
    const leaving = rig.leave();
    rig.refuse('DeviceNotFound');
    expect(leaving.hasLeft).toBe(true);
    rig.pass(60e9);
    expect(rig.asked).toHaveLength(2);
  });

  it('is nobody to ask for while it is not in QEMU', () => {
    const rig = new VmSlotRig();
    expect(rig.slot.leave(rig.now, () => {})).toBe(false);
  });

  it('is asked for as soon as it was added', () => {
    const rig = new VmSlotRig();
    rig.plug();
    expect(rig.slot.leave(rig.now, () => {})).toBe(true);
    expect(rig.asked).toEqual([ADD]);
    rig.connectGuest();
    expect(rig.asked).toEqual([ADD, '0 del dxpu-slot0']);
  });

  it('stays where the guest refuses, with its reason, and is asked for again', () => {
    const rig = new VmSlotRig();
    rig.use();
    const leaving = rig.leave();
    rig.answer();
    rig.slot.unplugRefused(rig.now, 'it is busy');
    expect(rig.slot.note).toBe(
      'the guest has yet to let go of the function at rp0 (it is busy): if it does not, write 0 to the ' +
        "slot's power in /sys/bus/pci/slots of the guest, or reset the guest",
    );
    expect(rig.slot.used).toBeDefined();
    rig.pass(7e9);
    expect(rig.asked.slice(1)).toEqual(['0 del dxpu-slot0', '7 del dxpu-slot0']);
    expect(leaving.hasLeft).toBe(false);
    rig.slot.removed(rig.now);
    expect(leaving.hasLeft).toBe(true);
  });
});
