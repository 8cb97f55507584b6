import { describe, expect, it } from 'vitest';
import { DxpuError } from './errors.ts';

describe('DxpuError.from', () => {
  it('returns a DxpuError as it is', () => {
    const error = new DxpuError('not_found', 'no slot 9', { details: { slot: 9 } });
    expect(DxpuError.from(error)).toBe(error);
    expect(error.details).toEqual({ slot: 9 });
  });

  it.each([
    ['ENOENT', 'not_found'],
    ['EACCES', 'permission_denied'],
    ['EADDRINUSE', 'already_exists'],
    ['ECONNREFUSED', 'unavailable'],
    ['ETIMEDOUT', 'deadline_exceeded'],
    ['ENOSPC', 'resource_exhausted'],
    ['ESOMETHING', 'unknown'],
  ])('gives errno %s the code %s and keeps the cause', (errno, code) => {
    const cause = Object.assign(new Error(`${errno}: no luck`), { code: errno });
    const error = DxpuError.from(cause);
    expect([error.code, error.message, error.cause]).toEqual([code, `${errno}: no luck`, cause]);
  });

  it('wraps what is not an Error', () => {
    expect(DxpuError.from('plain text')).toMatchObject({ code: 'unknown', message: 'plain text' });
    expect(DxpuError.from(undefined).message).toBe('undefined');
  });

  it('is an Error with a name and no cause unless given one', () => {
    const error = new DxpuError('aborted', 'stopped');
    expect(error).toBeInstanceOf(Error);
    expect(error.name).toBe('DxpuError');
    expect('cause' in error).toBe(false);
  });
});
