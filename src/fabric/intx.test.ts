/** INTA from a function to its host, through both proxies joined. */
import { beforeEach, describe, expect, it } from 'vitest';
import { Endpoint } from '#pcie/endpoint';
import { Tlp, TlpKind } from '#pcie/tlp';
import { DirectLink } from '#testkit/direct-link';
import { FakeDevice } from '#testkit/fake-device';
import { FakeRoot } from '#testkit/fake-root';
import { configRequest, hostRow, littleEndian, NOW } from '#testkit/host-proxy-world';
import { BoxProxy } from './box-proxy.ts';
import { HostProxy } from './host-proxy.ts';

const BDF = 0x0300;
const COMMAND = 4;
const INTERRUPT_LINE = 0x3c;

/** A function that has INTA, or says it has none. */
class PinDevice extends FakeDevice {
  readonly endpoint: Endpoint;

  constructor(intx: boolean) {
    super();
    this.endpoint = new Endpoint({
      identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 1, classCode: 0xff0000 },
      serial: 1n,
      bars: [],
      intx,
    });
  }

  override plug(port: typeof this.port): void {
    super.plug(port);
    this.endpoint.plug(port);
  }

  override receive(now: typeof NOW, tlp: Tlp): void {
    this.endpoint.receive(now, tlp);
  }

  override reset(): void {
    super.reset();
    this.endpoint.reset();
  }
}

function join(hasPin = true) {
  const root = new FakeRoot();
  const host = new HostProxy({ hostId: 'h', rootSide: root });
  const device = new PinDevice(hasPin);
  const box = new BoxProxy({ boxId: 'b', devices: new Map([[7, device]]) });
  const link = new DirectLink(host, box, false);
  const bind = (generation: number): void => {
    const boxRow = { slot: 7, valid: true, used: true, host: 'h', path: 'net', generation };
    expect(box.setTable(NOW, [boxRow])).toEqual([]);
    expect(host.setTable(NOW, [hostRow(0, generation)])).toEqual([]);
    link.deliver(NOW);
  };
  bind(5);
  link.up(NOW);
  link.deliver(NOW);
  let tag = 0;
  const write = (register: number, value: number): void => {
    const request = configRequest(TlpKind.CfgWr1, 3, register, 0b0011);
    request.tag = tag++;
    request.payload = littleEndian(value);
    request.payloadBytes = 4;
    host.request(NOW, request);
    link.deliver(NOW);
  };
  const read = (register: number): void => {
    const request = configRequest(TlpKind.CfgRd1, 3, register, 15);
    request.tag = tag++;
    host.request(NOW, request);
    link.deliver(NOW);
  };
  const pend = (pending: boolean): void => {
    device.endpoint.setInterruptLevel(NOW, pending);
    link.deliver(NOW);
  };
  return { root, host, device, box, link, bind, write, read, pend };
}

let world: ReturnType<typeof join>;

beforeEach(() => {
  world = join();
  world.write(COMMAND, 0);
  world.read(INTERRUPT_LINE);
});

const pin = (): boolean | undefined => world.root.pins.get(0);

describe('INTA', () => {
  it('follows the function, and is counted as an interrupt', () => {
    world.pend(true);
    expect(pin()).toBe(true);
    world.pend(false);
    expect(pin()).toBe(false);
    expect(world.root.pinChanges).toBe(2);
    expect(world.host.counters(0).interrupts).toBe(1);
    expect(world.host.counters(0).refusedTotal).toBe(0);
  });

  it('is masked by Interrupt Disable, whatever the function does, and comes back', () => {
    world.pend(true);
    world.write(COMMAND, 1 << 10);
    expect(pin()).toBe(false);
    // As a function would that does not care.
    const message = new Tlp();
    message.kind = TlpKind.Msg;
    message.messageCode = 0x20;
    message.messageRouting = 4;
    message.requesterId = BDF;
    world.device.port.send(NOW, message);
    world.link.deliver(NOW);
    expect(pin()).toBe(false);
    world.write(COMMAND, 0);
    expect(pin()).toBe(true);
  });

  it('is deasserted before the function goes: unplugged, its session lost, its row gone', () => {
    const told: string[] = [];
    const { root } = world;
    root.linkActive = (_now, _slot, active) => {
      told.push(`link ${active}`);
    };
    root.interruptPin = (_now, _slot, asserted) => {
      told.push(`pin ${asserted}`);
    };
    const again = (generation: number): void => {
      world.link.up(NOW);
      world.bind(generation);
      world.link.deliver(NOW);
      world.write(COMMAND, 0);
      world.read(INTERRUPT_LINE);
      told.length = 0;
      world.pend(true);
      expect(told).toEqual(['pin true']);
    };
    world.pend(true);
    told.length = 0;
    world.host.unplug(NOW, 0, false);
    expect(told).toEqual(['pin false', 'link false']);
    world.bind(6);
    again(7);
    world.link.down(NOW);
    expect(told).toEqual(['pin true', 'pin false', 'link false']);
    again(8);
    expect(world.host.setTable(NOW, [])).toEqual([]);
    expect(told).toEqual(['pin true', 'pin false', 'link false']);
  });

  it('is refused of a function in which the host has seen no such pin', () => {
    for (const [hasPin, isRead] of [
      [false, true],
      [true, false],
    ] as const) {
      world = join(hasPin);
      world.write(COMMAND, 0);
      if (isRead) world.read(INTERRUPT_LINE);
      for (const code of [0x20, 0x24]) {
        const message = new Tlp();
        message.kind = TlpKind.Msg;
        message.messageCode = code;
        message.messageRouting = 4;
        message.requesterId = BDF;
        world.device.port.send(NOW, message);
      }
      world.link.deliver(NOW);
      expect(pin()).toBeUndefined();
      expect(world.host.counters(0).refusedTotal).toBe(2);
    }
  });

  it.each([
    ['another pin', { messageCode: 0x21 }],
    ['another routing', { messageRouting: 0 }],
    ['another requester', { requesterId: 0x0400 }],
  ])('is refused with %s', (_name, changes) => {
    const message = new Tlp();
    message.kind = TlpKind.Msg;
    message.messageCode = 0x20;
    message.messageRouting = 4;
    message.requesterId = BDF;
    Object.assign(message, changes);
    world.device.port.send(NOW, message);
    world.link.deliver(NOW);
    expect(pin()).toBeUndefined();
    expect(world.host.counters(0).refusedTotal).toBe(1);
  });
});
