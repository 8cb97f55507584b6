import { expect, it } from 'vitest';
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { FakeSocket, settled } from '#testkit/fake-socket';
import { frameOf, FrameRecorder } from '#testkit/frame-recorder';
import { FaultInjector, type FaultTransport } from './fault-transport.ts';
import { SocketTransport } from './socket-transport.ts';

const clock = new VirtualClock();

function faulty(): {
  faults: FaultInjector;
  socket: FakeSocket;
  user: FrameRecorder;
  wrapped: FaultTransport;
  send: (seed: number) => void;
} {
  const socket = new FakeSocket();
  const faults = new FaultInjector(clock, new Prng(5));
  const wrapped = faults.wrap(
    new SocketTransport(socket.asSocket(), { kind: 'box', id: 'b1' }, clock),
  );
  const user = new FrameRecorder();
  wrapped.start(user);
  const send = (seed: number): boolean => wrapped.send(clock.now(), frameOf(8, seed), 0, 8);
  return { faults, socket, user, wrapped, send };
}

it('drops the asked share of frames', async () => {
  const { faults, socket, send } = faulty();
  faults.set({ dropProbability: 0.25 });
  for (let index = 0; index < 4000; index++) send(index);
  await settled();
  const arrived = Buffer.concat(socket.written).length / 8;
  expect(arrived + faults.counters.droppedFrames).toBe(4000);
  // Binomial: 4000 × 0.25 = 1000, σ = √(4000 × 0.25 × 0.75) = 27.4; five σ on either side.
  expect(faults.counters.droppedFrames).toBeGreaterThan(1000 - 137);
  expect(faults.counters.droppedFrames).toBeLessThan(1000 + 137);
});

it('delays frames by the asked time and keeps their order', async () => {
  const { faults, socket, send } = faulty();
  faults.set({ delayNs: 50_000 });
  send(1);
  send(2);
  await settled();
  expect(socket.written).toEqual([]);
  clock.runUntil(clock.now() + 49_999);
  await settled();
  expect(socket.written).toEqual([]);
  faults.set({ delayNs: 0 });
  send(3); // Must not overtake those that wait.
  clock.runUntil(clock.now() + 1);
  await settled();
  await settled();
  expect(Buffer.concat(socket.written)).toEqual(
    Buffer.concat([frameOf(8, 1), frameOf(8, 2), frameOf(8, 3)]),
  );
});

// `slice` of a `Buffer` copies nothing, and a link's frames lie in one.
it('delays a frame as it was, though the sender uses its bytes anew', async () => {
  const { faults, socket, wrapped } = faulty();
  faults.set({ delayNs: 50_000 });
  const bytes = Buffer.from(frameOf(8, 1));
  wrapped.send(clock.now(), bytes, 0, 8);
  bytes.fill(0xff);
  clock.runUntil(clock.now() + 50_000);
  await settled();
  await settled();
  expect(Buffer.concat(socket.written)).toEqual(Buffer.from(frameOf(8, 1)));
});

it('cuts connections for the asked time, and can be cleared', () => {
  const { faults, user } = faulty();
  const begin = clock.now();
  faults.cut(begin, 2e9);
  expect(user.events).toEqual(['closed: cut by fault injection']);
  expect(faults.isCut(begin)).toBe(true);
  expect(faults.isCut((begin + 2e9 - 1) as Nanos)).toBe(true);
  expect(faults.isCut((begin + 2e9) as Nanos)).toBe(false);
  faults.cut(begin, 2e9);
  faults.clear();
  expect(faults.isCut(begin)).toBe(false);
});

it('lets frames out when its sender has no more', () => {
  const { socket, send, wrapped } = faulty();
  send(1);
  expect(socket.written).toEqual([]);
  wrapped.flush();
  expect(Buffer.concat(socket.written)).toEqual(Buffer.from(frameOf(8, 1)));
});
