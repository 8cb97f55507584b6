/**
 * The life of a binding as a table. For the state a binding is in, the rows are tried in order and the
 * first whose `when` holds is taken; that is all the reconciler does. A new step is a new row here, and
 * tests and crash points, which are generated from the table, reach it by themselves.
 */
import { appendTo } from '#base/append-to';
import {
  hasNothingToDrain,
  isContained,
  isEmptied,
  isInForce,
  isLost,
  type Observation,
} from './observation.ts';
import type { BindingState, FailureReason } from './records.ts';

export interface Transition {
  /** Stable and unique: `programming>attaching`, `attached>failed(link-down)`. */
  readonly name: string;
  readonly from: BindingState;
  /** `free`: the record goes. */
  readonly to: BindingState | 'free';
  /** Of rows to `failed`, and of them alone. */
  readonly reason: FailureReason | undefined;
  /** For people. */
  readonly condition: string;
  readonly when: (seen: Observation) => boolean;
}

/** The step of a command, which makes the record: the one that is not a row. */
export const FIRST_TRANSITION = 'free>reserved';

type When = Transition['when'];

function step(
  from: BindingState,
  to: BindingState | 'free',
  condition: string,
  when: When,
): Transition {
  return { name: `${from}>${to}`, from, to, reason: undefined, condition, when };
}

function failures(
  from: readonly BindingState[],
  reason: FailureReason,
  condition: string,
  when: When,
): readonly Transition[] {
  return from.map((state) => ({
    name: `${state}>failed(${reason})`,
    from: state,
    to: 'failed',
    reason,
    condition,
    when,
  }));
}

function timeout(from: readonly BindingState[], reason: FailureReason): readonly Transition[] {
  return failures(from, reason, 'the time is over', ({ expired }) => expired);
}

/** Something a proxy holds for the binding can be lost in these. */
const WITH_ROWS = ['programming', 'attaching', 'attached', 'draining'] as const;

/** What ends a binding's step whatever else there is to see: these rows come first. */
const FACTS: readonly Transition[] = [
  ...failures(
    ['reserved', ...WITH_ROWS],
    'node-gone',
    'its GPU node is not in the slot any more',
    ({ box }) => !box.nodeThere,
  ),
  ...failures(
    ['reserved', ...WITH_ROWS, 'scrubbing'],
    'quarantined',
    'the box has quarantined the slot',
    ({ box }) => box.connected && box.quarantine !== '',
  ),
  ...failures(
    WITH_ROWS,
    'box-restarted',
    'another process reports for the box, without the row',
    ({ box }) => box.restarted && box.row !== 'own',
  ),
  ...failures(
    WITH_ROWS,
    'host-restarted',
    'another process reports for the host, without the row',
    ({ host }) => host.restarted && host.row !== 'own',
  ),
  ...failures(
    ['programming', 'attaching', 'attached'],
    'row-lost',
    'a proxy does not hold the row any more, or holds another',
    ({ box, host, superseded }) => isLost(box) || isLost(host) || superseded,
  ),
  // A host without the row has nothing to let go.
  ...failures(
    ['draining'],
    'row-lost',
    'the box does not hold the row any more, or holds another',
    ({ box }) => isLost(box),
  ),
  ...failures(
    ['attaching', 'attached'],
    'link-down',
    'one of the two proxies has contained the slot',
    isContained,
  ),
];

const STEPS: readonly Transition[] = [
  step('reserved', 'free', 'it is given back: nobody was told yet', ({ goal }) => goal === 'free'),
  step(
    'reserved',
    'programming',
    'both agents are there, both slots confirmed empty, the GPU node clean',
    ({ box, host }) => isEmptied(box) && box.clean && isEmptied(host),
  ),
  step('programming', 'detaching', 'it is given back', ({ goal }) => goal === 'free'),
  ...failures(
    ['programming', 'attaching'],
    'order-refused',
    'a proxy could not put the order in force',
    ({ box, host }) => box.refused !== '' || host.refused !== '',
  ),
  step(
    'programming',
    'attaching',
    'both proxies report the row',
    ({ box, host }) => isInForce(box) && isInForce(host),
  ),
  step('attaching', 'draining', 'it is given back', ({ goal }) => goal === 'free'),
  step('attached', 'draining', 'it is given back', ({ goal }) => goal === 'free'),
  ...failures(
    ['attaching', 'attached'],
    'no-space',
    'the host found no place for the BARs',
    ({ host }) => host.row === 'own' && host.problem?.kind === 'no-space',
  ),
  ...failures(
    ['attaching', 'attached'],
    'function-unusable',
    'the host cannot use the function',
    ({ host }) => host.row === 'own' && host.problem !== undefined,
  ),
  step(
    'attaching',
    'attached',
    'the host reports the function with final BARs inside its windows',
    ({ host }) => host.row === 'own' && host.ready && host.function === 'final',
  ),
  step(
    'draining',
    'detaching',
    'the host has let go, or cannot be waited for: force, no row, contained',
    (seen) => seen.force || hasNothingToDrain(seen),
  ),
  step(
    'detaching',
    'scrubbing',
    'the host confirms that its row is gone (with force, if it is there), then the box does',
    ({ force, box, host }) => (host.released || (force && !host.connected)) && isEmptied(box),
  ),
  step(
    'scrubbing',
    'free',
    'the box confirms that the slot is clean, or that its GPU node has left',
    ({ box }) => isEmptied(box) && (box.clean || !box.nodePresent),
  ),
];

const TIMEOUTS: readonly Transition[] = [
  ...timeout(['draining'], 'drain-timeout'),
  ...failures(
    ['reserved', 'programming', 'attaching', 'detaching', 'scrubbing'],
    'box-unreachable',
    'the time is over, and the agent of the box is not there',
    ({ expired, box }) => expired && !box.connected,
  ),
  ...failures(
    ['reserved', 'programming', 'attaching'],
    'host-unreachable',
    'the time is over, and the agent of the host is not there',
    ({ expired, host }) => expired && !host.connected,
  ),
  ...failures(
    ['detaching'],
    'host-unreachable',
    'the time is over, and the agent of the host is not there',
    ({ expired, force, host }) => expired && !force && !host.connected && !host.released,
  ),
  ...timeout(['reserved', 'programming'], 'programming-timeout'),
  ...timeout(['attaching'], 'attaching-timeout'),
  ...timeout(['detaching'], 'detaching-timeout'),
  ...timeout(['scrubbing'], 'scrubbing-timeout'),
];

/** A failed binding waits for what will not come: it says so, and waits to be asked. */
const WORSE: readonly Transition[] = [
  ...failures(
    ['failed'],
    'node-gone',
    'it shall be attached again, and its GPU node is not in the slot any more',
    ({ goal, failure, box }) =>
      goal === 'attached' && failure?.reason !== 'node-gone' && !box.nodeThere,
  ),
  ...failures(
    ['failed'],
    'quarantined',
    'it shall be attached again, and the box has quarantined the slot',
    ({ goal, failure, box }) =>
      goal === 'attached' &&
      failure?.reason !== 'quarantined' &&
      box.nodeThere &&
      box.connected &&
      box.quarantine !== '',
  ),
];

const WAYS_OUT: readonly Transition[] = [
  step(
    'failed',
    'programming',
    'it shall be attached again, both slots are confirmed empty, the GPU node is clean, and it has waited',
    ({ goal, retryAllowed, retryAsked, expired, box, host }) =>
      goal === 'attached' &&
      (retryAsked || (retryAllowed && expired)) &&
      isEmptied(box) &&
      box.clean &&
      box.nodeThere &&
      box.quarantine === '' &&
      isEmptied(host),
  ),
  step(
    'failed',
    'draining',
    'after drain-timeout, it is asked back again',
    ({ goal, failure, unbindAsked, force }) =>
      goal === 'free' && failure?.reason === 'drain-timeout' && unbindAsked && !force,
  ),
  step(
    'failed',
    'free',
    'after quarantined, it is given back and both slots are confirmed empty',
    ({ goal, failure, unbindAsked, force, box, host }) =>
      goal === 'free' &&
      failure?.reason === 'quarantined' &&
      (unbindAsked || failure.during !== 'scrubbing') &&
      isEmptied(box) &&
      (isEmptied(host) || (force && !host.connected)),
  ),
  step('failed', 'detaching', 'it is given back', mayDetach),
];

export const TRANSITIONS: readonly Transition[] = [
  ...FACTS,
  ...STEPS,
  ...TIMEOUTS,
  ...WORSE,
  ...WAYS_OUT,
];

const BY_STATE = new Map<BindingState, Transition[]>();
for (const row of TRANSITIONS) appendTo(BY_STATE, row.from, row);

/** The step that is due for a binding in `state`, or `undefined` when it stays. */
export function nextTransition(state: BindingState, seen: Observation): Transition | undefined {
  for (const row of BY_STATE.get(state) ?? []) if (row.when(seen)) return row;
  return undefined;
}

function mayDetach(seen: Observation): boolean {
  const { goal, failure, unbindAsked, force, expired, box, host } = seen;
  if (goal !== 'free') return false;
  switch (failure?.reason) {
    case 'drain-timeout':
      // The function stays with the host's programs until somebody insists, or it is dead anyway.
      return (
        (unbindAsked && force) ||
        isContained(seen) ||
        isLost(box) ||
        !box.nodeThere ||
        (host.connected && host.row !== 'own')
      );
    case 'quarantined':
      return box.connected && box.quarantine === '';
    default: {
      const isRepetition = failure?.during === 'detaching' || failure?.during === 'scrubbing';
      if (!isRepetition || unbindAsked) return true;
      return expired && box.connected && (host.connected || host.released || force);
    }
  }
}
