/**
 * A function that lets itself be set up like any other, and then tries what it must not (attacks.ts).
 * Its requests carry tags of their own, apart from those of its endpoint.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import type { RefusalName } from '#fabric/counters';
import type { Device, DeviceIdentity, DevicePort } from '#pcie/device';
import { Endpoint } from '#pcie/endpoint';
import type { RegisterBar } from '#pcie/endpoint-bar';
import { CompletionStatus, FlowClass, flowClassOf, Tlp, TlpKind } from '#pcie/tlp';
import {
  type Attack,
  ATTACKS,
  buildAttack,
  buildFalseAnswer,
  type HostTargets,
  withoutBusMaster,
} from './attacks.ts';
import { type FaultOracle, Invariant } from './oracle.ts';

export const HOSTILE_DEVICE_ID = 0xbad0;
export const HOSTILE_VENDOR_ID = 0x1ddf;
/** Written by its driver when it has switched bus mastering off for good. */
export const JAILED = 0x10;

const FIRST_TAG = 128;
const TAGS = 128;
const CPU_TAGS = 64;

export class HostileDevice implements Device, RegisterBar {
  readonly kind = 'registers';
  readonly identity: DeviceIdentity;
  readonly endpoint: Endpoint;
  /** The host has switched bus mastering off, and will not switch it on again. */
  jailed = false;
  readonly #name: string;
  readonly #oracle: FaultOracle;
  readonly #prng: Prng;
  readonly #tlp = new Tlp();
  readonly #waiting = new Map<number, Attack>();
  #port: DevicePort | undefined;
  #nextTag = 0;

  constructor(name: string, oracle: FaultOracle, prng: Prng) {
    this.#name = name;
    this.#oracle = oracle;
    this.#prng = prng;
    this.identity = {
      kind: 'hostile',
      model: 'hostile',
      memoryBytes: 0,
      uuid: '00000000-0000-4000-8000-0000000000ff',
    };
    this.endpoint = new Endpoint({
      identity: {
        vendorId: HOSTILE_VENDOR_ID,
        deviceId: HOSTILE_DEVICE_ID,
        revisionId: 1,
        classCode: 0xff0000,
      },
      serial: 13n,
      bars: [{ index: 0, is64Bit: false, prefetchable: false, sizeBytes: 4096, target: this }],
      tags: 32,
    });
  }

  /** Requests that wait for their answer. */
  get waiting(): number {
    return this.#waiting.size;
  }

  /** Set up by its host, or done with. */
  get isSetUp(): boolean {
    return this.endpoint.config.busMaster || this.jailed;
  }

  plug(port: DevicePort): void {
    this.#port = port;
    this.endpoint.plug(port);
  }

  receive(now: Nanos, tlp: Tlp): void {
    const completion = flowClassOf(tlp.kind) === FlowClass.COMPLETION;
    if (completion && tlp.tag >= FIRST_TAG) this.#answered(tlp);
    else this.endpoint.receive(now, tlp);
  }

  resume(now: Nanos): void {
    this.endpoint.resume(now);
  }

  reset(_now: Nanos): void {
    this.endpoint.reset();
    this.#waiting.clear();
    this.jailed = false;
  }

  scrub(): void {}

  nextDeadlineNs(): number {
    return Infinity;
  }

  tick(): void {}

  readRegister(_now: Nanos, offset: number): number {
    return offset * 3;
  }

  writeRegister(_now: Nanos, offset: number): void {
    if (offset === JAILED) this.jailed = true;
    else this.#oracle.fail(Invariant.CONTAINED, `${this.#name}: reached by a write of nobody's`);
  }

  /** Any one of its tricks. */
  attack(now: Nanos, at: HostTargets): void {
    if (this.#prng.chance(0.15)) this.falseAnswer(now);
    else this.send(now, this.#prng.pick(ATTACKS), at);
  }

  /** Returns the reason it must be refused for, 'sent' if there is none, `undefined` if it cannot go. */
  send(now: Nanos, attack: Attack, at: HostTargets): RefusalName | 'sent' | undefined {
    const { busMaster, bdf } = this.endpoint.config;
    // Not set up yet: whether bus mastering is on is known at the other end alone. What is never
    // allowed may be tried at any time, also when nothing can pass.
    if (!this.isSetUp && attack.refusal === undefined) return undefined;
    const judged = this.jailed ? withoutBusMaster(attack) : attack;
    const tlp = this.#tlp;
    buildAttack(judged, tlp, busMaster ? at : nowhereAllowed(at), this.#prng, bdf);
    const flow = flowClassOf(tlp.kind);
    if (this.#port?.canSend(flow, tlp.payloadBytes) !== true) return undefined;
    if (flow === FlowClass.NON_POSTED) {
      if (this.#waiting.size === TAGS) return undefined;
      while (this.#waiting.has(FIRST_TAG + this.#nextTag)) this.#advance();
      tlp.tag = FIRST_TAG + this.#nextTag;
      this.#advance();
      this.#waiting.set(tlp.tag, judged);
    }
    this.#oracle.counts.attacks++;
    this.#port.send(now, tlp);
    return judged.refusal ?? 'sent';
  }

  falseAnswer(now: Nanos): void {
    buildFalseAnswer(this.#tlp, this.#prng.below(CPU_TAGS), this.endpoint.config.bdf);
    this.#oracle.counts.attacks++;
    this.#port?.send(now, this.#tlp);
  }

  #advance(): void {
    this.#nextTag = (this.#nextTag + 1) % TAGS;
  }

  #answered(tlp: Tlp): void {
    const attack = this.#waiting.get(tlp.tag);
    if (attack === undefined) {
      this.#oracle.fail(Invariant.CONTAINED, `${this.#name}: a second answer to tag ${tlp.tag}`);
      return;
    }
    this.#waiting.delete(tlp.tag);
    const obeyed = tlp.kind === TlpKind.CplD || tlp.status === CompletionStatus.SC;
    if (obeyed && attack.refusal !== undefined) {
      this.#oracle.fail(Invariant.CONTAINED, `${this.#name}: the host obeyed "${attack.name}"`);
    }
  }
}

/** What is allowed goes to the canary, once nothing is allowed any more. */
function nowhereAllowed(at: HostTargets): HostTargets {
  return { ...at, allowed: at.canary };
}
