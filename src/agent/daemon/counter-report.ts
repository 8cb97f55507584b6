/** Counters as `dxpu status` shows them: names instead of indexes, and only what is not zero. */
import { countsByKind, REFUSAL_NAMES, type SlotCounters } from '#fabric/counters';
import type { LinkCounters } from '#fabric/link-counters';

export interface CounterReport {
  readonly down: Readonly<Record<string, number>>;
  readonly up: Readonly<Record<string, number>>;
  readonly downPayloadBytes: number;
  readonly upPayloadBytes: number;
  readonly interrupts: number;
  /** Everything that was refused, dropped or answered with an error, by reason. */
  readonly faults: Readonly<Record<string, number>>;
}

export function reportCounters(counters: SlotCounters): CounterReport {
  const faults: Record<string, number> = {};
  const note = (name: string, count: number): void => {
    if (count > 0) faults[name] = count;
  };
  note('stale-non-posted', counters.staleNonPosted);
  note('stale-posted', counters.stalePosted);
  note('stale-completions', counters.staleCompletions);
  note('unexpected-completions', counters.unexpectedCompletions);
  note('malformed', counters.malformed);
  note('ecrc', counters.ecrc);
  note('unroutable', counters.unroutable);
  note('dropped', counters.dropped);
  note('aborted', counters.aborted);
  for (const [index, name] of REFUSAL_NAMES.entries()) {
    note(`refused-${name}`, counters.refused[index] ?? 0);
  }
  return {
    down: countsByKind(counters.down),
    up: countsByKind(counters.up),
    downPayloadBytes: counters.downPayloadBytes,
    upPayloadBytes: counters.upPayloadBytes,
    interrupts: counters.interrupts,
    faults,
  };
}

/** How a link stands. */
interface LinkState {
  readonly peer: string;
  readonly state: string;
  /** 0 for none. */
  readonly sessionId: number;
  /** The one in use, or tried next, of those that know their paths. */
  readonly path?: string | undefined;
  /** While there is no connection: what was in the way of the last one. */
  readonly problem?: string | undefined;
}

export interface LinkReport extends LinkState {
  readonly rttLastNs: number;
  readonly rttMinNs: number;
  readonly rttMeanNs: number;
  readonly rttCount: number;
  readonly counters: Readonly<Record<string, unknown>>;
}

export function reportLink(state: LinkState, counters: LinkCounters): LinkReport {
  const { rttLastNs, rttMinNs, rttCount, rttSumNs: _sum, ...rest } = counters;
  const { rttMeanNs } = counters;
  return { ...state, rttLastNs, rttMinNs, rttMeanNs, rttCount, counters: rest };
}
