/**
 * Invariants 2 and 6c at the box proxy: a device sees only requests of its present row, from its row's
 * host; everything it sends carries its row's slot and generation; when a session or a row ends, its
 * outstanding requests end with an error and it is reset, and scrubbed before anybody else gets it.
 */
import { completeWithData, setCompletion } from '#pcie/completion';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { arrivedTlp } from '#testkit/arrived-tlp';
import { FakeDevice } from '#testkit/fake-device';
import { encoded, FakeLink } from '#testkit/fake-link';
import { configRequest, NOW } from '#testkit/host-proxy-world';
import { fc } from '#testkit/properties';
import { BoxProxy, type BoxProxyFaults, type BoxSlotState } from './box-proxy.ts';
import { SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';

const HOSTS = ['h1', 'h2'] as const;
type Host = (typeof HOSTS)[number];
/** Slot 5 has no device. */
const SLOTS = [0, 3, 5] as const;

const host = fc.constantFrom(...HOSTS);
const slotNumber = fc.constantFrom(...SLOTS);

const op = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      op: fc.constant('request' as const),
      host,
      slot: slotNumber,
      age: fc.constantFrom(0, 0, 0, 0, 1, -1),
      kind: fc.constantFrom('MRd', 'MWr', 'CfgRd0', 'CfgRd1'),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('dma' as const),
      slot: fc.constantFrom(0 as const, 3 as const),
      write: fc.boolean(),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({
      op: fc.constant('answer' as const),
      which: fc.nat(),
      error: fc.boolean(),
      lie: fc.constantFrom('', '', '', 'generation', 'host', 'count', 'tag'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ op: fc.constantFrom('down' as const, 'up' as const), host }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      op: fc.constant('table' as const),
      slot: slotNumber,
      host,
      change: fc.constantFrom(
        'rebind' as const,
        'remove' as const,
        'invalid' as const,
        'stale' as const,
      ),
    }),
  },
);
type Op = typeof op extends fc.Arbitrary<infer T> ? T : never;

interface ModelSlot {
  row: BoxRow | undefined;
  state: BoxSlotState;
  highest: number;
  /** Tags of DMA reads on their way, by the generation they left under. */
  reads: number[];
}

class Model {
  readonly devices = new Map([
    [0, new FakeDevice()],
    [3, new FakeDevice()],
  ]);
  readonly proxy: BoxProxy;
  readonly links = { h1: new FakeLink('host', 'h1'), h2: new FakeLink('host', 'h2') };
  readonly up = { h1: false, h2: false };
  readonly slots = new Map<number, ModelSlot>(
    SLOTS.map((slot) => [slot, { row: undefined, state: 'unused', highest: 0, reads: [] }]),
  );
  nextGeneration = 50;
  nextTag = 0;

  constructor(faults: BoxProxyFaults) {
    this.proxy = new BoxProxy({ boxId: 'b', devices: this.devices, faults });
  }

  slot(number: number): ModelSlot {
    return this.slots.get(number) as ModelSlot;
  }

  device(number: number): FakeDevice {
    return this.devices.get(number) as FakeDevice;
  }

  /** Whether a slot's device can be reached by its host now. */
  isOpen(slot: ModelSlot): boolean {
    return slot.state === 'ready' && slot.row !== undefined && this.up[slot.row.host as Host];
  }

  run(one: Op): void {
    switch (one.op) {
      case 'request':
        this.request(one);
        break;
      case 'dma':
        this.dma(one.slot, one.write);
        break;
      case 'answer':
        this.answer(one);
        break;
      case 'up':
        this.linkUp(one.host);
        break;
      case 'down':
        this.linkDown(one.host);
        break;
      default:
        this.table(one);
    }
  }

  request(one: Op & { op: 'request' }): void {
    const link = this.links[one.host];
    if (!this.up[one.host]) return;
    const slot = this.slot(one.slot);
    const generation = Math.max(1, slot.highest - one.age);
    const tlp = new Tlp();
    if (one.kind === 'MRd') setMemoryRead(tlp, 0x4000_0000, 4, 0x0008, 9);
    else if (one.kind === 'MWr') setMemoryWrite(tlp, 0x4000_0000, 4, 0x0008);
    else if (one.kind === 'CfgRd0') Object.assign(tlp, configRequest(TlpKind.CfgRd0, 3, 0, 0xf));
    else Object.assign(tlp, configRequest(TlpKind.CfgRd1, 3, 0, 0xf));
    if (one.kind === 'MWr') tlp.payload = new Uint8Array(4);
    link.take();
    const arrived = arrivedTlp(one.slot, generation, encoded(tlp));
    const done = this.proxy.linkTlp(NOW, link, arrived);
    expect(done).toBe(true);
    const fits =
      this.isOpen(slot) &&
      slot.row?.host === one.host &&
      slot.row.generation === generation &&
      this.devices.has(one.slot);
    const reaches = fits && one.kind !== 'CfgRd1';
    const received = this.devices.get(one.slot)?.take() ?? [];
    expect(received.map(({ kind }) => kind)).toEqual(reaches ? [tlp.kind] : []);
    for (const other of SLOTS) {
      if (other !== one.slot) expect(this.devices.get(other)?.take() ?? []).toEqual([]);
    }
    const sent = link.take();
    if (one.kind === 'MWr') {
      expect(sent).toEqual([]);
      return;
    }
    // The device's own answer, or UR: either way one, on the slot and generation of the request.
    expect(sent).toHaveLength(1);
    expect(sent[0]?.slot).toBe(one.slot);
    expect(sent[0]?.generation).toBe(generation);
    expect(sent[0]?.tlp.tag).toBe(tlp.tag);
    const { SC, UR } = CompletionStatus;
    expect(sent[0]?.tlp.status).toBe(reaches ? SC : UR);
  }

  dma(number: 0 | 3, write: boolean): void {
    const slot = this.slot(number);
    const device = this.device(number);
    const tlp = new Tlp();
    const tag = this.nextTag++ % 1024;
    if (write) {
      setMemoryWrite(tlp, 0x1_0000, 64, 0x0300);
      tlp.payload = new Uint8Array(64);
    } else {
      setMemoryRead(tlp, 0x1_0000, 64, 0x0300, tag);
    }
    for (const link of Object.values(this.links)) link.take();
    expect(device.port.canSend(write ? 0 : 1, write ? 64 : 0)).toBe(true);
    device.port.send(NOW, tlp);
    // What could not pass is answered no later than the next tick.
    if (this.proxy.nextDeadlineNs() <= NOW) this.proxy.tick(NOW);
    const open = this.isOpen(slot);
    for (const name of HOSTS) {
      const sent = this.links[name].take();
      const mine = open && slot.row?.host === name;
      expect(sent.map((entry) => [entry.slot, entry.generation, entry.tlp.kind])).toEqual(
        mine ? [[number, slot.row?.generation, tlp.kind]] : [],
      );
    }
    const answers = device.take().map((answer) => [answer.tag, answer.status]);
    expect(answers).toEqual(open || write ? [] : [[tag, CompletionStatus.UR]]);
    if (open && !write) slot.reads.push(tag);
  }

  answer(one: Op & { op: 'answer' }): void {
    const pending = ([0, 3] as const).flatMap((number) =>
      this.slot(number).reads.map((tag) => ({ number, tag })),
    );
    const picked = pending[one.which % Math.max(1, pending.length)];
    if (picked === undefined) return;
    const { number, tag } = picked;
    const slot = this.slot(number);
    const row = slot.row as BoxRow;
    const request = new Tlp();
    setMemoryRead(request, 0x1_0000, 64, 0x0300, one.lie === 'tag' ? (tag + 512) % 1024 : tag);
    const out = new Tlp();
    const { UR } = CompletionStatus;
    if (one.error) setCompletion(out, 0x0300, request.tag, 0, 0, 0, UR, 64, 0);
    else completeWithData(out, request, 0, 0x1_0000, 64, 64, new Uint8Array(64), 0);
    if (one.lie === 'count') out.byteCount = 68;
    const name = one.lie === 'host' ? (row.host === 'h1' ? 'h2' : 'h1') : (row.host as Host);
    if (!this.up[name]) return;
    const generation = row.generation - (one.lie === 'generation' ? 1 : 0);
    this.proxy.linkTlp(NOW, this.links[name], arrivedTlp(number, generation, encoded(out)));
    // An error ends a request whatever count it names.
    const fits = one.lie === '' || (one.lie === 'count' && one.error);
    const received = this.device(number).take();
    expect(received.map((tlp) => tlp.tag)).toEqual(fits ? [tag] : []);
    if (fits) slot.reads = slot.reads.filter((other) => other !== tag);
  }

  linkUp(name: Host): void {
    if (this.up[name]) return;
    this.up[name] = true;
    const link = this.links[name];
    link.up = true;
    this.proxy.linkUp(NOW, link);
    const states = link
      .takeStates()
      .map(({ slot, generation, state }) => [slot, generation, state]);
    const wanted = [...this.slots].flatMap(([number, slot]) => {
      const { row } = slot;
      if (row === undefined || row.host !== name) return [];
      const state = slot.state === 'ready' ? SlotState.READY : SlotState.GONE;
      return [[number, row.generation, state]];
    });
    expect(sorted(states)).toEqual(sorted(wanted));
  }

  linkDown(name: Host): void {
    if (!this.up[name]) return;
    this.up[name] = false;
    const link = this.links[name];
    link.up = false;
    this.proxy.linkDown(NOW, link, 'cut');
    for (const [number, slot] of this.slots) {
      if (slot.state !== 'ready' || slot.row?.host !== name) continue;
      slot.state = 'contained';
      this.expectEnded(number, ['reset']);
    }
  }

  table(one: Op & { op: 'table' }): void {
    const slot = this.slot(one.slot);
    const others = [...this.slots].flatMap(([number, { row }]) =>
      row !== undefined && number !== one.slot ? [row] : [],
    );
    const { change } = one;
    const before = slot.row;
    if (change === 'stale') {
      // The same generation for another host, or for a slot that has none now.
      if (slot.highest === 0) return;
      const name = before?.host === 'h1' ? 'h2' : 'h1';
      const errors = this.proxy.setTable(NOW, [...others, row(one.slot, name, slot.highest)]);
      // Nobody remembers a slot that has no device.
      if (this.devices.has(one.slot))
        expect(errors.map(({ field }) => field)).toEqual(['generation']);
      else this.forgetEmptySlot(one.slot, errors.length === 0 ? name : undefined);
      this.expectStates([]);
      return;
    }
    const wasBound = before !== undefined;
    const wasUsed = slot.highest > 0;
    const present = this.devices.has(one.slot);
    const states: [string, number, number, SlotState][] = [];
    if (before !== undefined && present)
      states.push([before.host, one.slot, before.generation, SlotState.GONE]);
    let after = others;
    if (change === 'rebind') {
      slot.highest = this.nextGeneration++;
      slot.row = row(one.slot, one.host, slot.highest);
      slot.state = present ? 'ready' : 'unused';
      after = [...others, slot.row];
      const state = present ? SlotState.READY : SlotState.GONE;
      states.push([one.host, one.slot, slot.highest, state]);
    } else {
      slot.row = undefined;
      slot.state = 'unused';
      if (change === 'invalid') {
        after = [
          ...others,
          { ...row(one.slot, one.host, Math.max(1, slot.highest)), valid: false },
        ];
      }
    }
    expect(this.proxy.setTable(NOW, after)).toEqual([]);
    if (present) {
      // Scrubbed when a tenant leaves; the first time also before one comes, for who knows who was there.
      const cleaned = wasBound || (change === 'rebind' && !wasUsed);
      this.expectEnded(one.slot, cleaned ? ['reset', 'scrub'] : []);
    }
    this.expectStates(states.filter(([name]) => this.up[name as Host]));
  }

  forgetEmptySlot(number: number, name: Host | undefined): void {
    const slot = this.slot(number);
    if (name === undefined) return;
    slot.row = row(number, name, slot.highest);
    for (const link of Object.values(this.links)) link.takeStates();
  }

  /** The device's reads have ended with UR, then it was reset and maybe scrubbed. */
  expectEnded(number: number, calls: string[]): void {
    const device = this.devices.get(number);
    const slot = this.slot(number);
    if (device === undefined) return;
    const answers = device.take().map((tlp) => [tlp.tag, tlp.status]);
    expect(answers).toEqual(slot.reads.map((tag) => [tag, CompletionStatus.UR]));
    slot.reads = [];
    expect(device.calls).toEqual(calls);
    device.calls = [];
  }

  expectStates(wanted: [string, number, number, SlotState][]): void {
    const got = HOSTS.flatMap((name) =>
      this.links[name].takeStates().map((s) => [name, s.slot, s.generation, s.state]),
    );
    expect(sorted(got)).toEqual(sorted(wanted));
  }

  check(): void {
    for (const [number, slot] of this.slots) {
      expect(this.proxy.slotState(number)).toBe(slot.state);
      const device = this.devices.get(number);
      // Nothing reaches a device but what an operation above has looked for.
      expect(device?.take() ?? []).toEqual([]);
      expect(device?.calls ?? []).toEqual([]);
    }
  }
}

function row(slot: number, name: string, generation: number): BoxRow {
  return { slot, valid: true, used: true, host: name, path: 'net', generation };
}

function run(ops: readonly Op[], faults: BoxProxyFaults = {}): void {
  const model = new Model(faults);
  model.run({ op: 'up', host: 'h1' });
  model.run({ op: 'up', host: 'h2' });
  model.run({ op: 'table', slot: 0, host: 'h1', change: 'rebind' });
  model.run({ op: 'table', slot: 3, host: 'h2', change: 'rebind' });
  for (const one of ops) {
    model.run(one);
    model.check();
  }
}

const property = (faults?: BoxProxyFaults) =>
  fc.property(fc.array(op, { minLength: 1, maxLength: 80 }), (ops) => run(ops, faults));

test('a device is reached by its row alone, and left clean', () => {
  fc.assert(property(), { numRuns: 250 });
});

describe('the property finds each check that is left out', () => {
  test.each(['noPeerFence', 'noGenerationFence', 'noAbort', 'noContainment', 'noScrub'] as const)(
    '%s',
    (fault) => {
      const result = fc.check(property({ [fault]: true }), {
        numRuns: 2000,
        seed: 1,
        endOnFailure: true,
      });
      expect(result.failed).toBe(true);
    },
  );
});

/** In some order of its own, so that two lists can be compared as sets. */
function sorted(items: readonly unknown[]): string[] {
  return items.map((item) => JSON.stringify(item)).sort((a, b) => (a < b ? -1 : 1));
}
