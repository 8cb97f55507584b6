import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { BINDING_STATES } from '#manager/domain/records';
import {
  BindingSchema,
  BindingState,
  WatchResponseSchema,
  WindowSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { plainOf, stateOfWord, stateWord, timeOf } from './pool-plain.ts';

describe('plainOf', () => {
  it('keeps numbers up to 2^53 numbers, beyond as exact text', () => {
    const message = create(WindowSchema, { base: 2n ** 53n - 1n, limit: 2n ** 53n + 1n });
    expect(plainOf(WindowSchema, message)).toEqual({
      base: 9_007_199_254_740_991,
      limit: '9007199254740993',
    });
  });

  it('leaves out what is absent, keeps what is empty', () => {
    const plain = plainOf(BindingSchema, create(BindingSchema, { id: 'b1' }));
    expect(plain).toMatchObject({ id: 'b1', leaving: false, model: '', boxSlot: 0 });
    for (const absent of ['failure', 'attachment', 'live', 'created']) {
      expect(plain).not.toHaveProperty(absent);
    }
  });

  it('goes into messages of messages', () => {
    const message = create(WatchResponseSchema, {
      position: 4n,
      entry: {
        time: timestampFromMs(0),
        binding: { state: BindingState.FAILED, failure: { during: BindingState.ATTACHING } },
      },
    });
    expect(plainOf(WatchResponseSchema, message)).toMatchObject({
      position: 4,
      entry: {
        time: '1970-01-01T00:00:00.000Z',
        binding: { state: 'failed', failure: { during: 'attaching' } },
      },
    });
  });
});

it('has a word for each state and a state for each word', () => {
  for (const word of BINDING_STATES) {
    const state = stateOfWord(word);
    expect(state, word).toBeDefined();
    expect(stateWord(state ?? 0)).toBe(word);
  }
  expect(stateOfWord('unspecified')).toBeUndefined();
  // Of a newer manager.
  expect(stateWord(77 as BindingState)).toBe('77');
  expect(timeOf(undefined)).toBe('');
});
