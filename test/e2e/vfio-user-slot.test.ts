/**
 * A device of a real process of its own in a box slot, beside a built-in one: a soft host uses both over the
 * fabric. Box and host are here, with sockets between them, ordered as a manager would.
 */
import { randomInt } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { BoxNode } from '#agent/daemon/box-node';
import { HostNode } from '#agent/daemon/host-node';
import type { Logger } from '#agent/daemon/logger';
import { RealClock } from '#base/clock';
import { connectTransport, type Listener, listenTransports } from '#fabric/socket-endpoint';
import { AccelDriver } from '#host/accel-driver';
import { firstDifference, plainSgemm } from '#host/plain';
import { socketFolder } from '#testkit/vfio-user-rig';
import { buildDist, Running, until } from './processes.ts';

const MIB = 2 ** 20;
const UUID = '00000000-0000-4000-8000-00000000000';
const SLOTS = [0, 1];
const REMOTE = 1;
const N = 24;
const clock = new RealClock();
const quiet = (): void => {};
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const folder = socketFolder();
const socket = folder.path('accel.sock');

let box: BoxNode;
let host: HostNode;
let listener: Listener;
let server: Running | undefined;
/** Of each slot's row, none without one. */
const generations = new Map<number, number>();

beforeAll(async () => {
  await buildDist();
  box = new BoxNode({
    id: 'b1',
    devices: [
      { slot: 0, kind: 'accel', options: { uuid: `${UUID}0`, memoryBytes: MIB } },
      { slot: REMOTE, kind: 'vfio-user', options: { uuid: `${UUID}1`, path: socket } },
    ],
    clock,
    log,
    isManaged: true,
  });
  listener = await listenTransports({
    host: '127.0.0.1',
    port: 0,
    clock,
    protection: { kind: 'insecure-plain-tcp', peer: { kind: 'host', id: 'h1' } },
    onTransport: (transport) => box.accept(transport),
    onRefused: (error) => {
      throw error;
    },
  });
  host = new HostNode({
    id: 'h1',
    softHost: {
      ports: SLOTS.map((slot) => ({
        secondaryBus: slot + 1,
        nonPrefetchableBase: 0xe000_0000 + slot * MIB,
        nonPrefetchableBytes: MIB,
        prefetchableBase: 2 ** 38 + slot * MIB,
        prefetchableBytes: MIB,
      })),
      memory: [{ base: 0, sizeBytes: 16 * MIB }],
    },
    clock,
    log,
    isManaged: true,
    connect: ({ host: address, port, box: id }) =>
      connectTransport({
        host: address,
        port,
        clock,
        protection: { kind: 'insecure-plain-tcp', peer: { kind: 'box', id } },
      }),
    newSessionId: () => randomInt(1, 2 ** 47),
  });
  const endpoints = [{ path: 'net0', address: `127.0.0.1:${listener.port}` }];
  host.plane.setPeers(clock.now(), [{ box: 'b1', endpoints }]);
  host.settle();
});

afterAll(async () => {
  host?.stop('the test is over');
  box?.stop('the test is over');
  listener?.close();
  await server?.stop();
  folder.remove();
});

const boxSlot = (slot: number) => box.plane.slots()[slot]!;
const reason = (): string => boxSlot(REMOTE).reason;

async function serve(): Promise<void> {
  const words = ['device', 'serve', 'accel', socket, '--memory', '1MiB'];
  server = new Running(words);
  await until(
    () => boxSlot(REMOTE).state !== 'quarantined' || undefined,
    'the device',
    20_000,
    reason,
  );
}

/** The rows of both sides, and the functions of new ones in. */
function setRows(): void {
  const rows = [...generations].map(([slot, generation]) => ({ slot, generation, path: 'net0' }));
  const now = clock.now();
  expect(
    box.plane.setRows(
      now,
      rows.map((row) => ({ ...row, host: 'h1' })),
    ),
  ).toBe('');
  box.settle();
  const ofHost = rows.map((row) => ({ ...row, box: 'b1', boxSlot: row.slot }));
  expect(host.plane.setRows(now, ofHost)).toBe('');
  for (const { slot } of rows) host.plane.plug(now, slot);
  host.settle();
}

async function attach(slot: number, generation: number): Promise<void> {
  generations.set(slot, generation);
  setRows();
  const inside = () => host.plane.slots()[slot]!.function?.busMaster;
  await until(inside, `the function of slot ${slot}: `, 10_000, () =>
    JSON.stringify(boxSlot(slot)),
  );
}

/** Returns when the slot could be given to somebody else. */
async function detach(slot: number): Promise<void> {
  generations.delete(slot);
  setRows();
  await until(() => boxSlot(slot).clean || undefined, `slot ${slot} to be clean`);
}

/** Uploads, multiplies, downloads, and compares each bit with what plain single precision gives. */
async function multiplies(slot: number, seed: number): Promise<void> {
  const release = host.hold(slot);
  const driver = await host.run(AccelDriver.open(host.soft, host.functionAt(slot)));
  const values = (scale: number): Float32Array =>
    Float32Array.from({ length: N * N }, (_, i) =>
      Math.fround(((i * 37 + seed) % 101) / scale - 5),
    );
  const [a, b] = [values(7), values(3)];
  const c = await host.run(driver.sgemm(N, N, N, a, b));
  expect(firstDifference(c, plainSgemm(N, N, N, a, b))).toBe(-1);
  await host.run(driver.close());
  release();
}

it('waits for the process of the device', async () => {
  await until(() => /no such file|ENOENT/i.test(reason()) || undefined, 'a reason: ', 5000, reason);
  expect(boxSlot(REMOTE)).toMatchObject({ state: 'quarantined', clean: false, node: undefined });
  expect(box.slotStatuses()[REMOTE]?.reason).toContain(`the vfio-user device ${socket}: `);
  expect(boxSlot(0)).toMatchObject({ state: 'unused', clean: true });
});

it('computes as the built-in device does, bit by bit', async () => {
  await serve();
  expect(boxSlot(REMOTE)).toMatchObject({
    state: 'unused',
    clean: true,
    node: {
      uuid: `${UUID}1`,
      // docs/accelerator-datasheet.md.
      model: 'ddb0:0001',
      memoryBytes: MIB,
      bars: boxSlot(0).node?.bars,
    },
  });
  for (const slot of SLOTS) await attach(slot, 1);
  for (const slot of SLOTS) await multiplies(slot, 11);
});

it('is reset and scrubbed between two users', async () => {
  await detach(REMOTE);
  await attach(REMOTE, 2);
  await multiplies(REMOTE, 12);
});

it('dies: its binding ends with a reason, the other slot goes on', async () => {
  await server?.stop('SIGKILL');
  await until(() => boxSlot(REMOTE).state === 'quarantined' || undefined, 'the slot to notice');
  expect(reason()).toBe(`the vfio-user device ${socket}: the peer closed the connection`);
  await until(() => !host.plane.slots()[REMOTE]!.function || undefined, 'the function to leave');
  await multiplies(0, 13);
});

it('comes back when its process does, under a new generation', async () => {
  await serve();
  expect(boxSlot(REMOTE).state).toBe('contained');
  await detach(REMOTE);
  await attach(REMOTE, 3);
  await multiplies(REMOTE, 14);
});
