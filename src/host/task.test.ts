import { describe, expect, it } from 'vitest';
import { TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import {
  currentTime,
  inScope,
  type Operation,
  type Outcome,
  Signal,
  sleep,
  type Task,
  TaskRunner,
  TaskScope,
  waitUntil,
} from './task.ts';

function world() {
  const clock = new VirtualClock();
  const runner = new TaskRunner(() => driver.update());
  const driver = new TimerDriver(clock, runner);
  const start = <T>(task: Task<T>, scope?: TaskScope) => {
    const result: { outcome: Outcome<T> | undefined } = { outcome: undefined };
    const done = (_now: Nanos, outcome: Outcome<T>) => {
      result.outcome = outcome;
    };
    runner.run(clock.now(), task, done, scope);
    return result;
  };
  return { clock, runner, start };
}

const gone = new DxpuError('unavailable', 'gone');

describe('a task', () => {
  it('waits, gets results, and ends with a value', () => {
    const { clock, runner, start } = world();
    const result = start(
      (function* () {
        const first = yield* currentTime();
        const second = yield* sleep(500);
        yield* sleep(0);
        return [first, second, yield* currentTime()];
      })(),
    );
    expect(runner.size).toBe(1);
    clock.runUntil(1000);
    expect(result.outcome).toEqual({ ok: true, value: [0, 500, 500] });
    expect(runner.size).toBe(0);
  });

  it('ends with what it throws, and with what an operation throws', () => {
    const { start } = world();
    const thrower = start(
      // biome-ignore lint/correctness/useYield: a task may end at once
      (function* (): Task<void> {
        throw gone;
      })(),
    );
    const broken: Operation = {
      start() {
        throw gone;
      },
    };
    const caught = start(
      (function* (): Task<string> {
        try {
          yield broken;
        } catch (error) {
          return (error as Error).message;
        }
        return 'no error';
      })(),
    );
    expect(thrower.outcome).toEqual({ ok: false, error: gone });
    expect(caught.outcome).toEqual({ ok: true, value: 'gone' });
  });

  it('loops over instant results without growing the stack', () => {
    const { start } = world();
    const result = start(
      (function* () {
        let rounds = 0;
        for (; rounds < 100_000; rounds++) yield* currentTime();
        return rounds;
      })(),
    );
    expect(result.outcome).toEqual({ ok: true, value: 100_000 });
  });

  it('ignores an operation that calls back twice', () => {
    const { start } = world();
    const twice: Operation = {
      start(now, _runner, finish) {
        finish(now, 1);
        finish(now, 2);
        return undefined;
      },
    };
    const result = start(
      (function* () {
        const first = yield twice;
        const second = yield twice;
        return [first, second];
      })(),
    );
    expect(result.outcome).toEqual({ ok: true, value: [1, 1] });
  });
});

describe('timers', () => {
  it('run in order of time, then of asking, and not when cancelled', () => {
    const { clock, runner } = world();
    const seen: string[] = [];
    runner.at(20, () => seen.push('b'));
    runner.at(10, () => seen.push('a'));
    runner.at(20, () => seen.push('c'));
    const cancel = runner.at(15, () => seen.push('never'));
    cancel();
    cancel();
    clock.runUntil(30);
    expect(seen).toEqual(['a', 'b', 'c']);
  });

  it('that are cancelled wake nobody and take no memory', () => {
    const { runner } = world();
    runner.at(5e9, () => {});
    for (let index = 0; index < 10_000; index++) runner.at(1e9 + index, () => {})();
    expect(runner.nextDeadlineNs()).toBe(5e9);
    for (let index = 0; index < 10_000; index++) runner.at(6e9 + index, () => {})();
    expect(runner.timerCount).toBeLessThan(200);
  });
});

describe('waitUntil', () => {
  it('looks at once, at signals, at polls, and a last time at the deadline', () => {
    const { clock, start } = world();
    const signal = new Signal();
    let value = 0;
    const times: number[] = [];
    const waitFor = (wanted: number, options: object) =>
      start(
        (function* () {
          const held = yield* waitUntil(() => value >= wanted, { withinNs: 1000, ...options });
          times.push(yield* currentTime());
          return held;
        })(),
      );
    const instant = waitFor(0, {});
    const signalled = waitFor(1, { signal });
    const polled = waitFor(1, { pollIntervalNs: 70 });
    const atDeadline = waitFor(1, {});
    const never = waitFor(2, { signal, pollIntervalNs: 70 });
    clock.runUntil(100);
    signal.notify(clock.now());
    expect(signalled.outcome).toBeUndefined();
    value = 1;
    signal.notify(clock.now());
    clock.runUntil(2000);
    for (const wait of [instant, signalled, polled, atDeadline]) {
      expect(wait.outcome).toEqual({ ok: true, value: true });
    }
    expect(never.outcome).toEqual({ ok: true, value: false });
    expect(times).toEqual([0, 100, 140, 1000, 1000]);
    expect(signal.listenerCount).toBe(0);
  });
});

describe('a scope', () => {
  it('ends every wait in it, lets finally blocks run, and fails what they wait for', () => {
    const { clock, start } = world();
    const scope = new TaskScope('function');
    const log: string[] = [];
    const result = start(
      (function* (): Task<void> {
        try {
          yield* sleep(1e9);
        } finally {
          log.push('tidied up');
          try {
            yield* sleep(1);
          } catch (error) {
            log.push((error as Error).message);
          }
        }
      })(),
      scope,
    );
    const outside = start(sleep(10));
    clock.runUntil(5);
    scope.end(clock.now(), gone);
    scope.end(clock.now(), new DxpuError('internal', 'too late'));
    expect(log).toEqual(['tidied up', 'gone']);
    expect(result.outcome).toEqual({ ok: false, error: gone });
    clock.runUntil(20);
    expect(outside.outcome).toEqual({ ok: true, value: 10 });
  });

  it('that has ended runs a task to its first wait', () => {
    const { start } = world();
    const scope = new TaskScope('function');
    scope.end(0 as Nanos, gone);
    expect(start(sleep(1), scope).outcome).toEqual({ ok: false, error: gone });
  });

  it('can end from inside an operation that finishes at once', () => {
    const { start } = world();
    const scope = new TaskScope('function');
    const ending: Operation = {
      start(now, _runner, finish) {
        scope.end(now, gone);
        finish(now, 'a result nobody may believe');
        return undefined;
      },
    };
    const result = start(
      (function* () {
        return yield ending;
      })(),
      scope,
    );
    expect(result.outcome).toEqual({ ok: false, error: gone });
  });

  it('inside another: each ends what is in it, and leaves no listener', () => {
    const { clock, start } = world();
    const [outer, inner] = [new TaskScope('outer'), new TaskScope('inner')];
    const result = start(
      (function* () {
        try {
          yield* inScope(inner, sleep(1e9));
        } catch {
          // The inner scope's end is not the outer one's.
        }
        return yield* sleep(100);
      })(),
      outer,
    );
    inner.end(clock.now(), gone);
    expect(result.outcome).toBeUndefined();
    clock.runUntil(100);
    expect(result.outcome).toEqual({ ok: true, value: 100 });
    expect(outer.ended.listenerCount + inner.ended.listenerCount).toBe(0);
  });
});
