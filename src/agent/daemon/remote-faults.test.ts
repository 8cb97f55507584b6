/** Devices that come late, die, say nothing, or say what is not so: their slot tells, and nothing else suffers. */
import { describe, expect, it } from 'vitest';
import { setMemoryRead } from '#pcie/split';
import { CompletionStatus, Tlp } from '#pcie/tlp';
import { RemoteRig } from '#testkit/remote-rig';
import type { Alter } from '#testkit/served-in-process';
import { DMA_TO_GUEST, ExampleDevice, ExampleRegister } from '#testkit/vfio-user-device';
import { encodeDmaRead } from '#vfio-user/dma-access';
import { Command, isReply } from '#vfio-user/message';

const BAR0 = 0xe000_0000;
const NAME = 'the vfio-user device /run/device.sock: ';

function ready(): { rig: RemoteRig; model: ExampleDevice } {
  const model = new ExampleDevice();
  const rig = new RemoteRig(model);
  rig.run();
  use(rig);
  return { rig, model };
}

/** As a host does, so that it has something to lose. */
function use({ host, device }: RemoteRig): void {
  expect(device.outage).toBeUndefined();
  host.configWrite(0x10, BAR0);
  host.configWrite(0x04, 6, 3);
  host.sent.length = 0;
}

function ask({ host }: RemoteRig, offset: number): void {
  const tlp = new Tlp();
  setMemoryRead(tlp, BAR0 + offset, 4, 0x10, 9);
  expect(host.request(tlp)).toEqual([]);
}

const statuses = ({ host }: RemoteRig): number[] =>
  host.sent.splice(0).map(({ tlp }) => tlp.status);

describe('a device that is not there', () => {
  it('is tried again, ever more seldom, and used when it has come', () => {
    const rig = new RemoteRig();
    rig.run();
    expect(rig.device.outage).toEqual({ kind: 'absent', reason: `${NAME}nobody listens there` });
    expect(rig.device.isKnown).toBe(false);
    expect(rig.host.configRead(0)).toBe(0xffff_ffff);
    // 0.1 s, doubled up to 5 s: 0.1, 0.3, 0.7, 1.5, 3.1, 6.3, 11.3, 16.3 and so on.
    rig.run(11_299);
    rig.served.device = new ExampleDevice();
    expect(rig.served.connections).toBe(0);
    rig.run(1);
    expect(rig.served.connections).toBe(1);
    expect(rig.changes).toEqual([`${NAME}nobody listens there`, 'ready']);
    expect(rig.host.configRead(0)).toBe(0xcafe_1234);
  });
});

it('a device that is given up is let go of, and never tried again', () => {
  const { rig } = ready();
  ask(rig, ExampleRegister.HOLD);
  rig.device.giveUp(rig.clock.now(), 'there is no way to it');
  rig.run(60_000);
  expect(statuses(rig)).toEqual([CompletionStatus.UR]);
  expect(rig.device.outage).toEqual({ kind: 'absent', reason: `${NAME}there is no way to it` });
  expect(rig.changes).toEqual(['ready', `${NAME}there is no way to it`]);
  expect(rig.served.connections).toBe(1);
  expect(rig.served.fds.open).toBe(0);
});

describe('a device that dies', () => {
  it('answers whoever waits UR at once, says so, and is back when its process is', () => {
    const { rig } = ready();
    ask(rig, ExampleRegister.HOLD);
    rig.served.kill();
    rig.run();
    expect(statuses(rig)).toEqual([CompletionStatus.UR]);
    const gone = `${NAME}the peer closed the connection`;
    expect(rig.device.outage).toEqual({ kind: 'absent', reason: gone });
    expect(rig.host.memoryRead(BAR0, 4)[0]?.status).toBe(CompletionStatus.UR);
    // Why it went stays the reason, for as long as nobody listens.
    rig.run(60_000);
    expect(rig.changes).toEqual(['ready', gone]);
    rig.served.device = new ExampleDevice();
    rig.run(5000);
    expect(rig.changes).toEqual(['ready', gone, 'ready']);
    use(rig);
    // Nothing of before: BARs, Command and bus number are as after a reset.
    expect(rig.served.connections).toBe(2);
  });

  it('answers those, too, whose answers wait behind writes that cannot leave', () => {
    const { rig } = ready();
    const { host } = rig;
    host.postedCredits = 0;
    host.write32(BAR0 + ExampleRegister.DMA_ADDRESS + 4, 1);
    host.write32(BAR0 + ExampleRegister.DMA_LENGTH, 64);
    host.write32(BAR0 + ExampleRegister.COMMAND, DMA_TO_GUEST);
    ask(rig, ExampleRegister.ID);
    rig.served.kill();
    rig.run();
    expect(statuses(rig)).toEqual([CompletionStatus.UR]);
    host.postedCredits = Infinity;
    host.resume();
    expect(statuses(rig)).toEqual([]);
  });

  it('leaves no descriptor behind, however often', () => {
    const { rig } = ready();
    for (let round = 0; round < 5; round++) {
      rig.served.kill();
      rig.run();
      expect(rig.served.fds.open).toBe(0);
      rig.served.device = new ExampleDevice();
      rig.run(5000);
      // INTx: an eventfd here and one there.
      expect(rig.served.fds.open).toBe(2);
    }
  });

  it('forgets what its user had programmed', () => {
    const { rig } = ready();
    rig.served.kill();
    rig.run();
    rig.served.device = new ExampleDevice();
    rig.run(5000);
    expect(rig.host.configRead(0x10)).toBe(0);
    expect(rig.host.configRead(4) & 6).toBe(0);
    expect(rig.host.memoryRead(BAR0, 4)[0]?.status).toBe(CompletionStatus.UR);
  });
});

describe('a device that says nothing', () => {
  it('to a read: UR after three seconds, and it is given up', () => {
    const { rig } = ready();
    ask(rig, ExampleRegister.HOLD);
    rig.run(2999);
    expect(statuses(rig)).toEqual([]);
    expect(rig.reason).toBeUndefined();
    rig.run(1);
    expect(statuses(rig)).toEqual([CompletionStatus.UR]);
    expect(rig.changes.at(-1)).toBe(`${NAME}a read of BAR 0: no reply to REGION_READ in time`);
  });

  it('to DEVICE_RESET: stays unusable until it answers one', () => {
    const { rig, model } = ready();
    const reset = model.reset.bind(model);
    model.reset = () => {};
    rig.device.reset(rig.clock.now());
    rig.run();
    expect(rig.device.outage?.kind).toBe('resetting');
    rig.run(60_000);
    expect(rig.device.outage).toEqual({
      kind: 'absent',
      reason: `${NAME}it was not reset: no reply to DEVICE_RESET in time`,
    });
    model.reset = reset;
    rig.run(10_000);
    use(rig);
  });

  it('when it is connected to', () => {
    const model = new ExampleDevice();
    const rig = new RemoteRig(model);
    rig.served.alter = () => undefined;
    rig.run(3000);
    expect(rig.reason).toBe(`${NAME}protocol fault: no reply to VERSION in time`);
  });
});

describe('between two users', () => {
  it('a device is reset, and asked for nothing meanwhile; one that nobody touched is not', () => {
    const { rig, model } = ready();
    const resets = (): number => model.events.filter((event) => event === 'reset').length;
    expect(resets()).toBe(1);
    rig.device.reset(rig.clock.now());
    rig.device.reset(rig.clock.now());
    expect(rig.device.outage?.kind).toBe('resetting');
    rig.run();
    expect(resets()).toBe(2);
    expect(rig.device.outage).toBeUndefined();
    rig.device.reset(rig.clock.now());
    rig.run();
    expect(resets()).toBe(2);
    expect(model.config.read32(4) & 7).toBe(0);
  });

  it('it has been told to be still before it is reset', () => {
    const { rig, model } = ready();
    // Message Control of the MSI capability at 40h.
    rig.host.configWrite(0x40, 1 << 16, 4);
    expect(model.config.read32(0x40) & (1 << 16)).not.toBe(0);
    let seen: number[] = [];
    const reset = model.reset.bind(model);
    model.reset = (now, access) => {
      seen = [model.config.read32(4) & 7, model.config.read32(0x40) & (1 << 16)];
      reset(now, access);
    };
    rig.device.reset(rig.clock.now());
    rig.run();
    expect(seen).toEqual([0, 0]);
  });

  it('what the first asked for is answered to nobody', () => {
    const { rig, model } = ready();
    ask(rig, ExampleRegister.HOLD);
    rig.device.reset(rig.clock.now());
    rig.run();
    model.held[0]?.complete(rig.clock.now(), new Uint8Array(4));
    rig.run();
    expect(statuses(rig)).toEqual([]);
    expect(rig.reason).toBeUndefined();
  });
});

/** Replies to `command`, with a change; others as they are. */
function changed(command: number, change: (view: DataView) => void, index = -1): Alter {
  return (message) => {
    const isMeant = isReply(message) && message.command === command;
    // Of a region: its index is at 24.
    if (isMeant && (index < 0 || message.view.getUint32(24, true) === index)) change(message.view);
    return message.bytes;
  };
}
/** Size of a region in its reply, at 32. */
const sized = (index: number, sizeBytes: number): Alter =>
  changed(
    Command.DEVICE_GET_REGION_INFO,
    (view) => view.setBigUint64(32, BigInt(sizeBytes), true),
    index,
  );
/** Bytes of configuration space in the one read of all of it: behind header, offset, region and count. */
const configured = (at: number, byte: number): Alter =>
  changed(Command.REGION_READ, (view) => {
    if (view.byteLength > 1000) view.setUint8(16 + 16 + at, byte);
  });

describe('a device that lies', () => {
  it.each([
    ['a BAR of 3000 bytes', sized(0, 3000), /BAR 0 has 3000 bytes, which is no power of two/],
    ['a BAR of 8 bytes', sized(0, 8), /BAR 0 has 8 bytes/],
    ['a 32-bit BAR of 4 GiB', sized(0, 2 ** 32), /BAR 0 has 4294967296 bytes/],
    ['an upper half that is a BAR', sized(3, 4096), /BAR 2 is of 64 bits, and its upper half/],
    ['a small configuration space', sized(7, 128), /has 128 bytes; a PCI function has 256/],
    ['no configuration space', sized(7, 0), /has 0 bytes/],
    [
      'a vendor of all ones',
      changed(Command.REGION_READ, (view) => {
        if (view.byteLength > 1000) view.setUint16(32, 0xffff, true);
      }),
      /vendor ID ffff/,
    ],
    ['a bridge', configured(0x0e, 1), /its header is of type 1/],
    ['a BAR of a type there is not', configured(0x10, 2), /BAR 0 is of type 1/],
    ['a capability in the header', configured(0x34, 0x10), /a capability at 16, inside the header/],
    ['capabilities in a circle', configured(0x41, 0x40), /goes in a circle/],
    [
      'a reset it does not take',
      changed(Command.DEVICE_GET_INFO, (view) => view.setUint32(20, 2, true)),
      /takes no DEVICE_RESET/,
    ],
    [
      'no answer to the question',
      changed(Command.DEVICE_GET_REGION_INFO, (view) => view.setUint32(24, 99, true)),
      /not about region/,
    ],
    [
      'an answer nobody asked for',
      changed(Command.DEVICE_GET_IRQ_INFO, (view) => view.setUint16(0, 999, true)),
      /nobody waits for/,
    ],
  ] as const)('%s: is not used, and is asked again', (_what, alter, reason) => {
    const rig = new RemoteRig(new ExampleDevice());
    rig.served.alter = alter;
    rig.run(1000);
    expect(rig.reason).toMatch(reason);
    expect(rig.served.connections).toBeGreaterThan(2);
    // One that cannot be at all is told of once.
    expect(rig.changes.length).toBe(1);
    rig.served.alter = ({ bytes }) => bytes;
    rig.run(10_000);
    expect(rig.reason).toBeUndefined();
  });

  it('about the length of an answer while it is used: whoever waits gets UR', () => {
    const { rig } = ready();
    rig.served.alter = changed(Command.REGION_READ, (view) => view.setUint32(28, 8, true));
    expect(rig.host.memoryRead(BAR0, 4)[0]?.status).toBe(CompletionStatus.UR);
    expect(rig.changes.at(-1)).toMatch(/REGION_READ reply that does not answer its request/);
  });

  it('about what it may reach: DMA beyond what is lent ends it', () => {
    const { rig } = ready();
    let id = 0;
    rig.served.alter = (message) =>
      message.command === Command.REGION_READ ? encodeDmaRead(id++, 2 ** 43 - 4, 8) : message.bytes;
    ask0(rig);
    expect(rig.changes.at(-1)).toBe(`${NAME}DMA to 0x80000000000, not lent`);
  });

  it('by coming back as another one', () => {
    const { rig } = ready();
    rig.served.kill();
    rig.run();
    rig.served.device = new ExampleDevice();
    rig.served.alter = sized(0, 8192);
    rig.run(10_000);
    expect(rig.reason).toBe(
      `${NAME}what it has of BARs was BAR 0 of 4096 bytes, 32 bit, BAR 2 of 1048576 bytes, 64 bit, ` +
        'prefetchable, BAR 4 of 4096 bytes, 32 bit and is BAR 0 of 8192 bytes, 32 bit, BAR 2 of ' +
        '1048576 bytes, 64 bit, prefetchable, BAR 4 of 4096 bytes, 32 bit now; restart the box to take it so',
    );
    rig.served.alter = ({ bytes }) => bytes;
    rig.run(10_000);
    use(rig);
  });
});

function ask0(rig: RemoteRig): void {
  const tlp = new Tlp();
  setMemoryRead(tlp, BAR0, 4, 0x10, 9);
  expect(rig.host.request(tlp).map(({ status }) => status)).toEqual([CompletionStatus.UR]);
}
