import { describe, expect, it } from 'vitest';
import { sceneTimeline } from '#testkit/trace-scene';
import type { Evidence } from './confidence.ts';
import { droppedPct, gradeOf } from './confidence.ts';
import type { Prediction } from './prediction.ts';
import { verdictOf } from './verdict.ts';

const GOOD: Evidence = {
  selfErrorPct: 0,
  residualPct: 5,
  unexplainedPct: 5,
  violationsPct: 0,
  unlaunchedPct: 0,
  droppedPct: 0,
  rangePct: [4, 4],
  hasStacks: false,
};

describe('gradeOf', () => {
  it('is high when nothing speaks against it', () => {
    expect(gradeOf(GOOD)).toEqual({ confidence: 'high', confidenceReasons: [] });
  });

  // The table of docs/predict-model.md.
  it.each<[Partial<Evidence>, 'high' | 'medium' | 'low']>([
    [{ selfErrorPct: -1 }, 'high'],
    [{ selfErrorPct: -1.1 }, 'medium'],
    [{ selfErrorPct: 5.1 }, 'low'],
    [{ unexplainedPct: 15.1 }, 'medium'],
    [{ unexplainedPct: 40.1 }, 'low'],
    [{ residualPct: 50.1 }, 'medium'],
    [{ residualPct: 201 }, 'low'],
    [{ violationsPct: 2.1 }, 'medium'],
    [{ violationsPct: 10.1 }, 'low'],
    [{ unlaunchedPct: 5.1 }, 'medium'],
    [{ unlaunchedPct: 50.1 }, 'low'],
    [{ droppedPct: 0.2 }, 'medium'],
    [{ droppedPct: 5.1 }, 'low'],
    // 0.9 of 5 points; 1.1 of 5; 7 of 10.
    [{ rangePct: [0.1, 1] }, 'high'],
    [{ rangePct: [0, 1.1] }, 'medium'],
    [{ rangePct: [3, 10] }, 'low'],
    [{ hasStacks: true }, 'medium'],
  ])('%j: %s', (change, expected) => {
    const { confidence, confidenceReasons } = gradeOf({ ...GOOD, ...change });
    expect(confidence).toBe(expected);
    expect(confidenceReasons).toHaveLength(expected === 'high' ? 0 : 1);
  });

  it('names the worst first, and what to record', () => {
    const { confidence, confidenceReasons } = gradeOf({
      ...GOOD,
      unlaunchedPct: 7,
      unexplainedPct: 62,
    });
    expect(confidence).toBe('low');
    expect(confidenceReasons[0]).toMatch(/62 %.*record synchronisation/);
    expect(confidenceReasons[1]).toMatch(/7.0 %.*begin recording before/);
  });
});

describe('droppedPct', () => {
  it('counts what was dropped against what there was', () => {
    const timeline = sceneTimeline({
      threads: { a: [['cudaLaunchKernel', 0, 10, 1]] },
      streams: {
        s: [
          { at: 0, ns: 10, id: 1 },
          { at: 10, ns: -5 },
          { at: Number.NaN, ns: 5 },
        ],
      },
    });
    expect(droppedPct(timeline)).toBe(50);
  });
});

describe('verdictOf', () => {
  const replay = (
    overheadPct: number,
    confidence: 'high' | 'medium' | 'low',
    rangePct: [number, number] = [overheadPct, overheadPct],
  ) => ({ overheadPct, confidence, rangePct }) as NonNullable<Prediction['replay']>;

  it.each<[string, number | null, Prediction['replay'], 'yes' | 'no' | 'unsure']>([
    ['the upper bound is within', 9, replay(3, 'low'), 'yes'],
    ['without a replay, over', 30, null, 'unsure'],
    ['without a replay, within', 9, null, 'yes'],
    ['the whole range is over', 30, replay(12, 'low', [11, 12]), 'no'],
    ['the range straddles', 30, replay(12, 'high', [3, 12]), 'unsure'],
    ['the replay is within, and good', 30, replay(3, 'high'), 'yes'],
    ['the replay is within, but weak', 30, replay(3, 'medium'), 'unsure'],
    ['no span', null, null, 'unsure'],
  ])('%s', (_, additivePct, answer, within) => {
    const verdict = verdictOf(10, additivePct, answer);
    expect(verdict).toMatchObject({ budgetPct: 10, within });
    expect(verdict.text.length).toBeGreaterThan(5);
  });
});
