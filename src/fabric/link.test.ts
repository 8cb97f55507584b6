import { describe, expect, it } from 'vitest';
import { FlowClass } from '#pcie/tlp';
import { serialOf, serialTlp } from '#testkit/link-tlps';
import { LinkWorld } from '#testkit/link-world';
import { FrameType } from './frame.ts';
import { LinkCounters } from './link-counters.ts';
import { TapDirection } from './link-options.ts';
import { SlotState } from './link-user.ts';

const { POSTED, NON_POSTED, COMPLETION } = FlowClass;

/** Lets the pings and acknowledgements of the start go by. */
function quiet(world: LinkWorld): LinkWorld {
  world.up();
  world.run(10e6);
  return world;
}

function send(
  world: LinkWorld,
  from: 'host' | 'box',
  flow: FlowClass,
  serial: number,
  bytes = 0,
): void {
  const link = (from === 'host' ? world.hostUser : world.boxUser).link!;
  link.sendTlp(world.now, 1, 7, serialTlp(flow, serial, bytes, 0, 1));
  link.flush(world.now);
  world.settle();
}

function serials(tlps: { bytes: Uint8Array }[]): number[] {
  return tlps.map((tlp) => serialOf(tlp.bytes));
}

function counts(world: LinkWorld): { host: number[]; box: number[] } {
  const seen = { host: [] as number[], box: [] as number[] };
  world.onFrame = (from, frame) => seen[from].push(frame[1]!);
  return seen;
}

describe('frames on the wire', () => {
  it('a request and its answer cost one frame each way, and the time worked out by hand', () => {
    const path = { rttNs: 10_000, rateToListener: 10e9, rateToDialer: 10e9 };
    const world = quiet(new LinkWorld({ paths: [path] }));
    let answeredAtNs = 0;
    world.boxUser.onTlp = (now, link) => {
      link.sendTlp(now, 1, 7, serialTlp(COMPLETION, 1, 64, 0, 2));
      return true;
    };
    world.hostUser.onTlp = (now) => {
      answeredAtNs = now;
      return true;
    };
    const seen = counts(world);
    const sentAtNs = world.now;
    send(world, 'host', NON_POSTED, 1);
    world.run(900_000);
    expect(seen).toEqual({ host: [FrameType.DATA], box: [FrameType.DATA] });
    // Request: 40 of frame, 12 of entry, 12 of MRd. Answer: 40 + 12 + 12 of CplD + 64 of payload.
    // (64 + 128) × 8 bits at 10 Gbit/s are 153.6 ns.
    expect(answeredAtNs - sentAtNs).toBeCloseTo(10_000 + 153.6, 6);
  });

  it('acknowledges in a frame of its own only after the delay', () => {
    const world = quiet(new LinkWorld());
    const seen = counts(world);
    send(world, 'host', POSTED, 1, 64);
    world.run(5_000 + 999_999);
    expect(seen.box).toEqual([]);
    world.run(1);
    expect(seen.box).toEqual([FrameType.CONTROL]);
  });

  it('acknowledges at once after a number of frames', () => {
    const world = quiet(new LinkWorld({ box: { ackFrames: 3 } }));
    const seen = counts(world);
    for (let serial = 1; serial <= 7; serial++) send(world, 'host', POSTED, serial, 64);
    world.run(6_000);
    expect(seen.host).toHaveLength(7);
    expect(seen.box).toEqual([FrameType.CONTROL, FrameType.CONTROL]);
  });

  it('gives credits back when half a window is used', () => {
    const window = { tlps: 8, dataUnits: 1000 };
    const world = quiet(new LinkWorld({ box: { windows: [window, window, window] } }));
    const seen = counts(world);
    for (let serial = 1; serial <= 3; serial++) send(world, 'host', POSTED, serial, 64);
    world.run(6_000);
    expect(seen.box).toEqual([]);
    send(world, 'host', POSTED, 4, 64);
    world.run(6_000);
    expect(seen.box).toEqual([FrameType.CONTROL]);
  });

  it('gathers TLPs while the wire is busy, and sends one at once when it is not', () => {
    // 92-byte frames take 736 ns at 1 Gbit/s.
    const path = { rttNs: 0, rateToListener: 1e9, rateToDialer: 1e9 };
    const world = quiet(new LinkWorld({ paths: [path] }));
    const frames: number[] = [];
    world.onFrame = (from, frame) => {
      if (from === 'host') frames.push((frame[2]! << 8) | frame[3]!);
    };
    for (let serial = 1; serial <= 20; serial++) send(world, 'host', POSTED, serial, 16);
    world.run(100_000);
    // One on the wire, one behind it, the rest together when the second's turn comes.
    expect(frames).toEqual([1, 1, 18]);
    expect(serials(world.boxUser.tlps)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  it('fills frames up to their bound', () => {
    const world = quiet(new LinkWorld({ host: { maxFrameBytes: 8192 } }));
    const lengths: number[] = [];
    world.onFrame = (from, frame) => {
      if (from === 'host') lengths.push(frame.length);
    };
    const link = world.hostUser.link!;
    for (let serial = 1; serial <= 40; serial++) {
      link.sendTlp(world.now, 1, 7, serialTlp(POSTED, serial, 512, 0, 1));
    }
    link.flush(world.now);
    world.run(20_000);
    // An entry is 12 + 12 + 512 = 536 bytes; ⌊(8192 − 40) ÷ 536⌋ = 15 fit: 40 + 15 × 536 = 8080.
    expect(lengths).toEqual([8080, 8080, 40 + 10 * 536]);
    expect(world.boxUser.tlps).toHaveLength(40);
  });

  it('measures round trips by ping', () => {
    const world = quiet(new LinkWorld({ paths: [{ rttNs: 30_000 }] }));
    world.run(1e9);
    for (const counters of [world.host.counters, world.box.counters().get('h1')!]) {
      expect(counters.rttLastNs).toBeCloseTo(30_000, 3);
      expect(counters.rttMinNs).toBeCloseTo(30_000, 3);
      expect(counters.rttMeanNs).toBeCloseTo(30_000, 3);
      // One at the start, then every 250 ms.
      expect(counters.rttCount).toBe(5);
    }
  });

  it('keeps the smallest of the last eight round trips, of the connection in use alone', () => {
    const counters = new LinkCounters();
    expect(counters.rttRecentNs).toBe(0);
    for (const rttNs of [100, 900, 800, 700, 600, 500, 400, 300]) counters.addRtt(rttNs);
    expect(counters.rttRecentNs).toBe(100);
    counters.addRtt(350);
    expect(counters.rttRecentNs).toBe(300);
    counters.forgetRecent();
    expect(counters.rttRecentNs).toBe(0);
    const world = quiet(new LinkWorld({ paths: [{ rttNs: 30_000 }, { rttNs: 50_000 }] }));
    expect(world.host.counters.rttRecentNs).toBeCloseTo(30_000, 3);
    world.paths[0]!.cut('reset');
    world.run(1e9);
    expect(world.host.counters.rttRecentNs).toBeCloseTo(50_000, 3);
  });
});

describe('credits and ordering', () => {
  const narrow = { tlps: 1, dataUnits: 256 };
  const wide = { tlps: 100, dataUnits: 10_000 };

  it('posted requests and completions overtake a non-posted one without credit', () => {
    const world = quiet(new LinkWorld({ box: { windows: [wide, narrow, wide] } }));
    world.boxUser.onTlp = (_now, _link, tlp) => serialOf(tlp.bytes) !== 1;
    send(world, 'host', NON_POSTED, 1);
    send(world, 'host', NON_POSTED, 2);
    send(world, 'host', POSTED, 3, 16);
    send(world, 'host', COMPLETION, 4, 16);
    world.run(1e6);
    expect(serials(world.boxUser.tlps)).toEqual([1, 3, 4]);
    expect(world.host.counters.creditStalls).toEqual([0, 1, 0]);
    world.boxUser.link!.release(world.now, NON_POSTED, 0);
    world.settle();
    world.run(1e6);
    expect(serials(world.boxUser.tlps)).toEqual([1, 3, 4, 2]);
  });

  it('a completion waits behind a posted request that has no credit', () => {
    const world = quiet(new LinkWorld({ box: { windows: [narrow, wide, wide] } }));
    world.boxUser.onTlp = (_now, _link, tlp) => serialOf(tlp.bytes) !== 1;
    send(world, 'host', POSTED, 1, 16);
    send(world, 'host', POSTED, 2, 16);
    send(world, 'host', COMPLETION, 3, 16);
    world.run(1e6);
    expect(serials(world.boxUser.tlps)).toEqual([1]);
    world.boxUser.link!.release(world.now, POSTED, 16);
    world.settle();
    world.run(1e6);
    expect(serials(world.boxUser.tlps)).toEqual([1, 2, 3]);
  });

  it('a slot state stays behind all that was queued before it', () => {
    const world = quiet(new LinkWorld({ box: { windows: [wide, narrow, wide] } }));
    world.boxUser.onTlp = (_now, _link, tlp) => serialOf(tlp.bytes) !== 1;
    const link = world.hostUser.link!;
    send(world, 'host', NON_POSTED, 1);
    send(world, 'host', NON_POSTED, 2);
    link.sendSlotState(world.now, 9, 2 ** 52 + 1, SlotState.READY);
    send(world, 'host', POSTED, 3, 16);
    world.run(1e6);
    expect(world.boxUser.states).toEqual([]);
    world.boxUser.link!.release(world.now, NON_POSTED, 0);
    world.settle();
    world.run(1e6);
    const state = { slot: 9, generation: 2 ** 52 + 1, state: SlotState.READY, afterTlps: 3 };
    expect(world.boxUser.states).toEqual([state]);
  });

  it('says no when its queue is full, and tells when there is room', () => {
    const world = quiet(
      new LinkWorld({ box: { windows: [narrow, wide, wide] }, host: { queueTlps: 4 } }),
    );
    world.boxUser.onTlp = () => false;
    let sent = 0;
    const link = world.hostUser.link!;
    while (link.canSend(POSTED, 16)) send(world, 'host', POSTED, ++sent, 16);
    // One used the credit, four wait.
    expect(sent).toBe(5);
    expect(link.canSend(COMPLETION, 16)).toBe(true);
    for (let released = 1; released <= 4; released++) {
      world.run(1e6);
      expect(world.hostUser.resumes).toBe(0);
      world.boxUser.link!.release(world.now, POSTED, 16);
      world.settle();
    }
    world.run(1e6);
    // All four have gone.
    expect(world.hostUser.resumes).toBe(1);
    expect(link.canSend(POSTED, 16)).toBe(true);
  });

  it('taps every TLP once in each direction', () => {
    const world = quiet(new LinkWorld());
    const seen: [number, number, number][] = [];
    world.host.tap = (_now, direction, slot, bytes, offset, length) =>
      seen.push([direction, slot, serialOf(bytes.slice(offset, offset + length))]);
    send(world, 'host', POSTED, 1, 16);
    send(world, 'box', POSTED, 2, 16);
    world.run(1e6);
    world.host.tap = undefined;
    send(world, 'host', POSTED, 3, 16);
    world.run(1e6);
    expect(seen).toEqual([
      [TapDirection.OUT, 1, 1],
      [TapDirection.IN, 1, 2],
    ]);
  });

  it('counts what passes', () => {
    const world = quiet(new LinkWorld());
    send(world, 'host', POSTED, 1, 16);
    send(world, 'host', NON_POSTED, 2);
    world.run(1e6);
    const { out } = world.host.counters;
    const into = world.box.counters().get('h1')!.in;
    for (const direction of [out, into]) {
      expect(direction.tlps).toEqual([1, 1, 0]);
      expect(direction.tlpBytes).toEqual([28, 12, 0]);
    }
    expect(out.frames).toBe(2);
    expect(out.frameBytes).toBe(40 + 12 + 28 + 40 + 12 + 12);
  });
});
