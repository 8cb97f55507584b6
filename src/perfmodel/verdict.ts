/** Whether a workload keeps its budget, in one word and one sentence. */
import type { Prediction } from './prediction.ts';

type Verdict = Prediction['verdict'];

/**
 * By the replay where there is one, `unsure` where its range straddles the budget or where the two
 * estimates disagree and the replay is not of high confidence. The additive estimate is an upper
 * bound of the replay: what it allows is allowed.
 */
export function verdictOf(
  budgetPct: number,
  additivePct: number | null,
  replay: Prediction['replay'],
): Verdict {
  const budget = `${text(budgetPct)} %`;
  if (additivePct === null) {
    return { budgetPct, within: 'unsure', text: 'The trace has no span to compare with.' };
  }
  if (additivePct <= budgetPct) {
    return {
      budgetPct,
      within: 'yes',
      text: `Within ${budget} even if nothing hides the round trips.`,
    };
  }
  if (replay === null) {
    return {
      budgetPct,
      within: 'unsure',
      text: `Over ${budget} by the additive estimate, which is an upper bound; a trace with host calls would tell more.`,
    };
  }
  const [low, high] = replay.rangePct;
  if (low > budgetPct) return { budgetPct, within: 'no', text: `Over ${budget}.` };
  if (high > budgetPct) {
    return {
      budgetPct,
      within: 'unsure',
      text: `Between ${text(low)} and ${text(high)} %, depending on dependencies the trace does not record.`,
    };
  }
  if (replay.confidence === 'high') {
    return { budgetPct, within: 'yes', text: `Within ${budget}: most round trips hide.` };
  }
  return {
    budgetPct,
    within: 'unsure',
    text: `Within ${budget} by the replay, whose confidence is ${replay.confidence}; over it by the additive estimate.`,
  };
}

function text(percent: number): string {
  return String(Number(percent.toFixed(1)));
}
