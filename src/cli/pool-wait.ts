/** Waiting for bindings: until all are where they shall be, one is stuck, or the time is up. */
import { type Binding, BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { printNote } from './output.ts';
import { lossText, type PoolConnection } from './pool-connection.ts';
import { bindingState } from './pool-columns.ts';
import { followLog } from './pool-log.ts';
import type { Deadline } from './pool-request.ts';

export type WaitGoal = 'attached' | 'free';

export interface WaitResult {
  /** As they were last, in the order given. */
  readonly bindings: readonly Binding[];
  readonly end: 'reached' | 'stuck' | 'late' | 'interrupted';
  /** Why the manager could not be asked at the end, where it could not. */
  readonly lost: string | undefined;
}

/**
 * Follows `bindings`, as the manager's answer to a request had them, from the log behind `position`,
 * which was read before the request. A binding that failed and will be tried again is waited for; one
 * that will not ends the waiting.
 */
export async function waitForBindings(
  pool: PoolConnection,
  bindings: readonly Binding[],
  position: number,
  goal: WaitGoal,
  deadline: Deadline,
): Promise<WaitResult> {
  const waiting = new Waiting(bindings, goal);
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), deadline.leftMs);
  let interrupted = false;
  const onSignal = (): void => {
    interrupted = true;
    stop.abort();
  };
  process.once('SIGINT', onSignal);
  const progress = new ProgressLine();
  let lost: string | undefined;
  const [only] = bindings;
  try {
    progress.show(waiting.summary());
    if (waiting.end === undefined) {
      const log = followLog(pool, {
        after: position,
        follow: true,
        signal: stop.signal,
        ...(bindings.length === 1 && only !== undefined ? { binding: only.id } : {}),
        onLost: (error) => {
          lost = lossText(error, pool);
          progress.note(`${lost}; waiting for it`);
        },
        onResumed: () => {
          lost = undefined;
        },
      });
      for await (const { entry } of log) {
        if (entry?.binding === undefined) continue;
        waiting.take(entry.binding);
        progress.show(waiting.summary());
        if (waiting.end !== undefined) break;
      }
    }
  } catch (error) {
    if (!stop.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
    process.removeListener('SIGINT', onSignal);
    progress.clear();
    stop.abort();
  }
  return {
    bindings: waiting.bindings,
    end: waiting.end ?? (interrupted ? 'interrupted' : 'late'),
    lost,
  };
}

class Waiting {
  readonly #bindings: Map<string, Binding>;
  readonly #goal: WaitGoal;

  constructor(bindings: readonly Binding[], goal: WaitGoal) {
    this.#bindings = new Map(bindings.map((binding) => [binding.id, binding]));
    this.#goal = goal;
  }

  get bindings(): readonly Binding[] {
    return [...this.#bindings.values()];
  }

  /** What an entry of the log says; those from before the answer are behind it. */
  take(binding: Binding): void {
    const known = this.#bindings.get(binding.id);
    if (known === undefined || changedMs(binding) < changedMs(known)) return;
    this.#bindings.set(binding.id, binding);
  }

  get end(): 'reached' | 'stuck' | undefined {
    const { bindings } = this;
    if (bindings.every((binding) => hasReached(binding, this.#goal))) return 'reached';
    return bindings.some((binding) => isStuck(binding, this.#goal)) ? 'stuck' : undefined;
  }

  /** `1 attached, 2 attaching`. */
  summary(): string {
    const counts = new Map<string, number>();
    for (const binding of this.bindings) {
      const state = bindingState(binding);
      counts.set(state, (counts.get(state) ?? 0) + 1);
    }
    return [...counts].map(([state, count]) => `${count} ${state}`).join(', ');
  }
}

function hasReached({ state, leaving }: Binding, goal: WaitGoal): boolean {
  if (goal === 'free') return state === BindingState.FREE;
  return state === BindingState.ATTACHED && !leaving;
}

/** What does not get where it should without somebody's help. */
export function isStuck(binding: Binding, goal: WaitGoal): boolean {
  if (goal === 'attached' && (binding.leaving || binding.state === BindingState.FREE)) return true;
  if (goal === 'free' && (isLettingGo(binding) || isAskedBack(binding))) return false;
  return binding.state === BindingState.FAILED && binding.failure?.retries !== true;
}

/** Of a slot that was quarantined under it: it is free once both slots are empty, which takes a moment. */
function isLettingGo({ leaving, failure }: Binding): boolean {
  const isQuarantined = failure?.reason === 'quarantined';
  return leaving && isQuarantined && failure.during !== BindingState.SCRUBBING;
}

/** With this very answer: no attempt since. What comes of it the log will say. */
function isAskedBack({ leaving, failure }: Binding): boolean {
  return leaving && failure?.attempts === 0;
}

const changedMs = ({ changed }: Binding): number =>
  changed === undefined ? 0 : timestampMs(changed);

/** One line on stderr that overwrites itself; nothing where nobody looks on. */
class ProgressLine {
  readonly #isShown = process.stderr.isTTY === true;

  show(text: string): void {
    if (this.#isShown) process.stderr.write(`\r\u001B[K${text}`);
  }

  note(text: string): void {
    this.clear();
    printNote(text);
  }

  clear(): void {
    if (this.#isShown) process.stderr.write('\r\u001B[K');
  }
}
