/**
 * Whole pools in virtual time, one for each seed, with connections cut, frames lost, duplicated and
 * reordered, and processes killed at any step: none of the invariants 2, 3, 6b, 6c, 7 and 8 of the
 * design is ever violated.
 */
import { expect } from 'vitest';
import { testSeeds } from '../campaign/campaign-tests.ts';
import { FAULT_WORLDS } from './fault-world.ts';

export function testFaultWorlds(first: number, last: number): void {
  testSeeds(FAULT_WORLDS, first, last, {
    judge: (counts, seeds) => {
      // On average at least one in two worlds, and far more of what happens all the time.
      for (const name of ['sessionsEnded', 'resumes', 'cuts', 'kills', 'stalls'] as const) {
        expect(counts[name], name).toBeGreaterThan(seeds / 2);
      }
      expect(counts.moves, 'moves').toBeGreaterThan(seeds / 10);
      expect(counts.spared, 'spared').toBeGreaterThan(seeds / 50);
      expect(counts.runs, 'runs').toBeGreaterThan(seeds);
      for (const name of ['attacks', 'forgeries', 'stale', 'sgemms', 'interrupts'] as const) {
        expect(counts[name], name).toBeGreaterThan(5 * seeds);
      }
    },
    told: (counts) => ({ counts }),
  });
}
