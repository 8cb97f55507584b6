import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import type { BoxObservation, HostObservation, Observation } from './observation.ts';
import {
  BINDING_STATES,
  type BindingState,
  FAILURE_REASONS,
  type FailureReason,
} from './records.ts';
import { nextTransition, TRANSITIONS } from './transitions.ts';

const side = {
  connected: fc.boolean(),
  confirmed: fc.boolean(),
  row: fc.constantFrom('own', 'other', 'none', 'unknown'),
  held: fc.boolean(),
  restarted: fc.boolean(),
  contained: fc.boolean(),
  refused: fc.constantFrom('', 'no room'),
  reason: fc.constantFrom('', 'link is down'),
} as const;

const box: fc.Arbitrary<BoxObservation> = fc.record({
  ...side,
  nodeThere: fc.boolean(),
  nodePresent: fc.boolean(),
  clean: fc.boolean(),
  quarantine: fc.constantFrom('', 'memory errors'),
});

const host: fc.Arbitrary<HostObservation> = fc.record({
  ...side,
  released: fc.boolean(),
  ready: fc.boolean(),
  function: fc.constantFrom('none', 'incomplete', 'final'),
  problem: fc.constantFrom(undefined, { kind: 'no-space', message: 'BAR 2' }),
});

const during = fc.constantFrom(
  ...BINDING_STATES.filter((state): state is Exclude<BindingState, 'failed'> => state !== 'failed'),
);

const observation: fc.Arbitrary<Observation> = fc.record({
  goal: fc.constantFrom('attached', 'free'),
  force: fc.boolean(),
  unbindAsked: fc.boolean(),
  expired: fc.boolean(),
  failure: fc.record({
    reason: fc.constantFrom(...(Object.keys(FAILURE_REASONS) as FailureReason[])),
    message: fc.constant(''),
    during,
  }),
  retryAllowed: fc.boolean(),
  retryAsked: fc.boolean(),
  superseded: fc.boolean(),
  box,
  host,
});

it('order decides: the first row of the state that holds is taken, and no other', () => {
  fc.assert(
    fc.property(fc.constantFrom(...BINDING_STATES), observation, (state, seen) => {
      const holding = TRANSITIONS.filter((row) => row.from === state && row.when(seen));
      expect(nextTransition(state, seen)).toBe(holding[0]);
    }),
  );
});

it('a binding that is to be attached is never sent on a way out, nor one given back on a way in', () => {
  const out = new Set(['draining', 'detaching', 'scrubbing', 'free']);
  fc.assert(
    fc.property(fc.constantFrom(...BINDING_STATES), observation, (state, seen) => {
      const next = nextTransition(state, seen);
      if (next === undefined || next.to === 'failed' || out.has(state)) return;
      const isWayOut = out.has(next.to);
      // What was begun before it was asked back may still come to its end.
      const isEndOfStep =
        next.name === 'programming>attaching' || next.name === 'attaching>attached';
      if (seen.goal === 'attached') expect(isWayOut).toBe(false);
      else if (!isEndOfStep) expect(isWayOut || next.name === 'reserved>programming').toBe(true);
    }),
  );
});

it('ends: whatever is seen, a binding that is looked at comes to rest', () => {
  fc.assert(
    fc.property(fc.constantFrom(...BINDING_STATES), observation, (first, seen) => {
      let state: BindingState = first;
      let now = seen;
      for (let steps = 0; steps < 12; steps++) {
        const next = nextTransition(state, now);
        if (next === undefined || next.to === 'free') return;
        const isFailure = next.to === 'failed' && next.reason !== undefined;
        // As a step leaves it: its time begins anew, and nobody asks twice.
        now = {
          ...now,
          expired: false,
          unbindAsked: false,
          retryAsked: false,
          failure: isFailure
            ? {
                reason: next.reason,
                message: '',
                during: state === 'failed' ? (now.failure?.during ?? 'attached') : state,
              }
            : undefined,
        };
        state = next.to;
      }
      throw new Error(`from ${first} it never comes to rest`);
    }),
    { numRuns: 2000 },
  );
});

it('a slot is left to the next, and a generation to programming, after confirmation alone', () => {
  const guarded = new Set(['reserved>programming', 'failed>programming', 'scrubbing>free']);
  fc.assert(
    fc.property(fc.constantFrom(...BINDING_STATES), observation, (state, seen) => {
      const next = nextTransition(state, seen);
      if (next === undefined || !guarded.has(next.name)) return;
      expect(seen.box).toMatchObject({ connected: true, confirmed: true, row: 'none' });
      expect(seen.box.clean || !seen.box.nodePresent).toBe(true);
      if (next.to !== 'programming') return;
      expect(seen.host).toMatchObject({ connected: true, confirmed: true, row: 'none' });
    }),
    { numRuns: 20_000 },
  );
});
