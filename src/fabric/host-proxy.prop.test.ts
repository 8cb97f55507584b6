/**
 * Invariant 6c and the check of completions at the host proxy: whatever the links and boxes do, each
 * CPU request ends exactly once, with the data of its own slot and generation or with an error; what
 * cannot pass is dropped and counted; a contained slot stays so until a higher generation.
 */
import { completeWithoutData, completeWithData, setCompletion } from '#pcie/completion';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { encoded, type FakeLink } from '#testkit/fake-link';
import { configRequest, HostProxyWorld, hostRow, NOW } from '#testkit/host-proxy-world';
import { fc } from '#testkit/properties';
import type { HostProxyFaults, HostSlotState } from './host-proxy.ts';
import { SlotState } from './link-user.ts';
import type { HostRow } from './mapping-table.ts';

const SLOTS = [0, 1, 2] as const;
const slotIndex = fc.constantFrom(...SLOTS);
const boxName = fc.constantFrom('b' as const, 'c' as const);

const op = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('read' as const),
      slot: slotIndex,
      offset: fc.integer({ min: 0, max: 255 }),
      bytes: fc.integer({ min: 0, max: 300 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('config' as const),
      slot: slotIndex,
      write: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ op: fc.constant('write' as const), slot: slotIndex }) },
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('answer' as const),
      which: fc.nat(),
      part: fc.boolean(),
      status: fc.constantFrom(0, 0, 0, 1, 2, 4),
      // How the box lies: not at all, about the slot, the generation, the count, the address, the length.
      lie: fc.constantFrom('', '', '', 'slot', 'generation', 'count', 'lower', 'length', 'box'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constantFrom('down' as const, 'up' as const),
      box: boxName,
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      op: fc.constant('say' as const),
      slot: slotIndex,
      age: fc.constantFrom(0, 0, 0, 1),
      state: fc.constantFrom(SlotState.READY, SlotState.READY, SlotState.GONE),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('table' as const),
      slot: slotIndex,
      change: fc.constantFrom('rebind' as const, 'remove' as const, 'same' as const),
    }),
  },
);
type Op = typeof op extends fc.Arbitrary<infer T> ? T : never;

interface Request {
  readonly tag: number;
  readonly slot: number;
  readonly generation: number;
  readonly wire: Tlp;
  remaining: number;
  lower: number;
}

interface ModelSlot {
  row: HostRow | undefined;
  generation: number;
  state: HostSlotState;
  dropped: number;
}

class Model {
  readonly world: HostProxyWorld;
  readonly slots: ModelSlot[] = SLOTS.map(() => ({
    row: undefined,
    generation: 0,
    state: 'unused',
    dropped: 0,
  }));
  readonly up = { b: false, c: false };
  /** What each box has last said of a slot, in the live session. */
  readonly said = new Map<string, { generation: number; state: SlotState }>();
  outstanding: Request[] = [];
  freeTags = Array.from({ length: 256 }, (_, tag) => tag);
  links: string[] = [];
  unexpected = 0;
  nextGeneration = 100;

  constructor(faults: HostProxyFaults) {
    this.world = new HostProxyWorld({ faults });
  }

  link(box: 'b' | 'c'): FakeLink {
    return box === 'b' ? this.world.linkB : this.world.linkC;
  }

  run(one: Op): void {
    switch (one.op) {
      case 'read': {
        const tlp = new Tlp();
        const offset = one.offset - (one.offset % 4) * (one.bytes === 0 ? 1 : 0);
        setMemoryRead(tlp, hostRow(one.slot, 1).prefetchable.base + offset, one.bytes, 0x0008, 0);
        this.request(one.slot, tlp, Math.max(1, one.bytes), offset % 128);
        break;
      }
      case 'config': {
        const kind = one.write ? TlpKind.CfgWr1 : TlpKind.CfgRd1;
        const tlp = configRequest(kind, 3 + one.slot, 0x40, 0xf);
        if (one.write) {
          tlp.payload = new Uint8Array(4);
          tlp.payloadBytes = 4;
        }
        this.request(one.slot, tlp, 4, 0);
        break;
      }
      case 'write':
        this.write(one.slot);
        break;
      case 'answer':
        if (this.outstanding.length > 0) this.answer(one);
        break;
      case 'down':
        this.down(one.box);
        break;
      case 'up':
        if (this.up[one.box]) break;
        this.up[one.box] = true;
        this.link(one.box).up = true;
        this.world.proxy.linkUp(NOW, this.link(one.box));
        break;
      case 'say':
        this.say(one.slot, one.age, one.state);
        break;
      default:
        this.table(one.slot, one.change);
    }
  }

  /** Passes a request down and checks what becomes of it at once. */
  request(index: number, tlp: Tlp, bytes: number, lower: number): void {
    const slot = this.slots[index] as ModelSlot;
    const tag = this.freeTags.shift();
    if (tag === undefined) return;
    tlp.tag = tag;
    const link = this.link(index === 2 ? 'c' : 'b');
    link.take();
    this.world.proxy.request(NOW, tlp);
    const sent = link.take();
    if (slot.state === 'ready') {
      expect(sent).toHaveLength(1);
      const [entry] = sent;
      expect(entry?.slot).toBe(slot.row?.slot);
      expect(entry?.generation).toBe(slot.generation);
      const wire = entry?.tlp as Tlp;
      const { generation } = slot;
      this.outstanding.push({ tag, slot: index, generation, wire, remaining: bytes, lower });
      this.expectCompletions([]);
      return;
    }
    expect(sent).toEqual([]);
    const isConfig = tlp.kind === TlpKind.CfgRd1 || tlp.kind === TlpKind.CfgWr1;
    const retry = isConfig && slot.state === 'waiting';
    this.expectCompletions([[tag, retry ? CompletionStatus.CRS : CompletionStatus.UR]]);
    this.freeTags.push(tag);
  }

  write(index: number): void {
    const slot = this.slots[index] as ModelSlot;
    const tlp = new Tlp();
    setMemoryWrite(tlp, hostRow(index, 1).nonPrefetchable.base, 4, 0x0008);
    tlp.payload = new Uint8Array(4);
    const link = this.link(index === 2 ? 'c' : 'b');
    link.take();
    const strayBefore = this.world.proxy.strayCounters.unroutable;
    this.world.proxy.request(NOW, tlp);
    expect(link.take()).toHaveLength(slot.state === 'ready' ? 1 : 0);
    if (slot.state === 'unused') {
      expect(this.world.proxy.strayCounters.unroutable).toBe(strayBefore + 1);
    } else if (slot.state !== 'ready') {
      slot.dropped++;
    }
    expect(this.world.proxy.counters(index).dropped).toBe(slot.dropped);
  }

  answer(one: Op & { op: 'answer' }): void {
    const request = this.outstanding[one.which % this.outstanding.length] as Request;
    const { wire, remaining, lower } = request;
    const isRead = wire.kind === TlpKind.MRd32 || wire.kind === TlpKind.MRd64;
    const out = new Tlp();
    const ok = one.status === 0;
    const status = one.status as CompletionStatus;
    let bytes = remaining;
    if (ok && wire.kind !== TlpKind.CfgWr0) {
      // A part ends at the next 64-byte boundary.
      if (isRead && one.part) bytes = Math.min(remaining, 64 - (lower % 64));
      const data = new Uint8Array(512);
      completeWithData(out, wire, 0x0300, lower, remaining, bytes, data, 0);
    } else if (ok) {
      completeWithoutData(out, wire, 0x0300, status);
    } else {
      setCompletion(out, wire.requesterId, wire.tag, 0, 0, 0x0300, status, remaining, lower);
    }
    let fits = one.lie === '' && (one.status !== 2 || !isRead);
    const row = (this.slots[request.slot] as ModelSlot).row;
    let slot = row?.slot ?? 7;
    let { generation } = request;
    let box: 'b' | 'c' = request.slot === 2 ? 'c' : 'b';
    if (one.lie === 'slot') slot = slot === 7 ? 8 : 7;
    if (one.lie === 'generation') generation -= 1;
    if (one.lie === 'box') box = box === 'b' ? 'c' : 'b';
    if (one.lie === 'count') out.byteCount = (out.byteCount % 4096) + 1;
    if (one.lie === 'lower') out.lowerAddress = (out.lowerAddress + 4) % 128;
    if (one.lie === 'length') {
      // Data where none belongs, or none where it does.
      if (out.kind === TlpKind.CplD) completeWithoutData(out, wire, 0x0300, 0);
      else completeWithData(out, wire, 0x0300, 0, 4, 4, new Uint8Array(4), 0);
      out.status = status;
    }
    // Errors and answers without data carry no data that could be put in a wrong place.
    const dataless = !ok || wire.kind === TlpKind.CfgWr0;
    if (dataless && (one.lie === 'count' || one.lie === 'lower'))
      fits = one.status !== 2 || !isRead;
    // Only reads of memory say where their data belongs.
    if (!dataless && !isRead && one.lie === 'lower') fits = true;
    if (!this.up[box]) return;
    this.world.receive(this.link(box), slot, generation, encoded(out));
    if (!fits) {
      this.expectCompletions([]);
      return;
    }
    this.expectCompletions([[request.tag, status]]);
    if (ok && isRead && bytes < remaining) {
      request.remaining -= bytes;
      request.lower = (request.lower + bytes) % 128;
    } else {
      this.finish(request);
    }
  }

  down(box: 'b' | 'c'): void {
    if (!this.up[box]) return;
    this.up[box] = false;
    this.link(box).up = false;
    for (const key of this.said.keys()) if (key.startsWith(box)) this.said.delete(key);
    const gone = this.slots.filter((slot) => slot.row?.box === box && slot.state === 'ready');
    this.world.proxy.linkDown(NOW, this.link(box), 'cut');
    for (const slot of gone) slot.state = 'contained';
    this.expectAborted(gone);
    this.expectLinks(gone.map((slot) => `${this.slots.indexOf(slot)} down surprise`));
  }

  say(index: number, age: number, state: SlotState): void {
    const slot = this.slots[index] as ModelSlot;
    const { box, slot: boxSlot } = hostRow(index, 1);
    if (!this.up[box as 'b' | 'c']) return;
    const generation = slot.generation - age;
    if (generation <= 0) return;
    this.said.set(`${box} ${boxSlot}`, { generation, state });
    this.world.proxy.linkSlotState(NOW, this.link(box as 'b' | 'c'), boxSlot, generation, state);
    this.settle();
  }

  table(index: number, change: 'rebind' | 'remove' | 'same'): void {
    const slot = this.slots[index] as ModelSlot;
    const rows = this.slots.flatMap((one) => (one.row === undefined ? [] : [one.row]));
    const others = rows.filter((row) => row.virtualSlot !== index);
    if (change === 'same') {
      expect(this.world.proxy.setTable(NOW, rows)).toEqual([]);
      // A generation that was used before is refused, and nothing changes.
      const stale = { ...hostRow(index, Math.max(1, slot.generation)), path: 'other' };
      if (slot.row === undefined && slot.generation > 0) {
        const [error] = this.world.proxy.setTable(NOW, [...others, stale]);
        expect(error?.field).toBe('generation');
      }
      return;
    }
    const wasReady = slot.state === 'ready';
    if (change === 'rebind') {
      slot.generation = this.nextGeneration++;
      slot.row = hostRow(index, slot.generation);
      slot.state = 'waiting';
    } else {
      slot.row = undefined;
      slot.state = 'unused';
    }
    const after = slot.row === undefined ? others : [...others, slot.row];
    expect(this.world.proxy.setTable(NOW, after)).toEqual([]);
    this.expectAborted([slot]);
    const links = wasReady ? [`${index} down`] : [];
    this.expectLinks(links);
  }

  /** What a box has said takes effect on a slot of that generation. */
  settle(): void {
    const links: string[] = [];
    for (const [index, slot] of this.slots.entries()) {
      const said = slot.row && this.said.get(`${slot.row.box} ${slot.row.slot}`);
      if (said?.generation !== slot.generation || slot.row === undefined) continue;
      if (said.state === SlotState.READY && slot.state === 'waiting') {
        slot.state = 'ready';
        links.push(`${index} up`);
      } else if (said.state === SlotState.GONE && slot.state !== 'contained') {
        if (slot.state === 'ready') links.push(`${index} down surprise`);
        slot.state = 'contained';
        this.expectAborted([slot]);
      }
    }
    this.expectLinks(links);
  }

  expectAborted(slots: readonly ModelSlot[]): void {
    const ended = this.outstanding.filter((one) =>
      slots.includes(this.slots[one.slot] as ModelSlot),
    );
    ended.sort((a, b) => a.slot - b.slot);
    const completions = this.world.root.takeCompletions();
    const got = completions.map((tlp) => [tlp.tag, tlp.status, tlp.byteCount]);
    const wanted = ended.map((one) => [one.tag, CompletionStatus.UR, one.remaining]);
    expect(sorted(got)).toEqual(sorted(wanted));
    for (const one of ended) this.finish(one);
  }

  expectCompletions(wanted: [number, CompletionStatus][]): void {
    const got = this.world.root.takeCompletions().map((tlp) => [tlp.tag, tlp.status]);
    expect(got).toEqual(wanted);
  }

  expectLinks(wanted: string[]): void {
    const { links } = this.world.root;
    const got = links.map(
      ({ virtualSlot, active, surprise }) =>
        `${virtualSlot} ${active ? 'up' : 'down'}${surprise ? ' surprise' : ''}`,
    );
    expect(sorted(got)).toEqual(sorted(wanted));
    this.world.root.links = [];
  }

  finish(request: Request): void {
    this.outstanding = this.outstanding.filter((one) => one !== request);
    this.freeTags.push(request.tag);
  }

  check(): void {
    for (const [index, slot] of this.slots.entries()) {
      expect(this.world.proxy.slotState(index)).toBe(slot.state);
    }
  }
}

function run(ops: readonly Op[], faults: HostProxyFaults = {}): void {
  const model = new Model(faults);
  // A start in which something flows: the random operations take it apart.
  model.run({ op: 'up', box: 'b' });
  model.run({ op: 'up', box: 'c' });
  for (const slot of SLOTS) {
    model.run({ op: 'table', slot, change: 'rebind' });
    model.run({ op: 'say', slot, age: 0, state: SlotState.READY });
  }
  for (const one of ops) {
    model.run(one);
    model.check();
  }
}

const property = (faults?: HostProxyFaults) =>
  fc.property(fc.array(op, { minLength: 1, maxLength: 80 }), (ops) => run(ops, faults));

test('every CPU request ends once, as its slot and session allow', () => {
  fc.assert(property(), { numRuns: 250 });
});

describe('the property finds each check that is left out', () => {
  test.each([
    'noCompletionCheck',
    'noGenerationFence',
    'noPeerFence',
    'noAbort',
    'noContainment',
  ] as const)('%s', (fault) => {
    const result = fc.check(property({ [fault]: true }), {
      numRuns: 2000,
      seed: 1,
      endOnFailure: true,
    });
    expect(result.failed).toBe(true);
  });
});

/** In some order of its own, so that two lists can be compared as sets. */
function sorted(items: readonly unknown[]): string[] {
  return items.map((item) => JSON.stringify(item)).sort((a, b) => (a < b ? -1 : 1));
}
