import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { demandOf } from '#testkit/core-pool';
import { Journal } from './journal.ts';
import { fingerprintOf, RequestBook } from './request-book.ts';

const COUNTERS = { generation: 0, binding: 0, position: 0 };

function request(requestId: string) {
  return { caller: 'user/a', requestId, fingerprint: 'f', bindings: [] };
}

it('forgets the oldest when there are too many, and tells the store', () => {
  let wallMs = 1000;
  const journal = new Journal(COUNTERS, () => wallMs);
  const book = new RequestBook(journal, [], 60_000, 3);
  for (let count = 0; count < 5; count++) {
    wallMs += 10;
    book.remember(nanos(count), request(`r${count}`));
  }
  expect(book.size).toBe(3);
  expect(book.find('user/a', 'r1')).toBeUndefined();
  expect(book.find('user/a', 'r2')).toBeDefined();
  // r2 was remembered at 1030: it and what is younger stays.
  expect(journal.take()?.forgetRequestsBeforeMs).toBe(1030);
});

it('gives requests times that go up though the clock goes back, so that the store forgets the same', () => {
  let wallMs = 5000;
  const journal = new Journal(COUNTERS, () => wallMs);
  const book = new RequestBook(journal, [], 60_000, 2);
  book.remember(nanos(0), request('r0'));
  wallMs = 1000;
  book.remember(nanos(1), request('r1'));
  book.remember(nanos(2), request('r2'));
  const batch = journal.take();
  expect(batch?.requests.map(({ atMs }) => atMs)).toEqual([5000, 5001, 5002]);
  expect(batch?.forgetRequestsBeforeMs).toBe(5001);
});

it('tells commands apart by everything they ask for', () => {
  const demand = demandOf({});
  const bind = { kind: 'bind', requestId: 'r', retries: true, demand } as const;
  const unbind = { kind: 'unbind', requestId: 'r', bindings: ['b1'], force: false } as const;
  const different = [
    bind,
    { ...bind, retries: false },
    ...Object.entries({
      gpus: 2,
      host: 'h2',
      model: 'm',
      memoryBytes: 1,
      sameBox: true,
      nvlink: true,
      boxKind: 'pcie',
      maxRttNs: 5,
    }).map(([key, value]) => ({ ...bind, demand: { ...demand, [key]: value } })),
    unbind,
    { ...unbind, force: true },
    { ...unbind, bindings: ['b1', 'b2'] },
    { kind: 'retry', requestId: 'r', bindings: ['b1'] } as const,
  ];
  const prints = different.map((command) => fingerprintOf(command));
  expect(new Set(prints).size).toBe(different.length);
  expect(fingerprintOf({ ...bind, requestId: 'other' })).toBe(prints[0]);
});
