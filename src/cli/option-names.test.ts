import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { withOptionNames } from './option-names.ts';

describe('a complaint of the manager', () => {
  it.each([
    ['demand.model: "a b" has a space', '--model: "a b" has a space'],
    ['demand.max_round_trip_ns: -1 is too low', '--max-rtt: -1 is too low'],
    ['request_id: is too long', '--request-id: is too long'],
    ['page_size: 0 is too low', 'page_size: 0 is too low'],
  ])('%s', (message, shown) => {
    const details = { field: 'f' };
    const error = withOptionNames(new DxpuError('invalid_argument', message, { details }));
    expect(error).toMatchObject({ code: 'invalid_argument', message: shown, details });
  });

  it('that is no wrong argument stays as it is', () => {
    const error = new DxpuError('not_found', 'request_id: is not known');
    expect(withOptionNames(error)).toBe(error);
  });
});
