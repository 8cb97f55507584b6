/**
 * Small workloads whose finish time is worked by hand, natively and at three added round trips. The
 * network has no rate here, so that each time is that of TLPs on the device's link and of ways between:
 * t.doorbell, t.fetch(n), t.read(n) and t.fence, as `PathTimes` writes them out.
 */
import { describe, expect, it } from 'vitest';
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { RingCommand } from '#host/accel-channel-ring';
import { type LinkProfileInput, linkProfile } from '#pcie/link-profile';
import { copy, kernel, PathTimes, workload } from '#testkit/emulated';
import {
  type EmulatedDevice,
  type EmulatedSystem,
  nativeSystem,
  pooledSystem,
} from './emulated-system.ts';
import { runWorkload } from './run-workload.ts';
import type { Workload } from './workload.ts';

/** Little memory, so that systems are made quickly; copies from and to what is behind the rings. */
const SMALL = { hostBytes: 2 ** 20, deviceBytes: 2 ** 20 };
const HOST = 4 * 2 ** 30 + 5 * 2 ** 20;
const ADDED_NS = [2000, 5600, 20_000];
const { COPY_HTOD, COPY_DTOH, EVENT_SIGNAL, EVENT_WAIT } = Opcode;

interface Case {
  readonly workload: Workload;
  /** End of the last call; of the last command as the device sees it, where that is later. */
  readonly byHand: (t: PathTimes) => number;
  readonly link?: LinkProfileInput;
  readonly device?: EmulatedDevice;
}

const launchAndWait = { submits: { 0: [kernel(0, true)] }, waits: [0] };
const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);
const signal = (value: number, flags: number): RingCommand => ({
  opcode: EVENT_SIGNAL,
  flags,
  operand0: 0,
  operand1: value,
});

const CASES: Readonly<Record<string, Case>> = {
  'an empty kernel, launched and waited for': {
    workload: workload([[launchAndWait]]),
    byHand: (t) => t.doorbell + t.fetch(1) + t.fence,
  },
  'a kernel that lasts': {
    workload: workload([[{ submits: { 0: [kernel(7000, true)] }, waits: [0] }]]),
    byHand: (t) => t.doorbell + t.fetch(1) + 7000 + t.fence,
  },
  'ten kernels, each waited for before the next, and 500 ns of CPU time between': {
    workload: workload([times(10, { ...launchAndWait, gapNs: 500 })]),
    byHand: (t) => 10 * (500 + t.doorbell + t.fetch(1) + t.fence),
  },
  'forty kernels longer than a fetch, submitted every 3 µs: fetches are hidden': {
    workload: workload([
      [
        ...times(39, { submits: { 0: [kernel(30_000)] }, ownNs: 3000 }),
        { submits: { 0: [kernel(30_000, true)] }, waits: [0] },
      ],
    ]),
    byHand: (t) => t.doorbell + t.fetch(1) + 40 * 30_000 + t.fence,
  },
  'a queue that runs empty: each launch pays doorbell and fetch': {
    // 100 µs between launches of 10 µs: only the last one is still to be seen.
    workload: workload([
      [
        ...times(3, { submits: { 0: [kernel(10_000)] }, ownNs: 100_000 }),
        { submits: { 0: [kernel(10_000, true)] }, waits: [0] },
      ],
    ]),
    byHand: (t) => 300_000 + t.doorbell + t.fetch(1) + 10_000 + t.fence,
  },
  'a graph: twelve kernels, one doorbell, one fetch': {
    workload: workload([
      [{ submits: { 0: [...times(11, kernel(900)), kernel(900, true)] }, waits: [0] }],
    ]),
    byHand: (t) => t.doorbell + t.fetch(12) + 12 * 900 + t.fence,
  },
  'a device that fetches one command at a time, one fetch at a time': {
    workload: workload([
      [{ submits: { 0: [...times(7, kernel(0)), kernel(0, true)] }, waits: [0] }],
    ]),
    device: { fetchCommands: 1, fetchesInFlight: 1 },
    byHand: (t) => t.doorbell + 8 * t.fetch(1) + t.fence,
  },
  'the same, four fetches at a time': {
    workload: workload([
      [{ submits: { 0: [...times(7, kernel(0)), kernel(0, true)] }, waits: [0] }],
    ]),
    device: { fetchCommands: 1, fetchesInFlight: 4 },
    // Eight reads, four at once; the completion of the fourth is behind three others of 84 bytes.
    byHand: (t) => t.doorbell + 2 * t.fetch(1) + t.bytes(3 * 84) + t.fence,
  },
  'an HtoD copy of one request': {
    workload: workload([
      [{ submits: { 0: [copy(COPY_HTOD, HOST, 0, 128, FLAG_FENCE)] }, waits: [0] }],
    ]),
    byHand: (t) => t.doorbell + t.fetch(1) + t.read(128) + t.fence,
  },
  'an HtoD copy of 400 requests with 32 tags: 12 whole windows, and 16 requests': {
    workload: workload([
      [{ submits: { 0: [copy(COPY_HTOD, HOST, 0, 400 * 128, FLAG_FENCE)] }, waits: [0] }],
    ]),
    link: { tags: 32 },
    // A window of 32 completions of 148 bytes is shorter than the native round trip, so each window
    // begins one round trip of a read after the one before it, its completions 148 bytes apart.
    byHand: (t) => t.doorbell + t.fetch(1) + 13 * t.read(128) + t.bytes(15 * 148) + t.fence,
  },
  'a DtoH copy of 1000 writes: no round trip, the rate of the link': {
    workload: workload([
      [{ submits: { 0: [copy(COPY_DTOH, 0, HOST, 1000 * 128, FLAG_FENCE)] }, waits: [0] }],
    ]),
    byHand: (t) => t.doorbell + t.fetch(1) + t.bytes(1000 * (128 + 24)) + t.fence,
  },
  'two streams at the same time': {
    workload: workload(
      [[{ submits: { 0: [kernel(1000, true)], 1: [kernel(9000, true)] }, waits: [0, 1] }]],
      2,
    ),
    // The second fetch's completion is behind that of the first.
    byHand: (t) => t.doorbell + t.fetch(1) + t.bytes(84) + 9000 + t.fence,
  },
  'a stream that waits for an event of another': {
    workload: workload(
      [
        [
          { submits: { 0: [kernel(40_000), signal(1, FLAG_FENCE)] }, ownNs: 100 },
          {
            submits: { 1: [{ opcode: EVENT_WAIT, operand0: 0, operand1: 1 }, kernel(5000, true)] },
            waits: [1],
          },
        ],
      ],
      2,
    ),
    // Stream 0 sends its fence and interrupt first, 56 bytes; stream 1's come 5 µs later.
    byHand: (t) => t.doorbell + t.fetch(2) + 40_000 + 5000 + t.fence,
  },
  'copies of two streams share the engine': {
    workload: workload(
      [
        [
          { submits: { 0: [{ ...copy(COPY_HTOD, HOST, 0, 64), durationNs: 50_000, flags: 1 }] } },
          {
            gapNs: 10,
            submits: { 1: [{ ...copy(COPY_HTOD, HOST, 64, 64), durationNs: 60_000, flags: 1 }] },
            waits: [1],
          },
        ],
      ],
      2,
    ),
    byHand: (t) => t.doorbell + t.fetch(1) + 50_000 + 60_000 + t.fence,
  },
  'two threads: the second launches 200 ns after the first has waited': {
    workload: workload(
      [
        [launchAndWait],
        [{ after: [{ call: 0, gapNs: 200 }], submits: { 1: [kernel(0, true)] }, waits: [1] }],
      ],
      2,
    ),
    byHand: (t) => 200 + 2 * (t.doorbell + t.fetch(1) + t.fence),
  },
  'work that nobody waits for ends the run at the device': {
    workload: workload([[{ submits: { 0: [kernel(80_000, true)] }, ownNs: 1000 }]]),
    byHand: (t) => t.doorbell + t.fetch(1) + 80_000,
  },
};

function finishNs(system: EmulatedSystem, name: string): number {
  const { workload: work, link = {} } = CASES[name]!;
  return runWorkload(system, work, { profile: linkProfile(link) }).spanNs;
}

describe('finishes as worked by hand:', () => {
  it.each(Object.keys(CASES))('%s', (name) => {
    const { link = {}, device = {}, byHand } = CASES[name]!;
    const native = linkProfile(link);
    const nativeNs = finishNs(nativeSystem({ ...SMALL, profile: native, device }), name);
    expect(nativeNs).toBeCloseTo(byHand(new PathTimes(native, 0)), 3);
    for (const addedRttNs of ADDED_NS) {
      const profile = linkProfile({ ...link, addedRttNs, networkGbps: Infinity });
      const pooledNs = finishNs(pooledSystem({ ...SMALL, profile, device }), name);
      expect(pooledNs).toBeCloseTo(byHand(new PathTimes(profile, addedRttNs)), 3);
    }
  });
});

describe('a wait', () => {
  it('has the native arrival of its fence in its own part, and pays it once', () => {
    const own = { ...launchAndWait, ownNs: 2000 };
    const profile = linkProfile({ addedRttNs: 5600, networkGbps: Infinity });
    const run = (system: EmulatedSystem): number =>
      runWorkload(system, workload([[own]]), { profile }).spanNs;
    // Half of 1200 ns of the own part is the way of the fence.
    const left = 2000 - 600;
    const native = new PathTimes(profile, 0);
    const pooled = new PathTimes(profile, 5600);
    const byHand = (t: PathTimes): number => t.doorbell + t.fetch(1) + t.fence + left;
    expect(run(nativeSystem({ ...SMALL, profile }))).toBeCloseTo(byHand(native), 3);
    expect(run(pooledSystem({ ...SMALL, profile }))).toBeCloseTo(byHand(pooled), 3);
  });

  it('whose work is done long before lasts as long as its own part', () => {
    const profile = linkProfile({ addedRttNs: 5600 });
    const work = workload([
      [
        { submits: { 0: [kernel(0, true)] }, ownNs: 100_000 },
        { waits: [0], ownNs: 700 },
      ],
    ]);
    expect(runWorkload(pooledSystem({ ...SMALL, profile }), work, { profile }).spanNs).toBe(
      100_700,
    );
  });
});

it('a workload that does not end in time is an error with the way out', () => {
  const profile = linkProfile({});
  const long = workload([[{ submits: { 0: [kernel(2e9, true)] }, waits: [0] }]]);
  const run = (): unknown =>
    runWorkload(nativeSystem({ profile, ...SMALL }), long, { profile, limitNs: 1e9 });
  expect(run).toThrow('did not end within 1 s of virtual time: take a link');
});
