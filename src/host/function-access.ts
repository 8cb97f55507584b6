/**
 * What enumeration and survey have in common: waiting until a function is ready, and believing nothing that
 * was read while accesses were not answered.
 */
import { VENDOR_ID } from './function-registers.ts';
import { configRead } from './host-operations.ts';
import type { EnumerationProblem } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import { currentTime, sleep, type Task } from './task.ts';

const HEADER_TYPE = 0x0c;

/** How often a function is looked at from the start because it was not answered for, and the pause. */
const TRIES = 4;
const PAUSE_NS = 1e9;
const REMOVAL_NOTICE_NS = 1e6;

export interface Failure {
  readonly ok: false;
  readonly problem: EnumerationProblem;
}

/**
 * An access that timed out reads all ones, which might pass for an answer (the end of a list, say): then
 * nothing found out is believed, and after `undo` it is tried again. A problem counts as the function's own
 * once there was time for its removal to be reported.
 */
export function* untilAnswered<R extends { readonly ok: boolean }>(
  host: SoftHost,
  virtualSlot: number,
  attempt: () => Task<R>,
  undo?: () => Task<void>,
): Task<R | Failure> {
  let result: R | Failure;
  for (let tries = 1; ; tries++) {
    const timeoutsBefore = host.timeoutsOf(virtualSlot);
    result = yield* attempt();
    if (host.timeoutsOf(virtualSlot) === timeoutsBefore) break;
    if (undo !== undefined) yield* undo();
    if (tries === TRIES) {
      const message = `slot ${virtualSlot}: config accesses were not answered in any of ${TRIES} tries`;
      result = { ok: false, problem: { kind: 'no-answer', message } };
      break;
    }
    yield* sleep(PAUSE_NS);
  }
  if (!result.ok) yield* leaveTimeForRemoval();
  return result;
}

/**
 * What was outstanding when a link goes down is answered just before the removal is reported, which says more
 * than the answer: a moment in which it may come, and end the scope.
 */
export function* leaveTimeForRemoval(): Task<void> {
  yield* sleep(REMOVAL_NOTICE_NS);
}

/**
 * Vendor and device ID of a function, as one word, once it is ready: within 60 s unless said otherwise. A
 * function with another header than type 0 is a problem.
 */
export function* identifyFunction(
  host: SoftHost,
  bdf: number,
  slotName: string,
  readyTimeoutNs = 60e9,
): Task<number | EnumerationProblem> {
  const identity = yield* waitUntilReady(host, bdf, slotName, readyTimeoutNs);
  if (typeof identity !== 'number') return identity;
  const headerType = ((yield* configRead(host, bdf, HEADER_TYPE)) >>> 16) & 0x7f;
  if (headerType === 0) return identity;
  return {
    kind: 'config-error',
    message: `${slotName} holds a function with header type ${headerType}, expected 0`,
  };
}

/** Reads vendor and device ID until they are not "retry" (0x0001), with growing pauses. */
function* waitUntilReady(
  host: SoftHost,
  bdf: number,
  slotName: string,
  timeoutNs: number,
): Task<number | EnumerationProblem> {
  const startedNs = yield* currentTime();
  let pauseNs = 1e6;
  for (;;) {
    const value = yield* configRead(host, bdf, VENDOR_ID);
    if (value === 0xffff_ffff || value === 0) {
      return { kind: 'no-device', message: `nothing answers in ${slotName}` };
    }
    if ((value & 0xffff) !== 1) return value;
    const waitedNs = (yield* currentTime()) - startedNs;
    if (waitedNs >= timeoutNs) {
      return {
        kind: 'not-ready',
        message: `the function in ${slotName} still asks for retry after ${waitedNs / 1e9} s`,
        waitedNs,
      };
    }
    yield* sleep(Math.min(pauseNs, timeoutNs - waitedNs));
    pauseNs = Math.min(2 * pauseNs, 1e9);
  }
}
