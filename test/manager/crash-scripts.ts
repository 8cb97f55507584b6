/**
 * Scenarios of agents that misbehave, which a scripted box and host do on demand: one binding for each
 * row of the table that no other scenario goes through, all in the step where it begins, and then what
 * the rows are about happens to all of them at once. Rows of a reason that is known here are reached
 * without a word more.
 */
import type { FailureReason } from '#manager/domain/records';
import { TRANSITIONS } from '#manager/domain/transitions';
import { AT_ONCE_MS, soonMs } from './crash-deadlines.ts';
import { around, type Scenario, scenario } from './crash-steps.ts';
import { ScriptedPair } from './scripted-agents.ts';
import { BOX_SAYS, HOST_SAYS } from './scripted-sayings.ts';
import { Stage } from './scripted-stage.ts';

interface Script {
  readonly name: string;
  readonly reasons: readonly FailureReason[];
  /** Beside those of the reasons. */
  readonly rows?: readonly string[];
  /** The manager dies at all of `points`, those of the reasons. */
  readonly act: (stage: Stage, points: readonly string[]) => Promise<void>;
  /** How it is left. Default: all comes to its goal. */
  readonly leave?: (stage: Stage) => Promise<void>;
}

const SCRIPTS: readonly Script[] = [
  {
    name: 'quarantined',
    reasons: ['quarantined'],
    rows: ['failed>free'],
    act: async ({ pool, pair: { box }, held }, points) => {
      await pool.crashAt(points, () => {
        for (const { boxSlot } of held) box.plane.says.set(boxSlot, BOX_SAYS.quarantined);
        box.changed();
      });
    },
    leave: async (stage) => {
      const { pool, pair, held } = stage;
      pair.host.plane.says.clear();
      pair.host.changed();
      // What is given back already goes by itself, unless its own scrub is what has failed.
      const isOver = held.filter(({ row }) => ['draining', 'detaching'].includes(row.from));
      await Promise.all(isOver.map(({ id }) => pool.user.isGone(id)));
      await stage.haveFailed(held.filter((one) => !isOver.includes(one)));
      const ids = (await stage.bindings()).map(({ id }) => id);
      await pool.crashAt(around(['failed>free']), () => pool.user.unbind(ids));
      await Promise.all(ids.map((id) => pool.user.isGone(id)));
      await pair.hasQuarantined(held.map(({ boxSlot }) => boxSlot));
      pair.box.restart();
      await stage.isEmpty();
    },
  },
  {
    name: 'row-lost',
    reasons: ['row-lost'],
    act: async ({ pool, pair: { box }, held }, points) => {
      await pool.crashAt(points, () => {
        for (const { row, boxSlot } of held) {
          // Of what was never in force only another row can be in the way.
          if (row.from === 'programming') box.plane.says.set(boxSlot, BOX_SAYS.another);
          else box.plane.lose(boxSlot);
        }
        box.changed();
      });
    },
  },
  {
    name: 'order-refused',
    reasons: ['order-refused'],
    act: async (stage, points) => {
      const { pool, pair } = stage;
      pair.box.plane.refusal = 'there is no room in the table';
      // A manager that is new orders everything anew.
      await pool.expire(points, {});
      await stage.haveFailed(stage.held);
    },
  },
  {
    name: 'functions with problems',
    reasons: ['no-space', 'function-unusable'],
    act: async (stage, points) => {
      const { pool, pair, held } = stage;
      await pool.crashAt(points, () => {
        for (const { row, hostSlot } of held) {
          const kind = row.reason === 'no-space' ? 'no-space' : 'not-ready';
          pair.host.plane.says.set(hostSlot, HOST_SAYS.problem(kind));
        }
        pair.host.changed();
      });
      await stage.haveFailed(held);
    },
  },
  {
    name: 'late boxes',
    reasons: ['programming-timeout', 'scrubbing-timeout'],
    act: async ({ pool }, points) => {
      const ms = soonMs(pool);
      await pool.expire(points, { reservedMs: ms, programmingMs: ms, scrubbingMs: ms });
    },
  },
  {
    name: 'boxes that leave',
    reasons: ['box-unreachable'],
    act: async ({ pool, pair: { box } }, points) => {
      box.disconnect();
      await pool.expire(points, { scrubbingMs: AT_ONCE_MS });
      box.connect();
    },
  },
];

/** Of all rows that none of `others` goes through, as far as a script is known for them. */
export function scripted(others: readonly Scenario[]): readonly Scenario[] {
  const covered = new Set(others.flatMap(({ rows }) => rows));
  return SCRIPTS.flatMap(({ name, reasons, rows = [], act, leave }) => {
    const own = TRANSITIONS.filter(
      ({ name: row, reason }) =>
        reason !== undefined && reasons.includes(reason) && !covered.has(row),
    );
    const names = own.map((row) => row.name);
    if (own.length === 0) return [];
    return scenario(
      [...names, ...rows],
      async (pool) => {
        const pair = await ScriptedPair.start(pool, name.replaceAll(' ', '-'));
        try {
          const stage = await Stage.set(pool, pair, own);
          await act(stage, around(names));
          await (leave === undefined ? stage.comesToItsGoal() : leave(stage));
        } finally {
          pair.end();
        }
      },
      name,
    );
  });
}
