/**
 * Conservation over random small workloads, pooled: bytes asked for are bytes moved, each request is
 * answered once, no tag stays taken, memory holds what it must, and a seed gives the same run again.
 */
import { describe, expect, it } from 'vitest';
import { checkedRandomRun } from '#testkit/random-run';

const RUNS = 1000;
const PER_TEST = 250;

describe('conservation', () => {
  it.each(Array.from({ length: RUNS / PER_TEST }, (_, index) => index * PER_TEST))(
    'of 250 workloads from seed %d on',
    (first) => {
      for (let seed = first; seed < first + PER_TEST; seed++) checkedRandomRun(seed);
    },
    60_000,
  );
});

it('the same seed gives the same run, to the bit', () => {
  for (let seed = 0; seed < 1000; seed += 50) {
    const [one, two] = [checkedRandomRun(seed), checkedRandomRun(seed)];
    expect(JSON.stringify(one)).toBe(JSON.stringify(two));
    expect(one.callEndNs).toEqual(two.callEndNs);
  }
});
