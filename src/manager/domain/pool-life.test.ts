import { expect, it } from 'vitest';
import { CorePool } from '#testkit/core-pool';

it('a binding goes from reserved to attached and back to free', () => {
  const pool = CorePool.ready();
  const answer = pool.bind();
  expect(answer).toMatchObject({ ok: true, repeated: false, bindings: [{ state: 'reserved' }] });
  pool.run();
  expect(pool.state('b1')).toBe('attached');
  pool.unbind(['b1']);
  pool.run();
  expect(pool.state('b1')).toBe('free');
  expect(pool.steps).toEqual([
    'free>reserved',
    'reserved>programming',
    'programming>attaching',
    'attaching>attached',
    'attached>draining',
    'draining>detaching',
    'detaching>scrubbing',
    'scrubbing>free',
  ]);
  expect(pool.core.status()).toMatchObject({ gpus: 2, gpusFree: 2, bindings: 0 });
});
