/** What must hold once a fault world has come to rest. */
import { REFUSAL_NAMES } from '#fabric/counters';
import { ATTACKS, LATE_ATTACKS } from './attacks.ts';
import type { Binding } from './binding.ts';
import type { FaultBox } from './fault-box.ts';
import type { FaultHost } from './fault-host.ts';
import type { HostileDevice } from './hostile-device.ts';
import type { Operator } from './operator.ts';
import { type FaultOracle, Invariant } from './oracle.ts';

const REST_NS = 1e9;
const FALSE_ANSWERS = 3;

export interface RestingWorld {
  readonly oracle: FaultOracle;
  readonly operator: Operator;
  hosts(): FaultHost[];
  boxes(): FaultBox[];
  hostOf(binding: Binding): FaultHost | undefined;
  /** Lets the world go on until `done` says so; false when it took longer than `limitNs`. */
  runUntil(done: () => boolean, limitNs: number): boolean;
}

export class FinalChecks {
  readonly #world: RestingWorld;

  constructor(world: RestingWorld) {
    this.#world = world;
  }

  run(): void {
    const { operator, oracle } = this.#world;
    // Nothing is under way any more that somebody did before.
    this.#pass(REST_NS);
    for (const binding of operator.bindings) {
      if (binding.kind === 'hostile') this.#examine(binding);
    }
    this.#pass(REST_NS);
    if (oracle.violation !== undefined) return;
    for (const host of this.#world.hosts()) host.canaries.check();
    this.#checkLinks();
    this.#checkRequests();
  }

  /** Each attack once more, alone: refused for its own reason, and counted as that. */
  #examine(binding: Binding): void {
    const world = this.#world;
    const host = world.hostOf(binding);
    const box = world.boxes().find(({ name }) => name === binding.box);
    const device = box?.hostileAt(binding.slot);
    if (host === undefined || box === undefined || device?.isSetUp !== true) return;
    const counters = host.virtual.proxy.counters(binding.virtualSlot);
    const before = counters.refused.slice();
    const unexpectedBefore = counters.unexpectedCompletions;
    const expected = new Float64Array(REFUSAL_NAMES.length);
    host.canaries.takeBack();
    for (const attack of [...ATTACKS, ...LATE_ATTACKS]) {
      const targets = host.canaries.targets(binding.virtualSlot, false);
      const outcome = this.#send(device, () => device.send(world.oracle.nowNs, attack, targets));
      box.settle();
      if (outcome === undefined || outcome === 'sent') continue;
      (expected[REFUSAL_NAMES.indexOf(outcome)] as number)++;
    }
    for (let n = 0; n < FALSE_ANSWERS; n++) device.falseAnswer(world.oracle.nowNs);
    box.settle();
    this.#pass(REST_NS);
    const name = `${host.name} virtual slot ${binding.virtualSlot}`;
    if (device.waiting > 0) {
      this.#fail(`${name}: ${device.waiting} of its requests were not answered`);
    }
    for (const [reason, count] of expected.entries()) {
      const counted = (counters.refused[reason] as number) - (before[reason] as number);
      if (counted === count) continue;
      this.#fail(`${name}: counted ${counted} as ${REFUSAL_NAMES[reason]}, not ${count}`);
    }
    const unexpected = counters.unexpectedCompletions - unexpectedBefore;
    if (unexpected !== FALSE_ANSWERS) {
      this.#fail(`${name}: counted ${unexpected} unexpected completions, not ${FALSE_ANSWERS}`);
    }
  }

  /** Tries again while the port is full. */
  #send<T>(device: HostileDevice, send: () => T | undefined): T | undefined {
    for (let tries = 0; tries < 200 && device.isSetUp; tries++) {
      const outcome = send();
      if (outcome !== undefined) return outcome;
      this.#pass(5e6);
    }
    return undefined;
  }

  /** Both ends of every link are in one session, and nothing is left between them. */
  #checkLinks(): void {
    const { oracle } = this.#world;
    for (const host of this.#world.hosts()) {
      for (const [boxId, link] of host.virtual.links) {
        const box = this.#world.boxes().find(({ name }) => name === boxId);
        const far = box?.virtual.links.sessionId(host.name);
        if (link.sessionId !== far || link.sessionId === 0 || link.state !== 'up') {
          oracle.fail(
            Invariant.PROGRESS,
            `${host.name} is in session ${link.sessionId} (${link.state}), ${boxId} in ${far}`,
          );
        }
        if (link.counters.protocolErrors > 0) {
          oracle.fail(Invariant.EXACT, `${host.name}: ${boxId} broke the protocol of the link`);
        }
      }
    }
    for (const process of [...this.#world.hosts(), ...this.#world.boxes()]) {
      for (const port of process.watch.ports) {
        if (port.in.waiting > 0) {
          oracle.fail(Invariant.EXACT, `${port.in.name}: ${port.in.waiting} TLPs never came`);
        }
        if (port.kept.length > 0 || port.held.size > 0) {
          oracle.fail(Invariant.PROGRESS, `${process.name}: keeps ${port.kept.length} requests`);
        }
        if (port.forged.size > 0) {
          oracle.fail(
            Invariant.CONTAINED,
            `${process.name}: ${port.forged.size} forged requests of ${port.peer.id} not answered`,
          );
        }
      }
    }
  }

  #checkRequests(): void {
    const { oracle } = this.#world;
    for (const host of this.#world.hosts()) {
      if (host.root.oldestNs === Infinity) continue;
      oracle.fail(Invariant.PROGRESS, `${host.name}: a CPU request was never answered`);
    }
    for (const box of this.#world.boxes()) {
      for (const device of box.devices) {
        if (device.oldestNs === Infinity) continue;
        oracle.fail(Invariant.PROGRESS, `${box.name}: a DMA request was never answered`);
      }
    }
  }

  #pass(durationNs: number): void {
    const { oracle } = this.#world;
    const untilNs = oracle.nowNs + durationNs;
    this.#world.runUntil(() => oracle.nowNs >= untilNs, 2 * durationNs);
  }

  #fail(message: string): void {
    this.#world.oracle.fail(Invariant.CONTAINED, message);
  }
}
