/**
 * Judges every batch a manager commits, before it counts: who owns what and by whose wish, generations,
 * and whether what is said to be usable was. `LogChecks` is for what the log tells.
 */
import type { Batch } from '#manager/domain/batch';
import type { Command } from '#manager/domain/commands';
import type { BindingRecord } from '#manager/domain/records';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { Honesty } from './honesty.ts';
import { LogChecks } from './log-checks.ts';
import { isSame, requestKey, type StoreMirror } from './store-mirror.ts';

const { SINGLE_OWNER, FENCED, USABLE, STORE_OWNS, NOTHING_LOST, ALL_OR_NOTHING } = ClusterInvariant;

/** What a turn of the manager was made of. */
export interface Turn {
  readonly commands: readonly { readonly caller: string; readonly command: Command }[];
  readonly wallMs: number;
}

/** What really is, as far as a batch is held against it. */
export interface SlotTruth {
  /** Whether a box slot is as it must be before somebody else gets it. */
  isVacant(box: string, slot: number): boolean;
  isHostSlotVacant(host: string, slot: number): boolean;
  /** The highest generation the slots of a binding had since their processes began; 0 for none. */
  highestUsed(record: BindingRecord, counts: (proxy: string) => boolean): number;
  /** Whether the host's function was set up so, with a way to the box, under this generation. */
  hasWorked(record: BindingRecord): boolean;
}

/** As `DEFAULT_TIMEOUTS.keepRequestsMs`, which is said to be seven days. */
const KEEP_REQUESTS_MS = 7 * 24 * 3_600_000;

export class StoreChecks {
  readonly #oracle: ClusterOracle;
  readonly #honesty: Honesty;
  readonly #mirror: StoreMirror;
  readonly #truth: SlotTruth;
  readonly #log: LogChecks;

  constructor(oracle: ClusterOracle, honesty: Honesty, mirror: StoreMirror, truth: SlotTruth) {
    this.#oracle = oracle;
    this.#honesty = honesty;
    this.#mirror = mirror;
    this.#truth = truth;
    this.#log = new LogChecks(oracle, mirror);
  }

  /** `batch` is about to count; the mirror is still as before. */
  judge(batch: Batch, turn: Turn): void {
    const removed = new Set(batch.removedBindings);
    for (const record of batch.bindings) {
      if (removed.has(record.id))
        this.#fail(SINGLE_OWNER, `${record.id} is put and removed at once`);
      this.#judgeBinding(record, batch, turn);
    }
    for (const id of removed) this.#judgeRemoval(id, batch, turn);
    this.#judgeOwners(batch);
    this.#judgeRequests(batch, turn);
    this.#log.judge(batch);
    this.#judgeCounters(batch);
  }

  #judgeBinding(record: BindingRecord, batch: Batch, turn: Turn): void {
    const before = this.#mirror.bindings.get(record.id);
    if (before === undefined) {
      this.#judgeNew(record, batch, turn);
    } else {
      for (const field of ['host', 'hostSlot', 'box', 'boxSlot'] as const) {
        if (before[field] === record[field]) continue;
        this.#fail(STORE_OWNS, `${record.id}: ${field} ${before[field]} became ${record[field]}`);
      }
      if (before.goal !== record.goal) this.#judgeGoal(before, record, turn);
    }
    if (before?.generation !== record.generation) this.#judgeGeneration(before, record);
    const wasTold =
      before !== undefined && before.state !== 'reserved' && before.state !== 'failed';
    const isTold = ['programming', 'attaching', 'attached'].includes(record.state);
    if (before === undefined || (!wasTold && isTold)) this.#judgeGiven(record);
    const isTriedAgain = before?.state === 'failed' && record.state === 'programming';
    if (isTriedAgain && before.generation === record.generation) {
      this.#fail(FENCED, `${record.id} is tried again under its old generation`);
    }
    if (record.state === 'attached' && before?.state !== 'attached') this.#judgeAttached(record);
  }

  #judgeNew(record: BindingRecord, batch: Batch, turn: Turn): void {
    const { id, requestedBy, requestId } = record;
    const asked = turn.commands.some(
      ({ caller, command }) =>
        command.kind === 'bind' && command.requestId === requestId && caller === requestedBy,
    );
    if (!asked) this.#fail(STORE_OWNS, `${id} came into being without a command`);
    const request = batch.requests.find(
      (one) => one.caller === requestedBy && one.requestId === requestId,
    );
    if (request?.bindings.includes(id) !== true) {
      this.#fail(ALL_OR_NOTHING, `${id} is not among what its request ${requestId} made`);
    }
    for (const other of this.#mirror.bindings.values()) {
      if (other.requestId !== requestId || other.requestedBy !== requestedBy) continue;
      if (this.#mirror.isLost(other.generation)) continue;
      if (!this.#mirror.requests.has(requestKey(requestedBy, requestId))) continue;
      this.#fail(ALL_OR_NOTHING, `request ${requestId} made ${other.id} before and now ${id}`);
    }
  }

  #judgeGoal(before: BindingRecord, record: BindingRecord, turn: Turn): void {
    const asked = isAsked(turn, record.goal === 'free' ? 'unbind' : 'retry', record.id);
    if (asked && before.goal === 'attached') return;
    this.#fail(STORE_OWNS, `${record.id} shall be ${record.goal}, and nobody asked`);
  }

  #judgeGeneration(before: BindingRecord | undefined, record: BindingRecord): void {
    const { id, generation } = record;
    const mirror = this.#mirror;
    // A reserved one, of which nobody knows yet, may find that its number was given out before.
    const mayChange = before === undefined || ['failed', 'reserved'].includes(before.state);
    if (!mayChange) {
      this.#fail(FENCED, `${id} got generation ${generation} while ${before.state}`);
    }
    if (generation <= mirror.counters.generation) {
      const { generation: highest } = mirror.counters;
      this.#fail(FENCED, `${id} got generation ${generation}, and ${highest} was used before`);
    }
    const given = mirror.givenTo(generation);
    if (given !== undefined) {
      this.#fail(FENCED, `${id} got generation ${generation}, which ${given} had before`);
    }
  }

  /** Its slots are about to be told of it: they must be empty, clean, and know no such generation. */
  #judgeGiven(record: BindingRecord): void {
    const { id, generation, box, boxSlot, host, hostSlot } = record;
    if (this.#honesty.isHonest(box) && !this.#truth.isVacant(box, boxSlot)) {
      this.#fail(FENCED, `${id} was given ${box}/${boxSlot}, which is not free and clean`);
    }
    if (this.#honesty.isHonest(host) && !this.#truth.isHostSlotVacant(host, hostSlot)) {
      this.#fail(FENCED, `${id} was given ${host}/${hostSlot}, which has a row`);
    }
    // A restored store has forgotten what it gave out; the proxies have not.
    const used = this.#truth.highestUsed(record, (proxy) => this.#honesty.isHonest(proxy));
    if (generation <= used) {
      this.#fail(FENCED, `${id} got generation ${generation}, and its proxies had ${used} before`);
    }
  }

  #judgeAttached(record: BindingRecord): void {
    const { id, host, hostSlot, box, attachment, uuid } = record;
    if (attachment === undefined || attachment.bars.length === 0) {
      this.#fail(USABLE, `${id} is attached without an address`);
      return;
    }
    const windows = this.#mirror.hostSlots.get(`${host} ${hostSlot}`);
    for (const { index, address, sizeBytes } of attachment.bars) {
      const isInside = [windows?.nonPrefetchable, windows?.prefetchable].some(
        (window) =>
          window !== undefined && address >= window.base && address + sizeBytes - 1 <= window.limit,
      );
      if (!isInside) this.#fail(USABLE, `${id}: BAR ${index} is outside the windows of ${host}`);
    }
    if (!this.#honesty.isHonest(host) || !this.#honesty.isHonest(box)) return;
    if (!this.#truth.hasWorked(record)) {
      this.#fail(USABLE, `${id} is attached with a function ${host}/${hostSlot} never had so`);
    }
    const node = this.#mirror.boxSlots.get(`${box} ${record.boxSlot}`)?.node;
    if (node !== undefined && node.uuid !== uuid) {
      this.#fail(USABLE, `${id} is attached as ${uuid}, but the slot has ${node.uuid}`);
    }
  }

  #judgeRemoval(id: string, batch: Batch, turn: Turn): void {
    const before = this.#mirror.bindings.get(id);
    if (before === undefined) {
      this.#fail(STORE_OWNS, `${id} is removed and was never there`);
      return;
    }
    const asked = before.goal === 'free' || isAsked(turn, 'unbind', id);
    if (!asked) this.#fail(STORE_OWNS, `${id} was removed, and nobody asked`);
    const { box, boxSlot } = before;
    const slot =
      batch.boxSlots.find((one) => one.box === box && one.slot === boxSlot) ??
      this.#mirror.boxSlots.get(`${box} ${boxSlot}`);
    // Nobody gets a slot that is quarantined or empty, and one that was is scrubbed before anybody does.
    // Nobody was told of a reserved one, unless by a store set back since; its row speaks for itself.
    const isNoLoss = before.state === 'reserved' || before.failure?.reason === 'quarantined';
    if (slot?.quarantine !== '' || !slot.present || isNoLoss) return;
    if (this.#honesty.isHonest(box) && !this.#truth.isVacant(box, boxSlot)) {
      this.#fail(FENCED, `${id} was let go while ${box}/${boxSlot} is not clean`);
    }
  }

  /** The schema's rules, whatever the schema does. */
  #judgeOwners(batch: Batch): void {
    if (batch.bindings.length === 0) return;
    const after = new Map(this.#mirror.bindings);
    for (const id of batch.removedBindings) after.delete(id);
    for (const record of batch.bindings) after.set(record.id, record);
    const owners = new Map<string, string>();
    for (const { id, box, boxSlot, host, hostSlot, generation } of after.values()) {
      for (const key of [`${box}/${boxSlot}`, `${host}:${hostSlot}`, String(generation)]) {
        const other = owners.get(key);
        if (other !== undefined) this.#fail(SINGLE_OWNER, `${key} is owned by ${other} and ${id}`);
        owners.set(key, id);
      }
    }
  }

  #judgeRequests(batch: Batch, turn: Turn): void {
    const { forgetRequestsBeforeMs: before } = batch;
    if (before !== undefined && before > turn.wallMs - KEEP_REQUESTS_MS) {
      this.#fail(NOTHING_LOST, 'requests younger than seven days are forgotten');
    }
    for (const request of batch.requests) {
      const key = requestKey(request.caller, request.requestId);
      const known = this.#mirror.requests.get(key);
      if (known !== undefined && known.atMs >= (before ?? 0) && !isSame(known, request)) {
        this.#fail(NOTHING_LOST, `request ${key} was answered before, and otherwise`);
      }
      const asked = turn.commands.find(
        ({ caller, command }) =>
          caller === request.caller && command.requestId === request.requestId,
      );
      if (asked === undefined) {
        this.#fail(STORE_OWNS, `request ${key} is recorded, and nobody asked`);
      } else if (
        asked.command.kind === 'bind' &&
        asked.command.demand.gpus !== request.bindings.length
      ) {
        this.#fail(ALL_OR_NOTHING, `request ${key} made ${request.bindings.length} bindings`);
      }
    }
  }

  #judgeCounters({ counters, bindings }: Batch): void {
    const before = this.#mirror.counters;
    if (counters.generation < before.generation || counters.binding < before.binding) {
      this.#fail(FENCED, `counters went back to ${JSON.stringify(counters)}`);
    }
    for (const { id, generation } of bindings) {
      if (generation > counters.generation) {
        this.#fail(FENCED, `${id} has generation ${generation} of ${counters.generation}`);
      }
    }
  }

  #fail(invariant: ClusterInvariant, message: string): void {
    this.#oracle.fail(invariant, message);
  }
}

function isAsked({ commands }: Turn, kind: 'unbind' | 'retry', id: string): boolean {
  return commands.some(({ command }) => command.kind === kind && command.bindings.includes(id));
}
