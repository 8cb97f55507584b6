/** Reports that cannot be true, or break the contract, whoever sends them: they end their stream. */
import type { AgentReport } from '#proto/agent-messages';

/** Slots are numbered as on the wire of the fabric. */
const MAX_SLOT = 0xffff;
/** No store is restored from a copy that is this many generations old. */
const MOST_GENERATIONS_AHEAD = 2 ** 40;

export interface ReportContext {
  readonly kind: AgentReport['kind'];
  /** No report came in this stream yet. */
  readonly isFirst: boolean;
  /** It has shown generations ahead of the counter before, and the counter has jumped. */
  readonly hasRaised: boolean;
  /** Of the orders sent in this stream, and of the newest reported in force. */
  readonly revision: number;
  readonly applied: number;
  /** The highest generation given out. */
  readonly generation: number;
}

/** What is wrong with the report, or `undefined`. */
export function reportFault(report: AgentReport, context: ReportContext): string | undefined {
  const { kind, isFirst, hasRaised, revision, applied, generation } = context;
  if (report.kind !== kind) return `a ${kind} sent the report of a ${report.kind}`;
  if (isFirst && !report.whole) return 'the first report of a stream must be a whole one';
  if (!Number.isSafeInteger(report.applied) || report.applied < applied) {
    return `order ${report.applied} cannot be in force after order ${applied} was`;
  }
  if (report.applied > revision) {
    return `order ${report.applied} cannot be in force: ${revision} is the newest that was sent`;
  }
  const isNeverGiven = (reported: number): boolean =>
    reported > generation &&
    (!isFirst || hasRaised || reported > generation + MOST_GENERATIONS_AHEAD);
  const { highestGeneration: claimed = 0 } = report;
  if (!Number.isSafeInteger(claimed) || claimed < 0 || isNeverGiven(claimed)) {
    return `generation ${claimed} was never given out, the highest is ${generation}`;
  }
  const seen = new Set<number>();
  for (const { slot, row } of report.slots) {
    if (!Number.isSafeInteger(slot) || slot < 0 || slot > MAX_SLOT)
      return `there is no slot ${slot}`;
    if (seen.has(slot)) return `slot ${slot} is reported twice`;
    seen.add(slot);
    if (row === undefined) continue;
    const reported = row.generation;
    if (!Number.isSafeInteger(reported) || reported < 1) {
      return `slot ${slot}: ${reported} is no generation`;
    }
    if (isNeverGiven(reported)) {
      return `slot ${slot}: generation ${reported} was never given out, the highest is ${generation}`;
    }
  }
  return undefined;
}

/** The highest generation in a report; 0 when there is none. */
export function highestGeneration(report: AgentReport): number {
  let highest = report.highestGeneration ?? 0;
  for (const { row } of report.slots) {
    if (row !== undefined && row.generation > highest) highest = row.generation;
  }
  return highest;
}
