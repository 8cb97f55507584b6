import { describe, expect, test } from 'vitest';
import { fuzzVfioUser, giveVfioUserMessages } from '#testkit/vfio-user-fuzz';
import { fuzzRecorded } from '#testkit/vfio-user/recorded-fuzz';

const BATCH = 2000;

test('20,000 messages of QEMU, mutated: no exception, all answered, no descriptor left, no memory reached that is not lent', () => {
  const totals = { messages: 0, accepted: 0, refused: 0, sessions: 0, clientsReady: 0 };
  for (let seed = 1; seed <= 10; seed++) {
    const result = fuzzRecorded(seed, BATCH);
    for (const name of Object.keys(totals) as (keyof typeof totals)[]) totals[name] += result[name];
  }
  expect(totals.messages).toBe(20_000);
  // All ways are taken often enough to mean something.
  expect(totals.accepted).toBeGreaterThan(5000);
  expect(totals.refused).toBeGreaterThan(1000);
  expect(totals.sessions).toBeGreaterThan(200);
  expect(totals.clientsReady).toBeGreaterThan(20);
});

test('mutated messages of our own making: no exception, no descriptor left, no memory touched that was not lent', () => {
  const totals = { accepted: 0, refused: 0, sessionsEnded: 0 };
  for (let seed = 1; seed <= 2; seed++) {
    const result = fuzzVfioUser(seed, BATCH);
    totals.accepted += result.accepted;
    totals.refused += result.refused;
    totals.sessionsEnded += result.sessionsEnded;
  }
  // Both ways are taken often enough to mean something.
  expect(totals.accepted).toBeGreaterThan(400);
  expect(totals.refused).toBeGreaterThan(400);
  expect(totals.sessionsEnded).toBeGreaterThan(20);
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
