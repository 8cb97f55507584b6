/** A box and a host over real sockets, ordered as a manager would, through their planes. */
import { randomInt } from 'node:crypto';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { RealClock } from '#base/clock';
import type { Nanos } from '#base/units';
import { connectTransport, type Listener, listenTransports } from '#fabric/socket-endpoint';
import { AccelDriver } from '#host/accel-driver';
import type { BoxRowOrder, HostRowOrder } from '../core/data-plane.ts';
import { BoxNode } from './box-node.ts';
import { HostNode } from './host-node.ts';
import type { Logger } from './logger.ts';

const MIB = 2 ** 20;
const UUID = '00000000-0000-4000-8000-00000000000';
const clock = new RealClock();
const quiet = (): void => {};
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** Looks again until it holds; the deadline is for a machine that is busy. */
const until = (condition: () => void): Promise<void> =>
  vi.waitFor(condition, { timeout: 10_000, interval: 5 });

const open: (() => void)[] = [];
afterEach(() => {
  for (const close of open.splice(0).reverse()) close();
});

class Rig {
  readonly box: BoxNode;
  readonly host: HostNode;
  changes = 0;
  readonly listeners: Listener[] = [];

  /** What the box has accepted. */
  readonly #accepted: { close(): void }[] = [];

  private constructor() {
    this.box = new BoxNode({
      id: 'b1',
      devices: [0, 1].map((slot) => ({
        slot,
        kind: 'accel',
        options: { uuid: `${UUID}${slot}`, memoryBytes: MIB },
        nvlinkGroup: 'nv0',
      })),
      clock,
      log,
      isManaged: true,
    });
    this.host = new HostNode({
      id: 'h1',
      softHost: {
        ports: [0, 1].map((slot) => ({
          secondaryBus: slot + 1,
          nonPrefetchableBase: 0xe000_0000 + slot * MIB,
          nonPrefetchableBytes: MIB,
          prefetchableBase: 2 ** 38 + slot * MIB,
          // The second has no window a device memory would fit in.
          prefetchableBytes: slot === 0 ? MIB : 0,
        })),
        memory: [{ base: 0, sizeBytes: 16 * MIB }],
      },
      clock,
      log,
      isManaged: true,
      connect: ({ host, port, box }) => {
        const peer = { kind: 'box', id: box } as const;
        return connectTransport({
          host,
          port,
          clock,
          protection: { kind: 'insecure-plain-tcp', peer },
        });
      },
      newSessionId: () => randomInt(1, 2 ** 47),
      onChanged: () => {
        this.changes++;
      },
    });
  }

  /** With so many addresses of the box. */
  static async start(addresses = 1): Promise<Rig> {
    const rig = new Rig();
    for (let address = 0; address < addresses; address++) {
      const listener = await listenTransports({
        host: '127.0.0.1',
        port: 0,
        clock,
        protection: { kind: 'insecure-plain-tcp', peer: { kind: 'host', id: 'h1' } },
        onTransport: (transport) => {
          rig.#accepted.push(transport);
          rig.box.accept(transport);
        },
        onRefused: (error) => {
          throw error;
        },
      });
      rig.listeners.push(listener);
      open.push(() => listener.close());
    }
    open.push(() => {
      rig.host.stop('the test is over');
      rig.box.stop('the test is over');
    });
    return rig;
  }

  peers(...addresses: number[]): void {
    const endpoints = addresses.map((address) => ({
      path: `net${address}`,
      address: `127.0.0.1:${this.listeners[address]!.port}`,
    }));
    this.host.plane.setPeers(clock.now(), endpoints.length === 0 ? [] : [{ box: 'b1', endpoints }]);
    this.host.settle();
  }

  boxRows(...rows: Partial<BoxRowOrder>[]): string {
    const refused = this.box.plane.setRows(
      clock.now(),
      rows.map((row) => ({ slot: 0, host: 'h1', generation: 1, path: 'net0', ...row })),
    );
    this.box.settle();
    return refused;
  }

  hostRows(...rows: Partial<HostRowOrder>[]): string {
    const refused = this.host.plane.setRows(
      clock.now(),
      rows.map((row) => ({
        slot: 0,
        box: 'b1',
        boxSlot: 0,
        generation: 1,
        path: 'net0',
        ...row,
      })),
    );
    this.host.settle();
    return refused;
  }

  do(move: (now: Nanos) => void): void {
    move(clock.now());
    this.host.settle();
  }

  /** As a cable that is pulled. */
  dropConnections(): void {
    for (const transport of this.#accepted.splice(0)) transport.close();
  }

  get hostSlot() {
    return this.host.plane.slots()[0]!;
  }

  get boxSlot() {
    return this.box.plane.slots()[0]!;
  }

  /** Slot 0 of both bound under generation 1, the function in. */
  async attach(): Promise<void> {
    this.peers(0);
    expect(this.boxRows({})).toBe('');
    expect(this.hostRows({})).toBe('');
    this.do((now) => this.host.plane.plug(now, 0));
    await until(() => expect(this.hostSlot.function?.memoryEnable).toBe(true));
  }
}

describe('a box', () => {
  it('that is fresh has clean slots, and tells what is in them', async () => {
    const { box } = await Rig.start();
    expect(box.plane.slots()).toEqual(
      [0, 1].map((slot) => ({
        slot,
        node: {
          uuid: `${UUID}${slot}`,
          model: 'dxpu-accel',
          memoryBytes: MIB,
          nvlinkGroup: 'nv0',
          // docs/accelerator-datasheet.md: BAR0 has 16 KiB of registers, BAR2 the memory.
          bars: [
            { index: 0, sizeBytes: 16384, prefetchable: false, is64: false },
            { index: 2, sizeBytes: MIB, prefetchable: true, is64: true },
          ],
        },
        state: 'unused',
        clean: true,
        row: undefined,
        reason: '',
      })),
    );
  });

  it('is not clean while there is a row, and clean again when it went', async () => {
    const rig = await Rig.start();
    expect(rig.boxRows({})).toBe('');
    expect(rig.boxSlot).toMatchObject({
      state: 'ready',
      clean: false,
      row: { host: 'h1', generation: 1 },
    });
    expect(rig.boxRows()).toBe('');
    expect(rig.boxSlot).toMatchObject({ state: 'unused', clean: true, row: undefined });
  });

  it('refuses rows it cannot have, all of them, and says why', async () => {
    const rig = await Rig.start();
    expect(rig.boxRows({}, { slot: 7 })).toBe('there is no slot 7 here');
    expect(rig.boxSlot.row).toBeUndefined();
    expect(rig.boxRows({ generation: 5 })).toBe('');
    expect(rig.boxRows({ generation: 5, host: 'h2' })).toBe(
      'slot 0: generation 5 was used before; a new binding needs one above 5',
    );
    expect(rig.boxSlot.row).toEqual({ host: 'h1', generation: 5 });
  });
});

describe('a host', () => {
  it('shows bus and windows of its ports as they are programmed, an empty one as empty', async () => {
    const { host } = await Rig.start();
    const [first, second] = host.plane.slots();
    expect(first).toEqual({
      slot: 0,
      secondaryBus: 1,
      nonPrefetchable: { base: 0xe000_0000, limit: 0xe00f_ffff },
      prefetchable: { base: 2 ** 38, limit: 2 ** 38 + MIB - 1 },
      row: undefined,
      state: 'unused',
      function: undefined,
      inUse: false,
      problem: undefined,
      reason: '',
    });
    expect(second!.prefetchable.base).toBeGreaterThan(second!.prefetchable.limit);
  });

  it('refuses a row for a slot it does not have', async () => {
    const rig = await Rig.start();
    expect(rig.hostRows({}, { slot: 9, boxSlot: 1 })).toBe('there is no virtual slot 9 here');
    expect(rig.hostSlot.row).toBeUndefined();
  });

  it('lets a function in when it is told, and shows where it lies', async () => {
    const rig = await Rig.start();
    rig.peers(0);
    rig.boxRows({});
    rig.hostRows({});
    await until(() => expect(rig.hostSlot.state).toBe('ready'));
    expect(rig.hostSlot.function).toBeUndefined();
    expect(rig.host.slotStatuses()[0]).toMatchObject({
      generation: 1,
      reason: 'its function is held out of the slot until the manager lets it in',
    });
    rig.do((now) => rig.host.plane.plug(now, 0));
    await until(() => expect(rig.hostSlot.function).toBeDefined());
    expect(rig.hostSlot).toMatchObject({
      row: { box: 'b1', boxSlot: 0, generation: 1 },
      function: {
        bdf: 0x0100,
        bars: [
          { index: 0, address: 0xe000_0000, sizeBytes: 16384 },
          { index: 2, address: 2 ** 38, sizeBytes: MIB },
        ],
        memoryEnable: true,
        busMaster: true,
      },
      inUse: false,
      problem: undefined,
    });
  });

  it('says what is in the way of a function that does not fit', async () => {
    const rig = await Rig.start();
    rig.peers(0);
    rig.boxRows({});
    rig.hostRows({ slot: 1 });
    rig.do((now) => rig.host.plane.plug(now, 1));
    await until(() => expect(rig.host.plane.slots()[1]!.problem?.kind).toBe('no-space'));
  });

  it('says why a slot waits', async () => {
    const rig = await Rig.start();
    rig.hostRows({});
    expect(rig.hostSlot).toMatchObject({
      state: 'waiting',
      reason: 'no connection to box b1 yet',
    });
  });
});

describe('a function that leaves', () => {
  it('without surprise waits for who holds it, and nobody new gets it', async () => {
    const rig = await Rig.start();
    await rig.attach();
    const release = rig.host.hold(0);
    expect(rig.hostSlot.inUse).toBe(true);
    rig.do((now) => rig.host.plane.unplug(now, 0, false));
    expect(rig.hostSlot).toMatchObject({ inUse: true, function: { bdf: 0x0100 } });
    expect(() => rig.host.hold(0)).toThrow(
      'virtual slot 0 is being unbound: what runs on its function may end, nothing new begins',
    );
    const before = rig.changes;
    release();
    release();
    await until(() => expect(rig.hostSlot.function).toBeUndefined());
    expect(rig.changes).toBeGreaterThan(before);
    expect(rig.hostSlot).toMatchObject({ state: 'ready', inUse: false });
    // It was switched off before: the box would have counted what it sent.
    expect(rig.box.readFunction(0)!.configSpace.slice(8, 12)).toBe('0004');
  });

  it('without surprise, unused, goes at once, and the device is clean when the rows are gone', async () => {
    const rig = await Rig.start();
    await rig.attach();
    rig.do((now) => rig.host.plane.unplug(now, 0, false));
    await until(() => expect(rig.hostSlot.function).toBeUndefined());
    expect(rig.hostRows()).toBe('');
    expect(rig.boxRows()).toBe('');
    expect(rig.boxSlot).toMatchObject({ state: 'unused', clean: true });
  });

  it('is taken back while somebody still holds it', async () => {
    const rig = await Rig.start();
    await rig.attach();
    const release = rig.host.hold(0);
    rig.do((now) => rig.host.plane.unplug(now, 0, false));
    rig.do((now) => rig.host.plane.plug(now, 0));
    release();
    const again = rig.host.hold(0);
    expect(rig.hostSlot).toMatchObject({ inUse: true, function: { bdf: 0x0100 } });
    again();
  });

  it('by surprise ends what runs on it', async () => {
    const rig = await Rig.start();
    await rig.attach();
    const fn = rig.host.functionAt(0);
    const release = rig.host.hold(0);
    const driver = await rig.host.run(AccelDriver.open(rig.host.soft, fn));
    // A second of the device's time: the removal is first.
    const work = rig.host.run(driver.busy(1e9));
    const ended = expect(work).rejects.toThrow('was removed (without notice)');
    rig.do((now) => rig.host.plane.unplug(now, 0, true));
    await ended;
    expect(rig.hostSlot).toMatchObject({ function: undefined, inUse: false });
    release();
  });

  it('by its row going is a surprise, and who held it holds nothing of the next', async () => {
    const rig = await Rig.start();
    await rig.attach();
    const release = rig.host.hold(0);
    rig.hostRows();
    expect(rig.hostSlot).toMatchObject({ row: undefined, function: undefined, inUse: false });
    rig.boxRows();
    rig.boxRows({ generation: 2 });
    rig.hostRows({ generation: 2 });
    rig.do((now) => rig.host.plane.plug(now, 0));
    await until(() => expect(rig.hostSlot.function).toBeDefined());
    expect(rig.hostSlot.inUse).toBe(false);
    const held = rig.host.hold(0);
    release();
    expect(rig.hostSlot.inUse).toBe(true);
    held();
  });
});

describe('links', () => {
  it('are measured, path by path', async () => {
    const rig = await Rig.start(2);
    rig.peers(0, 1);
    await until(() => expect(rig.host.plane.paths()[0]!.rttNs).toBeGreaterThan(0));
    expect(rig.host.plane.paths()).toEqual([
      {
        box: 'b1',
        path: 'net0',
        up: true,
        rttNs: expect.any(Number),
        bitsPerSecond: 0,
        problem: '',
      },
      {
        box: 'b1',
        path: 'net1',
        up: false,
        rttNs: 0,
        bitsPerSecond: 0,
        problem: 'not in use: the link goes over net0',
      },
    ]);
  });

  it('stay up when their box gets other addresses, and take those when they are lost', async () => {
    const rig = await Rig.start(2);
    await rig.attach();
    const sessionId = rig.host.linkReports()[0]?.sessionId;
    rig.peers(1);
    expect(rig.host.plane.paths()).toMatchObject([
      { path: 'net1', up: false, problem: 'not in use: the link goes over net0' },
    ]);
    expect(rig.hostSlot.function).toBeDefined();
    rig.dropConnections();
    await until(() => expect(rig.host.plane.paths()).toMatchObject([{ path: 'net1', up: true }]));
    expect(rig.host.linkReports()).toMatchObject([{ sessionId, path: 'net1' }]);
    expect(rig.hostSlot.function).toBeDefined();
  });

  it('take a way they learnt of while they were up, when theirs is gone', async () => {
    const rig = await Rig.start(2);
    await rig.attach();
    rig.peers(0, 1);
    rig.listeners[0]!.close();
    rig.dropConnections();
    await until(() =>
      expect(rig.host.plane.paths()).toMatchObject([
        { path: 'net0', up: false },
        { path: 'net1', up: true },
      ]),
    );
    expect(rig.hostSlot.function).toBeDefined();
  });

  it('to a box that is no peer any more end, and contain what went over them', async () => {
    const rig = await Rig.start();
    await rig.attach();
    rig.peers();
    expect(rig.host.plane.paths()).toEqual([]);
    expect(rig.hostSlot).toMatchObject({
      state: 'contained',
      function: undefined,
      reason: 'link to box b1 is down: the host was told to keep no link to this box',
    });
    await until(() => expect(rig.boxSlot.state).toBe('contained'));
    expect(rig.boxSlot.reason).toContain('link to host h1 is down');
    // The manager knows the way out.
    expect(rig.host.slotStatuses()[0]!.reason).not.toContain('raise its generation');
  });

  it('are not made to what is no address', async () => {
    const rig = await Rig.start();
    const endpoints = [{ path: 'net0', address: 'nowhere' }];
    rig.host.plane.setPeers(clock.now(), [{ box: 'b1', endpoints }]);
    expect(rig.host.plane.paths()).toEqual([]);
  });

  it('that cannot be made say what is in the way', async () => {
    const rig = await Rig.start();
    rig.listeners[0]!.close();
    rig.peers(0);
    await until(() =>
      expect(rig.host.plane.paths()[0]).toMatchObject({
        up: false,
        problem: expect.stringContaining('nobody listens there'),
      }),
    );
  });
});
