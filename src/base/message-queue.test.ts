import { expect, it } from 'vitest';
import { MessageQueue } from './message-queue.ts';

it('gives what is pushed in order, before and after it is asked, and ends behind it', async () => {
  const queue = new MessageQueue<number>(10, () => {});
  queue.push(1);
  queue.push(2);
  const taken: number[] = [];
  const taking = (async () => {
    for await (const message of queue) {
      taken.push(message);
      // While the first are being taken, and when it waits.
      if (message === 1) queue.push(3);
      if (message === 3) setImmediate(() => queue.push(4));
      if (message === 4) queue.end();
    }
  })();
  await taking;
  queue.push(5);
  expect(taken).toEqual([1, 2, 3, 4]);
});

it('says when more wait than may', () => {
  let full = 0;
  const queue = new MessageQueue<number>(2, () => full++);
  for (const message of [1, 2]) queue.push(message);
  expect(full).toBe(0);
  queue.push(3);
  expect(full).toBe(1);
});

it('ends with an error behind what waits, when it is given one', async () => {
  const queue = new MessageQueue<number>(10, () => {});
  queue.push(1);
  queue.end(new Error('the first'));
  queue.end();
  const taken: number[] = [];
  const taking = (async () => {
    for await (const message of queue) taken.push(message);
  })();
  await expect(taking).rejects.toThrow('the first');
  expect(taken).toEqual([1]);
});
