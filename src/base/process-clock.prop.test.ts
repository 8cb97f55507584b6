/** What happens to a process is the same however far it lags, as long as what it sends takes longer. */
import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { ClockEvent } from './clock-queue.ts';
import { Prng } from './prng.ts';
import type { Nanos } from './units.ts';
import { VirtualClock } from './virtual-clock.ts';

/** What one sends the other takes as long at least. */
const LATENCY_NS = 11;
const END_NS = 200;

/** Sends and sets timers as chance has it, and writes down what happened and what would have by then. */
class Party {
  readonly log: string[] = [];
  readonly clock: VirtualClock;
  other: Party | undefined;
  readonly #prng: Prng;
  readonly #alarm;
  #turn: [atNs: number, takenNs: number, turn: number] = [0, 0, -1];
  #isAlarmSet = false;

  constructor(clock: VirtualClock, prng: Prng) {
    this.clock = clock;
    this.#prng = prng;
    this.#alarm = clock.alarm((now) => {
      this.#isAlarmSet = false;
      this.happened(now, 'alarm');
    });
  }

  /** Whether what might have been due would have been by now. */
  get hasPassed(): boolean {
    return this.clock.hasPassed(...this.#turn);
  }

  happened(now: number, what: string): void {
    expect(this.clock.now()).toBe(now);
    this.log.push(`${now} ${what} ${this.hasPassed}`);
    const prng = this.#prng;
    // Even: so the two never do anything at the same time, and yet meet at the other's.
    const later = (): number => 2 * prng.between(0, 6);
    if (now >= END_NS) return;
    this.#turn = [now + later(), now, this.clock.takeTurn()];
    if (prng.chance(0.25)) this.#send(now + LATENCY_NS + later());
    if (prng.chance(0.15)) this.#send(now + LATENCY_NS);
    if (prng.chance(0.3))
      this.clock.at((now + later()) as Nanos, (at) => this.happened(at, 'timer'));
    if (prng.chance(0.2))
      this.clock.at((now + later()) as Nanos, (at) => this.happened(at, 'never'))();
    if (!this.#isAlarmSet || prng.chance(0.3)) this.#alarm.set(now + 2 + later());
    this.#isAlarmSet = true;
  }

  #send(atNs: number): void {
    const { clock, other } = this;
    const sentNs = clock.now();
    const event = new ClockEvent((now) => other!.happened(now, `sent at ${sentNs}`));
    other!.clock.schedule(event, atNs, clock.takeTurn(), sentNs);
  }
}

/** `lagNs`: −1 for a process that lives by the clock of the world. */
function run(seed: number, lagNs: number): Record<string, unknown> {
  const prng = new Prng(seed);
  const clock = new VirtualClock();
  const inside = new Party(lagNs < 0 ? clock : new VirtualClock(clock), prng.fork());
  const outside = new Party(clock, prng.fork());
  inside.other = outside;
  outside.other = inside;
  clock.at(0 as Nanos, (now) => outside.happened(now, 'begin'));
  inside.clock.at(1 as Nanos, (now) => inside.happened(now, 'begin'));
  if (lagNs >= 0) inside.clock.lagNs = lagNs;
  const seen: [number, boolean][] = [];
  const look = (now: Nanos): void => {
    inside.clock.catchUp();
    expect(inside.clock.now()).toBe(now);
    seen.push([inside.log.length, inside.hasPassed]);
    if (now < END_NS) clock.at((now + prng.between(1, 40)) as Nanos, look);
  };
  clock.at(0 as Nanos, look);
  clock.runUntil(END_NS + 100);
  return { inside: inside.log, outside: outside.log, seen };
}

it('a process that lags sees, sends and shows the same', () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 0, max: LATENCY_NS - 1 }), (seed, lagNs) => {
      expect(run(seed, lagNs)).toEqual(run(seed, -1));
    }),
  );
});
