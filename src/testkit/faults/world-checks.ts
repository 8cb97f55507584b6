/** What must hold in a fault world at any time, looked at now and then. */
import type { FaultBox } from './fault-box.ts';
import type { FaultHost } from './fault-host.ts';
import { type FaultOracle, Invariant } from './oracle.ts';
import type { TroubledPath } from './trouble.ts';

/** What may pass a full receiver, and everything else once all is calm, arrives within this. */
const DELIVERY_NS = 1.5e9;
/** And within this once all has been calm for a while: there is nothing left to be made good. */
const PROMPT_NS = 400e6;
const CALM_NS = 2e9;
/** Longer than the completion timeout. */
const ANSWER_NS = 4.5e9;
/** A session must outlive less trouble than this, looked at over the last ten seconds. */
const HARMLESS_NS = 1.5e9;
const HARMLESS_WITHIN_NS = 10e9;

export interface CheckedWorld {
  readonly oracle: FaultOracle;
  readonly paths: readonly TroubledPath[];
  hosts(): FaultHost[];
  boxes(): FaultBox[];
}

export class WorldChecks {
  readonly #world: CheckedWorld;
  /** When each process last died. */
  readonly #diedNs = new Map<string, number>();

  constructor(world: CheckedWorld) {
    this.#world = world;
  }

  died(id: string): void {
    this.#diedNs.set(id, this.#world.oracle.nowNs);
  }

  look(): void {
    for (const host of this.#world.hosts()) {
      host.canaries.check();
      this.#checkAnswers(host.root.oldestNs, `${host.name}: a CPU request`);
      this.#checkDelivery(host);
    }
    for (const box of this.#world.boxes()) {
      for (const device of box.devices) {
        this.#checkAnswers(device.oldestNs, `${box.name} slot ${device.slot}: a DMA request`);
      }
      this.#checkDelivery(box);
    }
  }

  #checkAnswers(oldestNs: number, what: string): void {
    if (oldestNs === Infinity || this.#world.oracle.calmNs(oldestNs) < ANSWER_NS) return;
    this.#world.oracle.fail(
      Invariant.PROGRESS,
      `${what} has no answer after ${ANSWER_NS / 1e9} s of calm`,
    );
  }

  /** Invariant 7: what may pass non-posted requests does, whatever becomes of those. */
  #checkDelivery(process: FaultHost | FaultBox): void {
    const { oracle } = this.#world;
    for (const port of process.watch.ports) {
      const { held, roomSinceNs } = port;
      if (held.mode === 'posted') continue;
      // `Infinity` when there is none: then it has been waiting for no time at all.
      const passing = Math.max(port.in.oldestNs(false), roomSinceNs);
      const any = Math.max(port.in.oldestNs(true), roomSinceNs);
      const waitedNs = oracle.networkCalmNs(passing);
      const isSlow = waitedNs > PROMPT_NS && oracle.networkCalmNs(0) > CALM_NS;
      if (!isSlow && waitedNs <= DELIVERY_NS && oracle.calmNs(any) <= DELIVERY_NS) continue;
      oracle.fail(Invariant.PROGRESS, `${port.in.name}: stands still with ${port.in.waiting} TLPs`);
    }
  }

  /** Invariant 6b: a session outlives what its resume window covers. */
  sessionEnding(host: string, box: string): void {
    const sinceNs = this.#world.oracle.nowNs - HARMLESS_WITHIN_NS;
    for (const id of [host, box]) if ((this.#diedNs.get(id) ?? -Infinity) >= sinceNs) return;
    let outageNs = 0;
    for (const path of this.#world.paths) {
      if (path.host !== host || path.box !== box) continue;
      outageNs += path.outages.some((o) => o.toNs === Infinity) ? Infinity : path.outageNs(sinceNs);
    }
    if (outageNs > HARMLESS_NS) return;
    this.#world.oracle.fail(
      Invariant.EXACT,
      `the session of ${host} and ${box} ended after ${outageNs / 1e9} s of trouble`,
    );
  }
}
