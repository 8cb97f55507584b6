/**
 * The models of the proxies against the real ones: the same tables, sessions and failing scrubs, in any
 * order, are taken or refused alike and leave every slot in the same state.
 */
import { describe, expect, test } from 'vitest';
import type { BoxRowOrder } from '#agent/core/data-plane';
import { BoxPlane } from '#agent/daemon/box-plane';
import { Prng } from '#base/prng';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { BoxProxy } from '#fabric/box-proxy';
import { HostProxy } from '#fabric/host-proxy';
import { SlotState } from '#fabric/link-user';
import type { HostRow } from '#fabric/mapping-table';
import type { GpuNodeReport } from '#proto/agent-messages';
import { FakeDevice } from '../fake-device.ts';
import { FakeLink } from '../fake-link.ts';
import { FakeRoot } from '../fake-root.ts';
import { fc } from '../properties.ts';
import { ModelBox } from './model-box.ts';
import { BoxHardware } from './model-box-slot.ts';
import { ModelHost, PATH } from './model-host.ts';
import { ModelLinks } from './model-links.ts';
import { type ClusterPlan, drawClusterPlan, type HostPlan } from './plan.ts';

const HOSTS = ['h0', 'h1'] as const;
type HostId = (typeof HOSTS)[number];
const BOX = 'b0';
const SLOTS = 2;
const SLOT_NUMBERS = [0, 1];

/** What a box says of a slot goes to the host of the session. */
class SpokenLink extends FakeLink {
  readonly #heard: (slot: number, generation: number, isReady: boolean) => void;

  constructor(id: string, heard: (slot: number, generation: number, isReady: boolean) => void) {
    super('host', id);
    this.#heard = heard;
  }

  override sendSlotState(...args: Parameters<FakeLink['sendSlotState']>): void {
    super.sendSlotState(...args);
    const [, slot, generation, state] = args;
    this.#heard(slot, generation, state === SlotState.READY);
  }
}

interface Ordered {
  readonly slot: number;
  readonly boxSlot: number;
  readonly generation: number;
}

class RealPair {
  readonly devices = SLOT_NUMBERS.map(() => new FakeDevice());
  readonly box = new BoxProxy({ boxId: BOX, devices: new Map(this.devices.entries()) });
  readonly plane: BoxPlane;
  readonly hosts = new Map(
    HOSTS.map((id) => [id, new HostProxy({ hostId: id, rootSide: new FakeRoot() })]),
  );
  readonly #links = new Map<HostId, { ofBox: FakeLink; ofHost: FakeLink }>();
  readonly #plan: ClusterPlan;

  constructor(plan: ClusterPlan) {
    this.#plan = plan;
    const slots = SLOT_NUMBERS;
    this.plane = new BoxPlane({
      proxy: this.box,
      slots,
      nodeOf: (slot) => nodeOf(plan, slot),
      reasonOf: () => '',
    });
  }

  setBoxRows(now: number, rows: readonly BoxRowOrder[]): boolean {
    return this.plane.setRows(nanos(now), rows) === '';
  }

  setHostRows(now: number, id: HostId, rows: readonly Ordered[]): boolean {
    const plan = this.#plan.hosts.find((host) => host.id === id) as HostPlan;
    const table = rows.map((row): HostRow => {
      const windows = plan.windows[row.slot] as HostPlan['windows'][number];
      const { nonPrefetchableBase, prefetchableBase } = windows;
      return {
        virtualSlot: row.slot,
        used: true,
        secondaryBus: windows.secondaryBus,
        nonPrefetchable: {
          base: nonPrefetchableBase,
          limit: nonPrefetchableBase + windows.nonPrefetchableBytes - 1,
        },
        prefetchable: {
          base: prefetchableBase,
          limit: prefetchableBase + windows.prefetchableBytes - 1,
        },
        box: BOX,
        slot: row.boxSlot,
        path: PATH,
        generation: row.generation,
      };
    });
    return this.hosts.get(id)?.setTable(nanos(now), table).length === 0;
  }

  up(now: number, id: HostId): void {
    if (this.#links.has(id)) return;
    const host = this.hosts.get(id) as HostProxy;
    const ofHost = new FakeLink('box', BOX);
    const ofBox = new SpokenLink(id, (slot, generation, isReady) =>
      host.linkSlotState(
        nanos(now),
        ofHost,
        slot,
        generation,
        isReady ? SlotState.READY : SlotState.GONE,
      ),
    );
    this.#links.set(id, { ofBox, ofHost });
    host.linkUp(nanos(now), ofHost);
    this.box.linkUp(nanos(now), ofBox);
  }

  down(now: number, id: HostId): void {
    const link = this.#links.get(id);
    if (link === undefined) return;
    this.#links.delete(id);
    this.hosts.get(id)?.linkDown(nanos(now), link.ofHost, 'test');
    this.box.linkDown(nanos(now), link.ofBox, 'test');
  }
}

function nodeOf(plan: ClusterPlan, slot: number): GpuNodeReport {
  return plan.boxes.find(({ id }) => id === BOX)?.nodes[slot] as GpuNodeReport;
}

class ModelPair {
  readonly clock = new VirtualClock();
  readonly links: ModelLinks;
  readonly hardware: BoxHardware;
  readonly box: ModelBox;
  readonly hosts: ReadonlyMap<HostId, ModelHost>;

  constructor(plan: ClusterPlan) {
    const { clock } = this;
    const prng = new Prng(1);
    this.links = new ModelLinks(clock, prng);
    for (const id of HOSTS) this.links.add(id, BOX, 0);
    const boxPlan = plan.boxes.find(({ id }) => id === BOX) as ClusterPlan['boxes'][number];
    this.hardware = new BoxHardware({ ...boxPlan, nodes: boxPlan.nodes.slice(0, SLOTS) });
    const watch = { slotChanged: () => {} };
    const shared = { clock, prng, plan, links: this.links, watch, faults: {}, onChange: () => {} };
    this.box = new ModelBox({ ...shared, hardware: this.hardware });
    this.links.boxStarted(BOX, this.box);
    this.hosts = new Map(
      HOSTS.map((id) => {
        const host = plan.hosts.find((one) => one.id === id) as HostPlan;
        const model = new ModelHost({ ...shared, host, nodeAt: () => undefined });
        this.links.hostStarted(id, model);
        return [id, model];
      }),
    );
  }

  /** Everything under way arrives. */
  settle(): void {
    this.clock.runUntil(this.clock.now() + 1e9);
  }
}

const generation = fc.integer({ min: 1, max: 12 });
const slotNumber = fc.constantFrom(...SLOT_NUMBERS);
const hostId = fc.constantFrom(...HOSTS);
const op = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('box' as const),
      rows: fc.uniqueArray(fc.record({ slot: slotNumber, host: hostId, generation }), {
        selector: ({ slot }) => slot,
      }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      op: fc.constant('host' as const),
      host: hostId,
      rows: fc.uniqueArray(fc.record({ slot: slotNumber, boxSlot: slotNumber, generation }), {
        selector: ({ slot }) => slot,
      }),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ op: fc.constantFrom('up' as const, 'down' as const), host: hostId }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      op: fc.constant('defect' as const),
      slot: slotNumber,
      fails: fc.boolean(),
    }),
  },
);

/** The settings of a seed, with scrubs that take no time and fail only when told to. */
function planOf(): ClusterPlan {
  const plan = drawClusterPlan(new Prng(3));
  return { ...plan, scrubNs: 0, scrubFails: 0, scrubHangs: 0 };
}

type Op = typeof op extends fc.Arbitrary<infer T> ? T : never;

const QUARANTINED: Op[] = [
  { op: 'defect', slot: 0, fails: true },
  { op: 'host', host: 'h0', rows: [{ slot: 0, boxSlot: 0, generation: 8 }] },
  { op: 'up', host: 'h0' },
  { op: 'box', rows: [] },
  { op: 'box', rows: [{ slot: 0, host: 'h0', generation: 8 }] },
];

describe('the models follow the rules of the real proxies', () => {
  test('in what they take, refuse, and become', () => {
    fc.assert(
      fc.property(fc.array(op, { maxLength: 30 }), (ops) => {
        const plan = planOf();
        const real = new RealPair(plan);
        const model = new ModelPair(plan);
        const peers = new Map(HOSTS.map((id) => [id, new Set<string>()]));
        for (const one of ops) {
          const now = model.clock.now();
          switch (one.op) {
            case 'box': {
              const rows = one.rows.map((row) => ({ ...row, path: PATH }));
              const took = model.box.setRows(now, rows) === '';
              expect(took).toBe(real.setBoxRows(now, rows));
              break;
            }
            case 'host': {
              const rows = one.rows.map((row) => ({ ...row, box: BOX, path: PATH }));
              const took = model.hosts.get(one.host)?.setRows(now, rows) === '';
              expect(took).toBe(real.setHostRows(now, one.host, rows));
              break;
            }
            case 'up':
              peers.get(one.host)?.add(BOX);
              model.links.setPeers(one.host, peers.get(one.host) as Set<string>);
              real.up(now, one.host);
              break;
            case 'down':
              peers.get(one.host)?.clear();
              model.links.setPeers(one.host, peers.get(one.host) as Set<string>);
              real.down(now, one.host);
              break;
            case 'defect': {
              const hardware = model.hardware.nodes[one.slot];
              const device = real.devices[one.slot];
              if (hardware === undefined || device === undefined) break;
              hardware.defect = one.fails ? 'fails' : undefined;
              device.failScrub = one.fails;
              break;
            }
          }
          model.settle();
          for (const slot of SLOT_NUMBERS) {
            const shown = { ...model.box.slots()[slot], reason: '' };
            expect(shown, `box slot ${slot}`).toEqual({ ...real.plane.slots()[slot], reason: '' });
            for (const id of HOSTS) {
              const host = real.hosts.get(id) as HostProxy;
              const state = model.hosts.get(id)?.host[slot]?.state;
              expect(state, `${id} slot ${slot}`).toBe(host.slotState(slot));
            }
          }
        }
      }),
      // A row for a slot in quarantine is answered: its host waits no more.
      { numRuns: 400, examples: [[QUARANTINED]] },
    );
  });
});
