/** What a step of a binding's life does to its record, and how long the next may take. */
import { assert } from '#base/assert';
import { failureText } from './failure-text.ts';
import type { Binding } from './inventory.ts';
import type { Observation } from './observation.ts';
import type { PoolTimeouts } from './pool-options.ts';
import type { BindingRecord } from './records.ts';
import type { Transition } from './transitions.ts';

/** Beside the state. `newGeneration` is asked for one when the step needs it. */
export function stepChanges(
  binding: Binding,
  row: Transition,
  seen: Observation,
  newGeneration: () => number,
): Partial<BindingRecord> {
  const { record } = binding;
  switch (row.to) {
    case 'failed': {
      const { from, reason } = row;
      const during = from === 'failed' ? record.failure?.during : from;
      assert(reason !== undefined && during !== undefined, `${row.name} is no way to fail`);
      const message = failureText(record, reason, seen);
      return {
        failure: { reason, message, during },
        attempts: record.attempts + 1,
        attachment: reason === 'drain-timeout' ? record.attachment : undefined,
      };
    }
    case 'programming':
      if (row.from !== 'failed') return {};
      return {
        failure: undefined,
        generation: newGeneration(),
      };
    case 'attached': {
      const found = binding.hostSlot.report?.function;
      assert(found !== undefined, `${record.id} is attached without a function`);
      return { attempts: 0, attachment: { bdf: found.bdf, bars: found.bars } };
    }
    case 'detaching':
      return { failure: undefined, attachment: undefined };
    default:
      return { failure: undefined };
  }
}

/** `undefined`: as long as it likes. Of a failed binding: the wait before it is tried again. */
export function stepDurationMs(
  { state, attempts }: BindingRecord,
  timeouts: PoolTimeouts,
): number | undefined {
  switch (state) {
    case 'reserved':
      return timeouts.reservedMs;
    case 'programming':
      return timeouts.programmingMs;
    case 'attaching':
      return timeouts.attachingMs;
    case 'attached':
      return undefined;
    case 'draining':
      return timeouts.drainingMs;
    case 'detaching':
      return timeouts.detachingMs;
    case 'scrubbing':
      return timeouts.scrubbingMs;
    case 'failed': {
      const doublings = Math.min(Math.max(0, attempts - 1), 30);
      return Math.min(timeouts.firstRetryMs * 2 ** doublings, timeouts.lastRetryMs);
    }
  }
}

/** Nothing is known of a generation that was given out just now. */
export function startGeneration(binding: Binding): void {
  binding.boxHeld = false;
  binding.hostHeld = false;
  binding.boxInForce = false;
  binding.boxReleasing = false;
  binding.superseded = false;
}
