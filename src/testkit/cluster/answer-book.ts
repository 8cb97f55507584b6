/**
 * What the manager has promised: every answer, the moment it leaves the core. Judges that it is durable by
 * then, whole, as it was before when it was asked before, and that it stays.
 */
import type { Prng } from '#base/prng';
import type { Command, CommandAnswer } from '#manager/domain/commands';
import type { BindingRecord } from '#manager/domain/records';
import type { Demand } from '#placement/demand';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { BoxPlan } from './plan.ts';
import { isSame, requestKey, type StoreMirror } from './store-mirror.ts';

const { NOTHING_LOST, ALL_OR_NOTHING } = ClusterInvariant;

interface Promised {
  readonly caller: string;
  readonly command: Command;
  readonly bindings: readonly string[];
}

export class AnswerBook {
  readonly #oracle: ClusterOracle;
  readonly #mirror: StoreMirror;
  readonly #boxes: ReadonlyMap<string, BoxPlan>;
  readonly #promised = new Map<string, Promised>();

  constructor(oracle: ClusterOracle, mirror: StoreMirror, boxes: readonly BoxPlan[]) {
    this.#oracle = oracle;
    this.#mirror = mirror;
    this.#boxes = new Map(boxes.map((box) => [box.id, box]));
  }

  /** One of those answered, or `undefined` when there is none. */
  pick(prng: Prng): Promised | undefined {
    const all = [...this.#promised.values()];
    return all.length === 0 ? undefined : prng.pick(all);
  }

  answered(caller: string, command: Command, answer: CommandAnswer): void {
    const key = requestKey(caller, command.requestId);
    const before = this.#promised.get(key);
    if (!answer.ok) {
      if ('refusal' in answer) this.#judgeRefusal(key, command, answer.refusal.reasons.length);
      if (before !== undefined && isSame(before.command, command)) {
        this.#fail(NOTHING_LOST, `${key} was done, and asked again it is refused`);
      }
      return;
    }
    const ids = answer.bindings.map(({ id }) => id);
    const request = this.#mirror.requests.get(key);
    if (request === undefined) {
      this.#fail(NOTHING_LOST, `${key} is answered before it is durable`);
    } else if (!isSame(before?.bindings ?? request.bindings, request.bindings)) {
      this.#fail(NOTHING_LOST, `${key} is answered otherwise than before`);
    }
    for (const record of answer.bindings) {
      if (!this.#isThere(record.id)) {
        this.#fail(NOTHING_LOST, `${key} is answered with ${record.id}, which the store has not`);
      }
    }
    if (before !== undefined) {
      this.#judgeRepeated(key, before, command, answer);
      return;
    }
    if (!answer.repeated && command.kind === 'bind') {
      this.#judgeBind(key, command.demand, answer.bindings);
    }
    const bindings = request?.bindings ?? ids;
    this.#promised.set(key, { caller, command, bindings });
  }

  /** A manager begins: everything promised is there, unless it is older than is kept, or was restored away. */
  checkKept(): void {
    for (const key of this.#promised.keys()) {
      if (this.#mirror.requests.has(key)) continue;
      this.#fail(NOTHING_LOST, `${key} was acknowledged and is not in the store`);
    }
  }

  /** What the store has forgotten as it may: an older copy, or requests past their time. */
  forget(): void {
    for (const key of this.#promised.keys()) {
      if (!this.#mirror.requests.has(key)) this.#promised.delete(key);
    }
  }

  /** What ended in the turn of an answer may have been there when it was made. */
  #isThere(id: string): boolean {
    return this.#mirror.bindings.has(id) || this.#mirror.freed.has(id);
  }

  #judgeRefusal(key: string, command: Command, reasons: number): void {
    if (reasons === 0) this.#fail(ALL_OR_NOTHING, `${key} is refused without a reason`);
    if (command.kind !== 'bind') this.#fail(ALL_OR_NOTHING, `${key} is refused by placement`);
    const isThere = this.#mirror.requests.has(key);
    if (isThere) this.#fail(ALL_OR_NOTHING, `${key} is refused and yet recorded`);
  }

  #judgeRepeated(
    key: string,
    before: Promised,
    command: Command,
    answer: Extract<CommandAnswer, { ok: true }>,
  ): void {
    if (!isSame(before.command, command)) {
      this.#fail(ALL_OR_NOTHING, `${key} was something else before, and is done now`);
      return;
    }
    if (!answer.repeated) this.#fail(ALL_OR_NOTHING, `${key} is done a second time`);
    const there = before.bindings.filter((id) => this.#mirror.bindings.has(id));
    const ids = answer.bindings.map(({ id }) => id);
    const known = before.bindings.filter((id) => this.#isThere(id));
    if (!isSame(there, ids) && !isSame(known, ids)) {
      this.#fail(ALL_OR_NOTHING, `${key} is answered ${ids.join(' ')}, not ${there.join(' ')}`);
    }
  }

  /** Complete, and as it was asked for. */
  #judgeBind(key: string, demand: Demand, bindings: readonly BindingRecord[]): void {
    const fail = (what: string): void => this.#fail(ALL_OR_NOTHING, `${key}: ${what}`);
    if (bindings.length !== demand.gpus) fail(`${bindings.length} of ${demand.gpus} GPU nodes`);
    const boxes = new Set(bindings.map(({ box }) => box));
    const groups = new Set<string>();
    for (const record of bindings) {
      const node = this.#mirror.boxSlots.get(`${record.box} ${record.boxSlot}`)?.node;
      const box = this.#boxes.get(record.box);
      if (record.host !== demand.host) fail(`${record.id} is for ${record.host}`);
      if (node === undefined || box === undefined) {
        fail(`${record.id} is of a slot nobody has reported`);
        continue;
      }
      groups.add(node.nvlinkGroup);
      if (demand.model !== undefined && node.model !== demand.model) fail(`a ${node.model}`);
      if (node.memoryBytes < (demand.memoryBytes ?? 0)) fail(`${record.id} has too little memory`);
      if (demand.boxKind !== undefined && box.kind !== demand.boxKind) fail(`a ${box.kind} box`);
    }
    if ((demand.sameBox || demand.nvlink) && boxes.size > 1) fail('of more than one box');
    if (demand.nvlink && (groups.size > 1 || groups.has(''))) fail('of more than one NVLink group');
  }

  #fail(invariant: ClusterInvariant, message: string): void {
    this.#oracle.fail(invariant, message);
  }
}
