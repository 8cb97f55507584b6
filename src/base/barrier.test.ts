import { expect, it } from 'vitest';
import { Barrier } from './barrier.ts';
import { nanos } from './units.ts';

const NOW = nanos(0);

it('holds back what waits until all that began before it has ended, in order', () => {
  const barrier = new Barrier();
  const log: string[] = [];
  expect(barrier.isOpen).toBe(true);
  const first = barrier.begin();
  barrier.wait(() => log.push('behind first'));
  const second = barrier.begin();
  barrier.wait(() => log.push('behind both'));
  barrier.ended(NOW, second);
  expect(log).toEqual([]);
  barrier.ended(NOW, first);
  expect(log).toEqual(['behind first', 'behind both']);
  expect(barrier.isOpen).toBe(true);
});

it('lets nobody past who waits, and counts what begins while it runs them', () => {
  const barrier = new Barrier();
  const log: string[] = [];
  const first = barrier.begin();
  let second = 0;
  barrier.wait(() => {
    log.push(`a, open: ${barrier.isOpen}`);
    second = barrier.begin();
    barrier.wait(() => log.push('behind second'));
  });
  barrier.wait(() => log.push('b'));
  barrier.ended(NOW, first);
  expect(log).toEqual(['a, open: false', 'b']);
  barrier.ended(NOW, second);
  expect(log).toEqual(['a, open: false', 'b', 'behind second']);
});

it('forgets what waits', () => {
  const barrier = new Barrier();
  const serial = barrier.begin();
  barrier.wait(() => expect.unreachable());
  barrier.clear();
  expect(barrier.isOpen).toBe(true);
  barrier.ended(NOW, serial);
});
