import { isDeepStrictEqual } from 'node:util';

/** What the status of a proxy says, as far as tests with a VM look at it. */
export interface ProxyView {
  readonly slots: readonly SlotView[];
  readonly links: readonly LinkView[];
}

export interface SlotView {
  readonly slot: number;
  readonly counters: {
    /** TLPs that passed, by kind. */
    readonly down: Readonly<Record<string, number>>;
    readonly up: Readonly<Record<string, number>>;
    readonly interrupts: number;
    readonly faults: Readonly<Record<string, number>>;
  };
}

export interface LinkView {
  /** As `box b1`. */
  readonly peer: string;
  readonly sessionId: number;
  readonly counters: {
    readonly sessions: number;
    readonly connectionsLost: number;
    readonly resumes: number;
  };
}

/** What has passed between two looks; only what is not 0. */
export function passed(before: SlotView, after: SlotView): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const way of ['down', 'up'] as const) {
    for (const [kind, count] of Object.entries(after.counters[way])) {
      const more = count - (before.counters[way][kind] ?? 0);
      if (more !== 0) counts[`${way} ${kind}`] = more;
    }
  }
  return counts;
}

type Both = readonly [SlotView, SlotView];

/**
 * What has passed at both ends of a slot, once they say the same: a guest's kernel reads a register now and then.
 * Where they do not agree within 3 s, what they said last.
 */
export async function passedAtBoth(
  before: Both,
  look: () => Promise<Both>,
): Promise<[Record<string, number>, Record<string, number>]> {
  for (let looks = 0; ; looks++) {
    const now = await look();
    const both = [passed(before[0], now[0]), passed(before[1], now[1])] as const;
    if (isDeepStrictEqual(both[0], both[1]) || looks === 60) return [...both];
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
