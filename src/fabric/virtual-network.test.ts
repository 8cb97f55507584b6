import { describe, expect, it } from 'vitest';
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import type { PeerIdentity, Transport, TransportUser } from './transport.ts';
import { VirtualNetwork, type VirtualPathOptions } from './virtual-network.ts';

const HOST: PeerIdentity = { kind: 'host', id: 'h' };
const BOX: PeerIdentity = { kind: 'box', id: 'b' };

class End implements TransportUser {
  readonly log: [number, string][] = [];
  transport: Transport | undefined;
  onFrame: ((bytes: Uint8Array) => void) | undefined;

  frame(now: number, bytes: Uint8Array, offset: number, length: number): void {
    const copy = bytes.slice(offset, offset + length);
    this.log.push([now, `frame ${copy[0]} of ${length}`]);
    this.onFrame?.(copy);
  }

  turnEnd(): void {}

  writable(now: number): void {
    this.log.push([now, 'writable']);
  }

  closed(now: number, reason: string): void {
    this.log.push([now, reason]);
  }
}

function connected(options: VirtualPathOptions, seed = 1) {
  const clock = new VirtualClock();
  const path = new VirtualNetwork(clock, new Prng(seed)).addPath(options);
  const host = new End();
  const box = new End();
  const dialer = {
    local: HOST,
    connected: (now: number, transport: Transport) => {
      host.transport = transport;
      host.log.push([now, `connected to ${transport.peer.id}`]);
      return host;
    },
    connectFailed: (now: number, reason: string) => host.log.push([now, reason]),
  };
  const listener = {
    local: BOX,
    accept: (now: number, transport: Transport) => {
      box.transport = transport;
      box.log.push([now, `accepted ${transport.peer.id}`]);
      return box;
    },
  };
  path.connect(dialer, listener);
  clock.runUntil(options.rttNs);
  return { clock, path, host, box, dialer, listener };
}

function frame(id: number, bytes: number): Uint8Array {
  return new Uint8Array(bytes).fill(id);
}

describe('virtual network', () => {
  it('connects in a round trip', () => {
    const { host, box } = connected({ rttNs: 5000 });
    expect(box.log).toEqual([[2500, 'accepted h']]);
    expect(host.log).toEqual([[5000, 'connected to b']]);
  });

  it('a round trip takes the time worked out by hand', () => {
    const { clock, host, box } = connected({
      rttNs: 6800,
      rateToListener: 100e9,
      rateToDialer: 50e9,
      overheadBytes: 90,
    });
    host.log.length = 0;
    box.onFrame = () => box.transport!.send(clock.now(), frame(2, 160), 0, 160);
    host.transport!.send(clock.now(), frame(1, 60), 0, 60);
    clock.runUntil(1e6);
    // There: (60 + 90) × 8 bits at 100 Gbit/s are 12 ns. Back: (160 + 90) × 8 at 50 Gbit/s, 40 ns.
    expect(host.log).toEqual([[6800 + 6800 + 12 + 40, 'frame 2 of 160']]);
  });

  it('sends one frame behind the other, and asks to hold on while a second one waits', () => {
    const { clock, host, box } = connected({ rttNs: 0, rateToListener: 8e9 });
    box.log.length = 0;
    host.log.length = 0;
    const transport = host.transport!;
    // 100 bytes at 1 byte per ns.
    expect(transport.send(nanos(0), frame(1, 100), 0, 100)).toBe(true);
    expect(transport.send(nanos(0), frame(2, 100), 0, 100)).toBe(false);
    expect(transport.send(nanos(0), frame(3, 100), 0, 100)).toBe(false);
    clock.runUntil(1000);
    expect(box.log).toEqual([
      [100, 'frame 1 of 100'],
      [200, 'frame 2 of 100'],
      [300, 'frame 3 of 100'],
    ]);
    // Two are left at 100, one at 200.
    expect(host.log).toEqual([[200, 'writable']]);
  });

  it('keeps the bytes as they were when sent', () => {
    const { clock, host, box } = connected({ rttNs: 100 });
    const bytes = frame(1, 8);
    host.transport!.send(clock.now(), bytes, 0, 8);
    bytes.fill(9);
    clock.runUntil(1000);
    expect(box.log.at(-1)).toEqual([150, 'frame 1 of 8']);
  });

  it('lets a frame overtake those sent before the path became shorter', () => {
    const { clock, path, host, box } = connected({ rttNs: 1000 });
    box.log.length = 0;
    const startNs = clock.now();
    for (const id of [1, 2]) host.transport!.send(clock.now(), frame(id, 8), 0, 8);
    path.setOptions({ rttNs: 400 });
    for (const id of [3, 4]) host.transport!.send(clock.now(), frame(id, 8), 0, 8);
    clock.runUntil(startNs + 1000);
    expect(box.log).toEqual([
      [startNs + 200, 'frame 3 of 8'],
      [startNs + 200, 'frame 4 of 8'],
      [startNs + 500, 'frame 1 of 8'],
      [startNs + 500, 'frame 2 of 8'],
    ]);
  });

  it('takes a second frame as soon as the first has gone, and at the same time not before', () => {
    const { clock, host } = connected({ rttNs: 0, rateToListener: 8e9 });
    const transport = host.transport!;
    const taken: boolean[] = [];
    // 100 bytes at 1 byte per ns: at 100 the first has gone, for whoever comes behind it.
    clock.at(nanos(100), () => taken.push(transport.send(clock.now(), frame(2, 100), 0, 100)));
    transport.send(nanos(0), frame(1, 100), 0, 100);
    clock.at(nanos(100), () => taken.push(transport.send(clock.now(), frame(3, 100), 0, 100)));
    clock.runUntil(1000);
    // For the one before it, two frames go out; then there are still two: the second and the third.
    expect(taken).toEqual([false, false]);
    expect(transport.send(clock.now(), frame(4, 100), 0, 100)).toBe(true);
  });

  it.each([
    ['loss', { loss: 0.25 }, 750],
    ['duplication', { duplication: 0.25 }, 1250],
  ])('%s happens as often as asked for', (_name, options, expected) => {
    const { clock, host, box } = connected({ rttNs: 100, ...options });
    box.log.length = 0;
    for (let index = 0; index < 1000; index++) host.transport!.send(clock.now(), frame(1, 8), 0, 8);
    clock.runUntil(10_000);
    // Three standard deviations of 1000 trials at 0.25: 41.
    expect(Math.abs(box.log.length - expected)).toBeLessThan(41);
  });

  it('reorders, and does so alike for the same seed', () => {
    const order = (seed: number): string[] => {
      const { clock, host, box } = connected({ rttNs: 1000, reordering: 0.3 }, seed);
      for (let id = 1; id <= 20; id++) host.transport!.send(clock.now(), frame(id, 8), 0, 8);
      clock.runUntil(10_000);
      return box.log.slice(1).map(([, what]) => what);
    };
    const inOrder = Array.from({ length: 20 }, (_, index) => `frame ${index + 1} of 8`);
    expect(order(1)).not.toEqual(inOrder);
    expect([...order(1)].sort()).toEqual([...inOrder].sort());
    expect(order(1)).toEqual(order(1));
    expect(order(1)).not.toEqual(order(2));
  });

  it('a close is heard behind the frames in flight', () => {
    const { clock, host, box } = connected({ rttNs: 1000, rateToListener: 8e9 });
    host.transport!.send(clock.now(), frame(1, 100), 0, 100);
    host.transport!.close();
    host.log.length = 0;
    clock.runUntil(10_000);
    expect(box.log.slice(1)).toEqual([
      [1600, 'frame 1 of 100'],
      [1600, 'the peer closed the connection'],
    ]);
    expect(host.log).toEqual([]);
  });

  it('a cut loses what is in flight, tells both ends, and refuses until healed', () => {
    const { clock, path, host, box, dialer, listener } = connected({ rttNs: 1000 });
    host.transport!.send(clock.now(), frame(1, 8), 0, 8);
    clock.runUntil(1400);
    path.cut('reset');
    host.log.shift();
    box.log.shift();
    expect(host.log).toEqual([[1400, 'the path was cut']]);
    path.connect(dialer, listener);
    clock.runUntil(5000);
    expect(box.log).toEqual([[1400, 'the path was cut']]);
    expect(host.log.at(-1)).toEqual([2400, 'the path is cut']);
    path.heal();
    path.connect(dialer, listener);
    clock.runUntil(9000);
    expect(host.log.at(-1)).toEqual([6000, 'connected to b']);
  });

  it('a silent cut tells nobody, and connecting times out', () => {
    const { clock, path, host, box, dialer, listener } = connected({ rttNs: 1000 });
    path.cut('silent');
    host.transport!.send(clock.now(), frame(1, 8), 0, 8);
    path.connect(dialer, listener);
    clock.runUntil(2e9);
    expect(box.log).toHaveLength(1);
    expect(host.log.slice(1)).toEqual([[1000 + 1e9, 'connecting timed out']]);
    path.heal();
    host.transport!.send(clock.now(), frame(2, 8), 0, 8);
    clock.runUntil(3e9);
    expect(box.log.at(-1)).toEqual([2e9 + 500, 'frame 2 of 8']);
  });

  it('a process that dies hears nothing, its peer that the connection is gone', () => {
    const clock = new VirtualClock();
    const network = new VirtualNetwork(clock, new Prng(1));
    const path = network.addPath({ rttNs: 1000 });
    const host = new End();
    const box = new End();
    path.connect(
      { local: HOST, connected: () => host, connectFailed: () => {} },
      { local: BOX, accept: () => box },
    );
    clock.runUntil(2000);
    network.kill(BOX);
    clock.runUntil(5000);
    expect(host.log).toEqual([[2500, 'the peer closed the connection']]);
    expect(box.log).toEqual([]);
  });
});
