import { describe, expect, it } from 'vitest';
import { type LinkScenarioOptions, runLinkScenario } from '#testkit/link-scenario';
import type { LinkCounters } from './link-counters.ts';

interface Outcome {
  /** Seeds whose run went wrong, each with what did: `runLinkScenario` replays it. */
  readonly failures: string[];
  readonly counters: LinkCounters[];
}

function runSeeds(count: number, options: LinkScenarioOptions): Outcome {
  const outcome: Outcome = { failures: [], counters: [] };
  for (let seed = 1; seed <= count; seed++) {
    const { wrong, counters } = runLinkScenario(seed, options);
    outcome.counters.push(...counters);
    if (wrong !== undefined) outcome.failures.push(`seed ${seed}: ${wrong}`);
  }
  return outcome;
}

function total(counters: LinkCounters[], of: (each: LinkCounters) => number): number {
  return counters.reduce((sum, each) => sum + of(each), 0);
}

describe('invariant 6b: nothing lost, twice or out of order while a session lives', () => {
  it('under loss, duplication, reordering, cuts and reconnects', () => {
    const { failures, counters } = runSeeds(200, {});
    expect(failures).toEqual([]);
    // It was no fair-weather run.
    expect(total(counters, (each) => each.resumes)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.replayedFrames)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.duplicatesDropped)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.outOfOrderDropped)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.naksReceived)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.ackQuestions)).toBeGreaterThan(200);
    expect(total(counters, (each) => each.replayStalls)).toBeGreaterThan(20);
    for (const flow of [0, 1, 2] as const) {
      expect(total(counters, (each) => each.creditStalls[flow])).toBeGreaterThan(20);
    }
  });
});

describe('invariant 6c: a session that ends loses a tail of each class, never a middle', () => {
  it('with cuts beyond the resume window and host processes replaced', () => {
    const { failures, counters } = runSeeds(200, { sessionsMayEnd: true });
    expect(failures).toEqual([]);
    expect(total(counters, (each) => each.sessionsLost)).toBeGreaterThan(100);
  });
});

describe('invariant 7: posted requests and completions never wait behind non-posted', () => {
  it('while the receiver gives no non-posted credit back', () => {
    const { failures, counters } = runSeeds(150, { nonPostedStuck: true });
    expect(failures).toEqual([]);
    expect(total(counters, (each) => each.creditStalls[1])).toBeGreaterThan(50);
  });
});

describe('each check, left out, is missed', () => {
  it.each<[string, RegExp, LinkScenarioOptions]>([
    ['duplicate filter', /delivered twice/, { faults: { noDuplicateFilter: true } }],
    ['sequence check', /never arrived/, { faults: { noSequenceCheck: true } }],
    ['waiting for credit', /without credit/, { faults: { noCreditWait: true } }],
    [
      'credit, at both ends',
      /more than the window/,
      { faults: { noCreditWait: true, noCreditCheck: true } },
    ],
    ['ordering table', /must not overtake/, { faults: { noOrdering: true } }],
    ['a queue per class', /never arrived/, { faults: { headOfLine: true }, nonPostedStuck: true }],
    ['replay on resume', /never arrived/, { faults: { noReplay: true } }],
  ])('%s', (_name, finding, options) => {
    let found = '';
    for (let seed = 1; seed <= 200 && !finding.test(found); seed++) {
      found = runLinkScenario(seed, options).wrong ?? '';
    }
    expect(found).toMatch(finding);
  });
});
