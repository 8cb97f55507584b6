/** Whoever dials may lag by less than half a round trip: what both ends hear, and when, is the same. */
import { expect, it } from 'vitest';
import { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { fc } from '#testkit/properties';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';
import { VirtualNetwork, type VirtualPathOptions } from './virtual-network.ts';

const HOST: PeerIdentity = { kind: 'host', id: 'h' };
const BOX: PeerIdentity = { kind: 'box', id: 'b' };
const END_NS = 2000;
const HALF_NS = 60;

/** Writes down what it hears; answers every third frame. */
class End implements TransportUser {
  readonly log: string[] = [];
  transport: Transport | undefined;

  frame(now: Nanos, bytes: Uint8Array, offset: number, length: number): void {
    const id = bytes[offset] ?? 0;
    this.log.push(`${now} frame ${id} of ${length}`);
    if (id % 3 === 0) this.send(now, id + 1, 8);
  }

  turnEnd(): void {}

  writable(now: Nanos): void {
    this.log.push(`${now} writable`);
  }

  closed(now: Nanos, reason: string): void {
    this.log.push(`${now} ${reason}`);
    this.transport = undefined;
  }

  connected(now: Nanos, transport: Transport): TransportUser {
    this.log.push(`${now} connected`);
    this.transport = transport;
    return this;
  }

  send(now: Nanos, id: number, length: number): void {
    const takes = this.transport?.send(now, new Uint8Array(length).fill(id), 0, length);
    this.log.push(`${now} sent ${id}: ${takes}`);
  }

  close(now: Nanos): void {
    this.log.push(`${now} closes`);
    this.transport?.close();
    this.transport = undefined;
  }
}

/** `lagNs`: −1 for a host that lives by the clock of the world. */
function run(seed: number, lagNs: number): Record<string, unknown> {
  const prng = new Prng(seed);
  const clock = new VirtualClock();
  const hostClock = lagNs < 0 ? clock : new VirtualClock(clock);
  if (lagNs >= 0) hostClock.lagNs = lagNs;
  // Frames take no whole number of ns: nothing of both ends comes at the same time.
  const options = prng.pick<Partial<VirtualPathOptions>>([
    {},
    { rateToListener: 7e9, rateToDialer: 9e9 },
    { rateToListener: 0.7e9, overheadBytes: 20 },
  ]);
  const path = new VirtualNetwork(clock, new Prng(seed)).addPath(
    { rttNs: 2 * HALF_NS, connectTimeoutNs: 500, ...options },
    hostClock,
  );
  const host = new End();
  const box = new End();
  const dialer = {
    local: HOST,
    connected: (now: Nanos, transport: Transport) => host.connected(now, transport),
    connectFailed: (now: Nanos, reason: string) => host.log.push(`${now} ${reason}`),
  };
  const listener = {
    local: BOX,
    accept: (now: Nanos, transport: Transport) => box.connected(now, transport),
  };
  const act = (end: End, on: VirtualClock, atNs: number): void => {
    const id = prng.between(0, 200);
    const length = prng.between(1, 60);
    const what = prng.float();
    on.at(atNs as Nanos, (now) => {
      if (what < 0.8) end.send(now, id, length);
      else if (what < 0.85) end.close(now);
      else if (end === host) path.connect(dialer, what < 0.97 ? listener : undefined);
    });
  };
  hostClock.at(1 as Nanos, () => path.connect(dialer, listener));
  for (let atNs = 3; atNs < END_NS; atNs += 2 * prng.between(1, 40)) act(host, hostClock, atNs);
  for (let atNs = 4; atNs < END_NS; atNs += 2 * prng.between(1, 40)) act(box, clock, atNs);
  let rttNs = 2 * HALF_NS;
  const changes = [
    () => path.cut('reset'),
    () => path.cut('silent'),
    () => path.heal(),
    () => path.heal(),
    // Shorter, a frame could overtake the connecting.
    () => path.setOptions({ rttNs: (rttNs += 2 * prng.between(1, HALF_NS)) }),
    () => path.setOptions({ rateToListener: 3e9 }),
    () => path.setOptions({ loss: prng.pick([0, 0.2]), reordering: prng.pick([0, 0.2]) }),
    () => path.kill(prng.pick([BOX, HOST])),
  ];
  for (let atNs = 0.5; atNs < END_NS; atNs += prng.between(1, 400)) {
    clock.at(atNs as Nanos, () => prng.pick(changes)());
  }
  clock.runUntil(2 * END_NS);
  return { host: host.log, box: box.log };
}

it('hosts that lag hear and are heard of at the same times', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 0, max: HALF_NS - 1 }), (seed, lagNs) => {
      expect(run(seed, lagNs)).toEqual(run(seed, -1));
    }),
  );
});
