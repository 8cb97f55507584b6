/**
 * Agents in the manager's own process that answer each order at once, so that what is measured is the
 * manager: no wire, no proxies. Each speaks when the turn is over in which it was told.
 */
import type {
  AgentHello,
  AgentOrder,
  AgentReport,
  BoxSlotReport,
  HostSlotReport,
  PathReport,
} from '#proto/agent-messages';
import type { AgentSession, Shell } from '#manager/shell/shell';

const MIB = 2 ** 20;
const BAR0_BYTES = 4096;
const BAR2_BYTES = 16 * MIB;
/** Windows of a virtual slot: 1 MiB below 4 GiB, 16 MiB above. */
const NON_PREFETCHABLE_BASE = 0xe000_0000;
const PREFETCHABLE_BASE = 2 ** 38;
const COME_BACK_MS = 5;

export interface Sizes {
  /** Hosts and boxes of a zone see each other and nobody else. */
  readonly zones: number;
  readonly boxesPerZone: number;
  readonly slotsPerBox: number;
  readonly hostsPerZone: number;
  readonly slotsPerHost: number;
}

/** Which answers wait: while `held` is true they are kept, and go out when `release` is called. */
class Voice {
  #held: (() => void)[] | undefined;

  hold(): void {
    this.#held ??= [];
  }

  release(): void {
    const held = this.#held ?? [];
    this.#held = undefined;
    for (const speak of held) speak();
  }

  say(speak: () => void): void {
    if (this.#held === undefined) queueMicrotask(speak);
    else this.#held.push(speak);
  }
}

export class InstantAgents {
  readonly hosts: readonly string[];
  readonly #voice = new Voice();
  readonly #agents: Agent[] = [];

  /** Opens a session for each agent; all have reported once the turn is over. */
  constructor(shell: Shell, sizes: Sizes) {
    const hosts: string[] = [];
    for (let zone = 0; zone < sizes.zones; zone++) {
      for (let box = 0; box < sizes.boxesPerZone; box++) {
        const plane = new InstantBox(`b${zone}-${box}`, `z${zone}`, sizes.slotsPerBox);
        this.#agents.push(new Agent(shell, this.#voice, plane));
      }
      for (let host = 0; host < sizes.hostsPerZone; host++) {
        const id = `h${zone}-${host}`;
        hosts.push(id);
        const plane = new InstantHost(id, `z${zone}`, sizes.slotsPerHost);
        this.#agents.push(new Agent(shell, this.#voice, plane));
      }
    }
    this.hosts = hosts;
  }

  /** No agent answers any more. */
  hold(): void {
    this.#voice.hold();
  }

  /** All say what they have to say, and go on answering at once. */
  release(): void {
    this.#voice.release();
  }

  /** They leave and do not come back. */
  stop(): void {
    for (const agent of this.#agents) agent.stop();
  }
}

/** What an agent reports and takes orders for. */
interface Plane {
  readonly hello: AgentHello;
  whole(): AgentReport;
  /** Puts an order in force, and says what changed by it. */
  apply(order: AgentOrder): AgentReport;
}

/** One agent, which comes back when the manager ends its session. */
class Agent {
  readonly #shell: Shell;
  readonly #voice: Voice;
  readonly #plane: Plane;
  #session: AgentSession | undefined;
  #retry: NodeJS.Timeout | undefined;
  #isStopped = false;

  constructor(shell: Shell, voice: Voice, plane: Plane) {
    this.#shell = shell;
    this.#voice = voice;
    this.#plane = plane;
    this.#open();
  }

  #open(): void {
    try {
      const session = this.#shell.openSession(this.#plane.hello, {
        order: (order) => {
          const report = this.#plane.apply(order);
          this.#voice.say(() => session.report(report));
        },
        end: () => this.#comeBack(),
      });
      this.#session = session;
      session.report(this.#plane.whole());
    } catch {
      // The manager has just lost a commit, and takes nobody yet.
      this.#comeBack();
    }
  }

  #comeBack(): void {
    if (!this.#isStopped) this.#retry = setTimeout(() => this.#open(), COME_BACK_MS);
  }

  stop(): void {
    this.#isStopped = true;
    clearTimeout(this.#retry);
    this.#session?.close();
  }
}

class InstantBox implements Plane {
  readonly hello: AgentHello;
  readonly #slots: BoxSlotReport[];

  constructor(id: string, zone: string, slots: number) {
    this.hello = {
      kind: 'box',
      id,
      instance: '1',
      version: 'bench',
      boxKind: 'pcie',
      zone,
      endpoints: [{ path: 'p', address: '127.0.0.1:1' }],
    };
    this.#slots = Array.from({ length: slots }, (_, slot) => ({
      slot,
      node: {
        uuid: `${id}-${slot}`,
        model: 'accel',
        memoryBytes: BAR2_BYTES,
        nvlinkGroup: '',
        bars: [
          { index: 0, sizeBytes: BAR0_BYTES, prefetchable: false, is64: false },
          { index: 2, sizeBytes: BAR2_BYTES, prefetchable: true, is64: true },
        ],
      },
      state: 'unused',
      clean: true,
      row: undefined,
      reason: '',
    }));
  }

  whole(): AgentReport {
    return { kind: 'box', applied: 0, whole: true, slots: [...this.#slots], refused: '' };
  }

  apply(order: AgentOrder): AgentReport {
    const changed: BoxSlotReport[] = [];
    for (const { slot, row } of order.kind === 'box' ? wholly(order, this.#slots.length) : []) {
      const before = this.#slots[slot];
      if (before === undefined) continue;
      const now: BoxSlotReport = {
        ...before,
        state: row === undefined ? 'unused' : 'ready',
        clean: row === undefined,
        row: row === undefined ? undefined : { host: row.host, generation: row.generation },
      };
      this.#slots[slot] = now;
      changed.push(now);
    }
    return { kind: 'box', applied: order.revision, whole: false, slots: changed, refused: '' };
  }
}

class InstantHost implements Plane {
  readonly hello: AgentHello;
  readonly #slots: HostSlotReport[];

  constructor(id: string, zone: string, slots: number) {
    this.hello = { kind: 'host', id, instance: '1', version: 'bench', reach: [zone] };
    this.#slots = Array.from({ length: slots }, (_, slot) => ({
      slot,
      secondaryBus: slot + 1,
      nonPrefetchable: windowOf(NON_PREFETCHABLE_BASE, slot, MIB),
      prefetchable: windowOf(PREFETCHABLE_BASE, slot, BAR2_BYTES),
      row: undefined,
      state: 'unused',
      function: undefined,
      inUse: false,
      problem: undefined,
      reason: '',
    }));
  }

  whole(): AgentReport {
    const slots = [...this.#slots];
    return { kind: 'host', applied: 0, whole: true, slots, paths: [], refused: '' };
  }

  apply(order: AgentOrder): AgentReport {
    const changed: HostSlotReport[] = [];
    const peers = order.kind === 'host' ? (order.peers ?? []) : [];
    for (const { slot, row, plugged } of order.kind === 'host'
      ? wholly(order, this.#slots.length)
      : []) {
      const before = this.#slots[slot];
      if (before === undefined) continue;
      const now: HostSlotReport = {
        ...before,
        row: row && { box: row.box, boxSlot: row.boxSlot, generation: row.generation },
        state: row === undefined ? 'unused' : 'ready',
        function: row !== undefined && plugged ? functionIn(before) : undefined,
      };
      this.#slots[slot] = now;
      changed.push(now);
    }
    const paths: PathReport[] = peers.flatMap(({ box, endpoints }) =>
      endpoints.map(({ path }) => ({
        box,
        path,
        up: true,
        rttNs: 2000,
        bitsPerSecond: 1e11,
        problem: '',
      })),
    );
    const applied = order.revision;
    return { kind: 'host', applied, whole: false, slots: changed, paths, refused: '' };
  }
}

/** The slots of an order; of a whole one also those it does not name, which hold nothing. */
function wholly<S extends { readonly slot: number }>(
  order: { readonly whole: boolean; readonly slots: readonly S[] },
  count: number,
): readonly (S | { readonly slot: number; readonly row: undefined; readonly plugged: false })[] {
  if (!order.whole) return order.slots;
  const named = new Map(order.slots.map((one) => [one.slot, one]));
  return Array.from(
    { length: count },
    (_, slot) => named.get(slot) ?? { slot, row: undefined, plugged: false },
  );
}

function windowOf(from: number, slot: number, sizeBytes: number): { base: number; limit: number } {
  const base = from + slot * sizeBytes;
  return { base, limit: base + sizeBytes - 1 };
}

function functionIn(slot: HostSlotReport): NonNullable<HostSlotReport['function']> {
  return {
    bdf: slot.secondaryBus << 8,
    vendorId: 0x1234,
    deviceId: 1,
    bars: [
      { index: 0, address: slot.nonPrefetchable.base, sizeBytes: BAR0_BYTES },
      { index: 2, address: slot.prefetchable.base, sizeBytes: BAR2_BYTES },
    ],
    memoryEnable: true,
    busMaster: true,
  };
}
