import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Binding, BindingSchema, BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { isStuck } from './pool-wait.ts';

function failed(reason: string, during: BindingState, leaving: boolean): Binding {
  return create(BindingSchema, {
    id: 'b1',
    state: BindingState.FAILED,
    leaving,
    // Each failure counts; whoever asks begins the count anew.
    failure: { reason, during, retries: false, attempts: 1 },
  });
}

it('an unbind waits while both sides let go of a slot that was quarantined under it', () => {
  const { ATTACHED, SCRUBBING } = BindingState;
  expect(isStuck(failed('quarantined', ATTACHED, true), 'free')).toBe(false);
  // Nothing of these changes by itself.
  expect(isStuck(failed('quarantined', ATTACHED, false), 'attached')).toBe(true);
  expect(isStuck(failed('quarantined', SCRUBBING, true), 'free')).toBe(true);
  expect(isStuck(failed('drain-timeout', ATTACHED, true), 'free')).toBe(true);
});
