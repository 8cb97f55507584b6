import { describe, expect, it } from 'vitest';
import { type LinkScenarioOptions, runLinkScenario } from '#testkit/link-scenario';

/** Seeds whose run went wrong, each with what did. */
function failures(count: number, options: LinkScenarioOptions): string[] {
  const found: string[] = [];
  for (let seed = 1; seed <= count; seed++) {
    const wrong = runLinkScenario(seed, options);
    if (wrong !== undefined) found.push(`seed ${seed}: ${wrong}`);
  }
  return found;
}

describe('invariant 6b: nothing lost, twice or out of order while a session lives', () => {
  it('under loss, duplication, reordering, cuts and reconnects', () => {
    expect(failures(200, {})).toEqual([]);
  });
});

describe('invariant 6c: a session that ends loses a tail of each class, never a middle', () => {
  it('with cuts beyond the resume window and host processes replaced', () => {
    expect(failures(200, { sessionsMayEnd: true })).toEqual([]);
  });
});

describe('invariant 7: posted requests and completions never wait behind non-posted', () => {
  it('while the receiver gives no non-posted credit back', () => {
    expect(failures(150, { nonPostedStuck: true })).toEqual([]);
  });
});

describe('each check, left out, is missed', () => {
  const found = (options: LinkScenarioOptions): RegExp | string => {
    for (let seed = 1; seed <= 200; seed++) {
      const wrong = runLinkScenario(seed, options);
      if (wrong !== undefined) return wrong;
    }
    return 'nothing found';
  };
  it.each([
    ['duplicate filter', { noDuplicateFilter: true }, {}],
    ['sequence check', { noSequenceCheck: true }, {}],
    ['waiting for credit', { noCreditWait: true }, {}],
    ['credit, at both ends', { noCreditWait: true, noCreditCheck: true }, {}],
    ['ordering table', { noOrdering: true }, {}],
    ['a queue per class', { headOfLine: true }, { nonPostedStuck: true }],
    ['replay on resume', { noReplay: true }, {}],
  ])('%s', (_name, faults, options) => {
    const wrong = found({ ...options, faults });
    console.log(_name, wrong);
    expect(wrong).not.toBe('nothing found');
  });
});
