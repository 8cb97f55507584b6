/**
 * A host that lags behind the clock is for speed alone: every call, TLP and frame of a run is the same, to
 * the bit, and so is memory, which each run compares with what it must be.
 */
import { expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { fc } from '#testkit/properties';
import { checkedRandomRun, type RandomRunOptions } from '#testkit/random-run';

interface Cut {
  readonly mode: 'reset' | 'silent';
  /** Of the span without it. */
  readonly share: number;
  readonly forNs: number;
}

const cut: fc.Arbitrary<Cut> = fc.record({
  mode: fc.constantFrom('reset', 'silent'),
  share: fc.double({ min: 0, max: 1, noNaN: true }),
  forNs: fc.integer({ min: 0, max: 0.4e9 }),
});

function withCut({ mode, share, forNs }: Cut, spanNs: number): RandomRunOptions {
  return {
    begun: ({ clock, network }) => {
      const atNs = clock.now() + share * spanNs;
      clock.at(atNs as Nanos, () => network!.path.cut(mode));
      clock.at((atNs + forNs) as Nanos, () => network!.path.heal());
    },
  };
}

it('changes nothing, on short and long links, slow and fast, whole and cut', () => {
  fc.assert(
    fc.property(
      fc.nat(100_000),
      fc.constantFrom(0, 300, 700, 5600, 20_000),
      fc.constantFrom(1, 25, 200, Infinity),
      // From half a round trip on the network does not let it.
      fc.double({ min: 0.02, max: 0.6, noNaN: true }),
      fc.option(cut),
      (seed, addedRttNs, networkGbps, share, trouble) => {
        const link = { addedRttNs, networkGbps };
        const whole = checkedRandomRun(seed, { ...link, lagNs: 0 });
        const lagNs = share * addedRttNs;
        expect(checkedRandomRun(seed, { ...link, lagNs })).toEqual(whole);
        if (trouble === null) return;
        const how = { ...link, ...withCut(trouble, whole.spanNs) };
        expect(checkedRandomRun(seed, { ...how, lagNs })).toEqual(
          checkedRandomRun(seed, { ...how, lagNs: 0 }),
        );
      },
    ),
    { numRuns: 12 },
  );
});
