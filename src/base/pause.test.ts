import { expect, it } from 'vitest';
import { Pause } from './pause.ts';
import { nanos } from './units.ts';
import { VirtualClock } from './virtual-clock.ts';

async function settled(): Promise<void> {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
}

it('lasts for its time, or until it is ended; the next one is a new one', async () => {
  const clock = new VirtualClock();
  const pause = new Pause();
  const ends: string[] = [];
  const begin = (name: string, ns: number): void => {
    void pause.for(clock, ns).then(() => ends.push(`${name} at ${clock.now()}`));
  };
  pause.end();
  begin('first', 100);
  begin('second', 300);
  clock.runUntil(nanos(100));
  await settled();
  expect(ends).toEqual(['first at 100']);
  clock.runUntil(nanos(200));
  pause.end();
  await settled();
  expect(ends).toEqual(['first at 100', 'second at 200']);
  begin('third', 300);
  // What was ended ends no more.
  clock.runUntil(nanos(400));
  await settled();
  expect(ends).toHaveLength(2);
  clock.runUntil(nanos(500));
  await settled();
  expect(ends.at(-1)).toBe('third at 500');
});
