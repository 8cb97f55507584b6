/** A link that is cut and resumes changes the finish time and nothing else; one that ends, ends the run. */
import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { linkProfile } from '#pcie/link-profile';
import { copy, kernel, workload } from '#testkit/emulated';
import { checkedRandomRun } from '#testkit/random-run';
import { Opcode } from '#host/accel-layout';
import { type EmulatedSystem, pooledSystem } from './emulated-system.ts';
import { runWorkload } from './run-workload.ts';

/** Cuts the path of a run that has begun, after `afterNs`, for `forNs`. */
function cut(
  system: EmulatedSystem,
  mode: 'reset' | 'silent',
  afterNs: number,
  forNs: number,
): void {
  const { clock, network } = system;
  const atNs = clock.now() + afterNs;
  clock.at(atNs as Nanos, () => network!.path.cut(mode));
  clock.at((atNs + forNs) as Nanos, () => network!.path.heal());
}

describe.each(['reset', 'silent'] as const)('a link cut (%s) and resumed', (mode) => {
  it('changes when a run ends, and nothing else', () => {
    let later = 0;
    for (let seed = 0; seed < 40; seed++) {
      const whole = checkedRandomRun(seed);
      // Memory, bytes and tags are compared inside.
      const resumed = checkedRandomRun(seed, {
        begun: (system) => cut(system, mode, (0.02 + seed / 50) * whole.spanNs, 0.3e9),
      });
      const { up, down, bytesAsked, bytesAnswered, readsAnswered, readsOpen } = resumed.counts;
      expect({ up, down, bytesAsked, bytesAnswered, readsAnswered, readsOpen }).toEqual({
        up: whole.counts.up,
        down: whole.counts.down,
        bytesAsked: whole.counts.bytesAsked,
        bytesAnswered: whole.counts.bytesAnswered,
        readsAnswered: whole.counts.readsAnswered,
        readsOpen: 0,
      });
      expect(resumed.spanNs).toBeGreaterThanOrEqual(whole.spanNs);
      if (resumed.spanNs > whole.spanNs + 1e6) later++;
    }
    // A cut when nothing more has to cross changes nothing; most have something to hold up.
    expect(later).toBeGreaterThan(20);
  });
});

describe('a session that ends in the middle of a run', () => {
  const profile = linkProfile({ addedRttNs: 5600 });
  const bytes = 64 * 1024;
  const HOST = 4 * 2 ** 30 + 5 * 2 ** 20;
  const work = workload([
    Array.from({ length: 20 }, () => ({
      submits: { 0: [copy(Opcode.COPY_HTOD, HOST, 0, bytes), kernel(1000, true)] },
      waits: [0],
    })),
  ]);

  function failureOf(act: (system: EmulatedSystem) => void): DxpuError {
    const system = pooledSystem({ profile, deviceBytes: 2 ** 20, hostBytes: 2 ** 20 });
    try {
      runWorkload(system, work, { profile, limitNs: 60e9, begun: () => act(system) });
    } catch (error) {
      expect(error).toBeInstanceOf(DxpuError);
      return error as DxpuError;
    }
    throw new Error('the run did not fail');
  }

  it.each([
    [
      'the box dies',
      (system: EmulatedSystem): void => {
        const atNs = (system.clock.now() + 100e3) as Nanos;
        system.clock.at(atNs, () => system.network!.killBox());
      },
    ],
    [
      'the path stays cut beyond the resume window of 3 s',
      (system: EmulatedSystem): void => cut(system, 'reset', 100e3, 5e9),
    ],
  ])('is `unavailable`, never a result: %s', (_name, act) => {
    const error = failureOf(act);
    expect(error.code).toBe('unavailable');
    expect(error.message).toMatch(/slot 0/);
  });
});
