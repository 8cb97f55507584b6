/**
 * Agents in the manager's own process that answer each order at once, so that what is measured is the
 * manager: no wire, no proxies. Each speaks when the turn is over in which it was told.
 */
import type {
  AgentHello,
  AgentReport,
  BoxOrder,
  BoxSlotReport,
  HostOrder,
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

  /** Opens a session for each agent; all have reported once the turn is over. */
  constructor(shell: Shell, sizes: Sizes) {
    const hosts: string[] = [];
    for (let zone = 0; zone < sizes.zones; zone++) {
      for (let box = 0; box < sizes.boxesPerZone; box++) {
        openBox(shell, this.#voice, `b${zone}-${box}`, `z${zone}`, sizes.slotsPerBox);
      }
      for (let host = 0; host < sizes.hostsPerZone; host++) {
        const id = `h${zone}-${host}`;
        hosts.push(id);
        openHost(shell, this.#voice, id, `z${zone}`, sizes.slotsPerHost);
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
}

function open(
  shell: Shell,
  hello: AgentHello,
  order: (session: AgentSession, order: BoxOrder | HostOrder) => void,
): AgentSession {
  const session = shell.openSession(hello, {
    order: (given) => order(session, given),
    end: (error) => {
      throw error;
    },
  });
  return session;
}

function openBox(shell: Shell, voice: Voice, id: string, zone: string, slots: number): void {
  const reports: BoxSlotReport[] = Array.from({ length: slots }, (_, slot) => ({
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
  const hello: AgentHello = {
    kind: 'box',
    id,
    instance: '1',
    version: 'bench',
    boxKind: 'pcie',
    zone,
    endpoints: [{ path: 'p', address: '127.0.0.1:1' }],
  };
  const session = open(shell, hello, (to, order) => {
    if (order.kind !== 'box') return;
    const changed: BoxSlotReport[] = [];
    for (const { slot, row } of order.slots) {
      const before = reports[slot];
      if (before === undefined) continue;
      const now: BoxSlotReport = {
        ...before,
        state: row === undefined ? 'unused' : 'ready',
        clean: row === undefined,
        row: row === undefined ? undefined : { host: row.host, generation: row.generation },
      };
      reports[slot] = now;
      changed.push(now);
    }
    voice.say(() => to.report(boxReport(order.revision, false, changed)));
  });
  session.report(boxReport(0, true, reports));
}

function boxReport(applied: number, whole: boolean, slots: readonly BoxSlotReport[]): AgentReport {
  return { kind: 'box', applied, whole, slots: [...slots], refused: '' };
}

function openHost(shell: Shell, voice: Voice, id: string, zone: string, slots: number): void {
  const reports: HostSlotReport[] = Array.from({ length: slots }, (_, slot) => ({
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
  const hello: AgentHello = { kind: 'host', id, instance: '1', version: 'bench', reach: [zone] };
  const session = open(shell, hello, (to, order) => {
    if (order.kind !== 'host') return;
    const changed: HostSlotReport[] = [];
    for (const { slot, row, plugged } of order.slots) {
      const before = reports[slot];
      if (before === undefined) continue;
      const now: HostSlotReport = {
        ...before,
        row:
          row === undefined
            ? undefined
            : { box: row.box, boxSlot: row.boxSlot, generation: row.generation },
        state: row === undefined ? 'unused' : 'ready',
        function: row !== undefined && plugged ? functionIn(before) : undefined,
      };
      reports[slot] = now;
      changed.push(now);
    }
    const paths: PathReport[] = (order.peers ?? []).flatMap(({ box, endpoints }) =>
      endpoints.map(({ path }) => ({
        box,
        path,
        up: true,
        rttNs: 2000,
        bitsPerSecond: 1e11,
        problem: '',
      })),
    );
    voice.say(() =>
      to.report({
        kind: 'host',
        applied: order.revision,
        whole: false,
        slots: changed,
        paths,
        refused: '',
      }),
    );
  });
  session.report({ kind: 'host', applied: 0, whole: true, slots: reports, paths: [], refused: '' });
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
