/**
 * Conservation over random small workloads, pooled: bytes asked for are bytes moved, each request is
 * answered once, no tag stays taken, memory holds what it must, and a seed gives the same run again.
 * `npm run soak -- emulate` does as many as one likes.
 */
import { expect, it } from 'vitest';
import { checkedRandomRun } from '#testkit/random-run';

const RUNS = 100;

it('conservation over random workloads', () => {
  for (let seed = 0; seed < RUNS; seed++) checkedRandomRun(seed);
}, 60_000);

it('the same seed gives the same run, to the bit', () => {
  for (let seed = 1000; seed < 1010; seed++) {
    const [one, two] = [checkedRandomRun(seed), checkedRandomRun(seed)];
    expect(JSON.stringify(one)).toBe(JSON.stringify(two));
    expect(one.callEndNs).toEqual(two.callEndNs);
  }
});
