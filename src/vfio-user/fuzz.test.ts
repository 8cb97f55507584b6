import { describe, expect, test } from 'vitest';
import { fuzzVfioUser, giveVfioUserMessages } from '#testkit/vfio-user-fuzz';

const BATCH = 2000;

test('20,000 mutated messages: no exception, no descriptor left, no memory touched that was not lent', () => {
  const totals = { accepted: 0, refused: 0, sessionsEnded: 0 };
  for (let seed = 1; seed <= 10; seed++) {
    const result = fuzzVfioUser(seed, BATCH);
    totals.accepted += result.accepted;
    totals.refused += result.refused;
    totals.sessionsEnded += result.sessionsEnded;
  }
  // Both ways are taken often enough to mean something.
  expect(totals.accepted).toBeGreaterThan(2000);
  expect(totals.refused).toBeGreaterThan(2000);
  expect(totals.sessionsEnded).toBeGreaterThan(100);
});

describe('messages from a stream', () => {
  test.each([
    ['none', ''],
    ['half a header', '000001'],
    ['a length of zero', '00000100000000000000000000000000'],
    ['a length beyond the end', '00000100ffffffff0000000000000000ffff'],
  ])('%s', (_name, text) => {
    giveVfioUserMessages(Uint8Array.from(Buffer.from(text, 'hex')));
  });
});
