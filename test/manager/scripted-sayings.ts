import type { BoxSlotReport, HostSlotReport } from '#proto/agent-messages';
import type { Saying } from './scripted-planes.ts';

/** What a box may say of a slot. */
export const BOX_SAYS = {
  /** Its scrub has not come to an end. */
  unclean: (is) => (is.row === undefined ? { ...is, clean: false } : is),
  /** Its row is not in force, whatever was ordered. */
  rowless: (is) =>
    is.row === undefined ? is : { ...is, row: undefined, state: 'unused', clean: false },
  /** Its scrub has failed. */
  quarantined: (is) => ({
    ...is,
    row: undefined,
    state: 'quarantined',
    clean: false,
    reason: 'its memory could not be scrubbed',
  }),
  /** It holds a row from long ago. */
  another: (is) => ({
    ...is,
    row: { host: 'h2', generation: 1 },
    state: 'ready',
    clean: false,
    reason: '',
  }),
} as const satisfies Record<string, Saying<BoxSlotReport>>;

/** What a host may say of a slot. */
export const HOST_SAYS = {
  /** It has not found the function. */
  blind: (is: HostSlotReport): HostSlotReport => ({ ...is, function: undefined }),
  /** It cannot use the function it has found; `kind` as of `HostSlotReport.problem`. */
  problem:
    (kind: string) =>
    (is: HostSlotReport): HostSlotReport => {
      if (is.row === undefined) return is;
      return { ...is, function: undefined, problem: { kind, message: 'or so the script says' } };
    },
} as const;
