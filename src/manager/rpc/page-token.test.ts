import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { keyOfToken, pageToken } from './page-token.ts';

it('gives back its key to the list it is of', () => {
  fc.assert(
    fc.property(fc.string(), fc.string({ minLength: 1, maxLength: 200 }), (list, key) => {
      // Keys are ids: what is no text in UTF-8 is none.
      fc.pre(Buffer.from(key).toString() === key);
      expect(keyOfToken(list, pageToken(list, key))).toBe(key);
    }),
  );
});

it('the empty token begins, and the end has an empty one', () => {
  expect(keyOfToken('boxes', '')).toBe('');
  expect(pageToken('boxes', undefined)).toBe('');
});

it.each([
  ['of another list', pageToken('boxes', 'b1'), 'hosts'],
  ['made up', Buffer.from('12345678b1').toString('base64url'), 'boxes'],
  ['no token', 'not a token!', 'boxes'],
  ['cut', pageToken('boxes', 'b1234').slice(0, -2), 'boxes'],
  ['endless', pageToken('boxes', 'b'.repeat(10_000)), 'boxes'],
])('one that is %s is refused', (_what, token, list) => {
  expect(() => keyOfToken(list, token)).toThrow('page_token: not one of this list');
});
