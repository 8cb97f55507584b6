import { describe, expect, it } from 'vitest';
import { AssertionError } from './assert.ts';
import { ClockEvent } from './clock-queue.ts';
import { type Timed, TimerDriver } from './clock.ts';
import { type Nanos, nanos } from './units.ts';
import { VirtualClock } from './virtual-clock.ts';

describe('VirtualClock', () => {
  it('runs events by time, then by order of scheduling, and moves time only to them', () => {
    const clock = new VirtualClock();
    const log: string[] = [];
    clock.at(nanos(20), (now) => log.push(`b@${now}`));
    clock.at(nanos(10), (now) => {
      log.push(`a@${now}`);
      clock.at(nanos(20), (later) => log.push(`c@${later}`));
    });
    expect(clock.now()).toBe(0);
    while (clock.step()) log.push(`now ${clock.now()}`);
    expect(log).toEqual(['a@10', 'now 10', 'b@20', 'now 20', 'c@20', 'now 20']);
  });

  it('does not run what was cancelled', () => {
    const clock = new VirtualClock();
    let ran = false;
    const cancel = clock.at(nanos(5), () => {
      ran = true;
    });
    cancel();
    expect(clock.step()).toBe(false);
    expect(ran).toBe(false);
  });

  it('runs an event where it took its turn, and says whether one would have run', () => {
    const clock = new VirtualClock();
    const log: string[] = [];
    let turn = -1;
    const look = (name: string): void => {
      log.push(`${name}: ${clock.hasPassed(10, 0, turn)}`);
    };
    clock.at(nanos(10), () => look('before'));
    turn = clock.takeTurn();
    clock.at(nanos(10), () => look('behind'));
    clock.runUntil(9);
    look('at 9');
    clock.schedule(new ClockEvent(() => look('itself')), 10, turn, 0);
    clock.runUntil(10);
    look('at 10');
    // Its own turn counts as begun.
    expect(log).toEqual([
      'at 9: false',
      'before: false',
      'itself: true',
      'behind: true',
      'at 10: true',
    ]);
  });

  it('runs an event scheduled anew at the new time alone', () => {
    const clock = new VirtualClock();
    const ran: number[] = [];
    const alarm = clock.alarm((now) => ran.push(now));
    alarm.set(10);
    alarm.set(5);
    clock.runUntil(20);
    alarm.set(30);
    alarm.set(40);
    clock.runUntil(35);
    alarm.cancel();
    clock.runUntil(50);
    expect(ran).toEqual([5]);
  });

  it('runs an event asked for in the past now', () => {
    const clock = new VirtualClock();
    clock.runUntil(100);
    let at = -1;
    clock.at(nanos(1), (now) => {
      at = now;
    });
    clock.step();
    expect(at).toBe(100);
  });

  it('runUntil includes its end, and time does not go back', () => {
    const clock = new VirtualClock();
    const log: number[] = [];
    for (const time of [10, 20, 21]) clock.at(nanos(time), (now) => log.push(now));
    clock.runUntil(20);
    expect(log).toEqual([10, 20]);
    expect(clock.now()).toBe(20);
    expect(() => clock.runUntil(19)).toThrow(AssertionError);
  });

  // A cancelled event within the limit used to bring on the next one, wherever it was.
  it('runs nothing beyond its end, though a cancelled event lies before it', () => {
    const clock = new VirtualClock();
    let runs = 0;
    clock.at(nanos(5), () => runs++)();
    clock.at(nanos(100), () => runs++);
    clock.runUntil(10);
    expect([runs, clock.now()]).toEqual([0, 10]);
    clock.at(nanos(20), () => runs++)();
    expect(clock.runWhile(() => true, 50)).toBe(false);
    expect([runs, clock.now()]).toEqual([0, 10]);
    clock.runUntil(100);
    expect(runs).toBe(1);
  });

  it('runWhile stops when done, when nothing is left, and at its limit', () => {
    const clock = new VirtualClock();
    let count = 0;
    const again = (now: Nanos): void => {
      count++;
      clock.at(nanos(now + 10), again);
    };
    clock.at(nanos(10), again);
    expect(clock.runWhile(() => count < 3)).toBe(true);
    expect(clock.now()).toBe(30);
    expect(clock.runWhile(() => count < 100, 55)).toBe(false);
    expect(count).toBe(5);
    expect(new VirtualClock().runWhile(() => true)).toBe(false);
  });
});

describe('the clock of a process', () => {
  function lagging(lagNs: number) {
    const world = new VirtualClock();
    const process = new VirtualClock(world);
    process.lagNs = lagNs;
    const log: string[] = [];
    const note =
      (what: string) =>
      (now: Nanos): void => {
        log.push(`${what}@${now}, world ${world.now()}`);
      };
    return { world, process, log, note };
  }

  it('runs what was due late and in one go, each at its own time, what that sets included', () => {
    const { world, process, log, note } = lagging(10);
    process.at(nanos(20), () => {
      note('a')(process.now());
      process.at(nanos(25), note('timer'));
      process.at(nanos(31), note('later'));
    });
    process.at(nanos(28), note('b'));
    world.at(nanos(22), note('world'));
    world.runUntil(100);
    expect(log).toEqual([
      'world@22, world 22',
      'a@20, world 30',
      'timer@25, world 30',
      'b@28, world 30',
      'later@31, world 41',
    ]);
    expect(process.now()).toBe(41);
    process.catchUp();
    expect(process.now()).toBe(100);
  });

  it('catches up for who asks, and not from inside', () => {
    const { world, process, log, note } = lagging(10);
    process.at(nanos(20), (now) => {
      process.catchUp();
      note('a')(now);
    });
    process.at(nanos(23), note('b'));
    world.at(nanos(22), () => process.catchUp());
    world.runUntil(50);
    // Woken at 30 for what it did at 22.
    expect(log).toEqual(['a@20, world 22', 'b@23, world 30']);
  });

  it('does not lag where it was not asked to, or what it sends comes as soon', () => {
    const { world, process, log, note } = lagging(10);
    process.at(nanos(20), note('a'));
    world.at(nanos(21), () => process.boundLag(10));
    process.at(nanos(30), note('b'));
    world.at(nanos(31), note('world'));
    world.runUntil(50);
    expect(process.lagNs).toBe(0);
    process.lagNs = 9;
    expect(process.lagNs).toBe(9);
    process.boundLag(12);
    expect(process.lagNs).toBe(9);
    expect(log).toEqual(['a@20, world 21', 'b@30, world 30', 'world@31, world 31']);
    expect(() => (world.lagNs = 1)).toThrow(AssertionError);
  });
});

/** Wants to be woken at each of a list of times. */
class Alarm implements Timed {
  readonly woken: number[] = [];
  readonly times: number[];
  constructor(times: number[]) {
    this.times = times;
  }
  nextDeadlineNs(): number {
    return this.times[0] ?? Infinity;
  }
  tick(now: Nanos): void {
    while ((this.times[0] ?? Infinity) <= now) this.woken.push(this.times.shift() as number);
  }
}

describe('TimerDriver', () => {
  it('wakes the machine at each of its deadlines', () => {
    const clock = new VirtualClock();
    const alarm = new Alarm([10, 10, 30]);
    new TimerDriver(clock, alarm).update();
    clock.runUntil(29);
    expect(alarm.woken).toEqual([10, 10]);
    clock.runUntil(30);
    expect(alarm.woken).toEqual([10, 10, 30]);
    expect(clock.step()).toBe(false);
  });

  it('follows a deadline that moves earlier, and does nothing at one that moved later', () => {
    const clock = new VirtualClock();
    const alarm = new Alarm([50]);
    const driver = new TimerDriver(clock, alarm);
    driver.update();
    alarm.times.unshift(20);
    driver.update();
    clock.runUntil(20);
    expect(alarm.woken).toEqual([20]);
    alarm.times[0] = 80;
    driver.update();
    clock.runUntil(79);
    expect(alarm.woken).toEqual([20]);
    clock.runUntil(80);
    expect(alarm.woken).toEqual([20, 80]);
  });

  it('wakes nobody after stop', () => {
    const clock = new VirtualClock();
    const alarm = new Alarm([10]);
    const driver = new TimerDriver(clock, alarm);
    driver.update();
    driver.stop();
    clock.runUntil(100);
    expect(alarm.woken).toEqual([]);
  });
});
