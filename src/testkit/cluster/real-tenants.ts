/**
 * Programs on real hosts: each finds an empty device behind its function, writes into it who it is, and
 * looks again and again whether that is still there. What they hold, and how what they see fits the store,
 * is the end-to-end check of the invariants 2, 4 and 5.
 */
import type { Prng } from '#base/prng';
import type { Nanos } from '#base/units';
import { memoryRead, memoryWrite } from '#host/host-operations';
import type { SoftHost } from '#host/root-complex';
import type { Task } from '#host/task';
import { ClusterInvariant, type ClusterOracle } from './cluster-oracle.ts';
import type { RealHost } from './real-proxies.ts';
import type { StoreMirror } from './store-mirror.ts';

const { FENCED, STORE_OWNS } = ClusterInvariant;

/** Of the reference accelerator: its device memory. */
const MEMORY_BAR = 2;

interface Tenancy {
  readonly generation: number;
  hasWritten: boolean;
  isLooking: boolean;
  foundNs: number;
}

export interface RealTenantsOptions {
  readonly oracle: ClusterOracle;
  readonly prng: Prng;
  readonly mirror: StoreMirror;
  readonly hosts: () => Iterable<RealHost>;
  /** Nothing was wrong with these processes and what is between them for a while. */
  readonly isCalm: (host: string, box: string) => boolean;
}

export class RealTenants {
  readonly #options: RealTenantsOptions;
  readonly #tenancies = new Map<string, Tenancy>();

  constructor(options: RealTenantsOptions) {
    this.#options = options;
  }

  /** When the tenant of a generation last found what it had written; 0 while it has not. */
  foundNs(generation: number): number {
    for (const one of this.#tenancies.values()) {
      if (one.generation === generation) return one.foundNs;
    }
    return 0;
  }

  /** Every program does what it does. */
  look(now: Nanos): void {
    for (const host of this.#options.hosts()) {
      if (host.isDead) continue;
      for (const report of host.slots()) {
        const { row, function: fn, slot } = report;
        const bar = fn?.bars.find(({ index }) => index === MEMORY_BAR);
        if (row === undefined || bar === undefined || report.state !== 'ready') continue;
        const tenancy = this.#of(`${host.id} ${slot}`, row.generation);
        if (tenancy.isLooking || host.node.plane.isLeaving(slot)) continue;
        this.#visit(now, host, slot, row.box, bar.address, tenancy);
      }
    }
  }

  #of(key: string, generation: number): Tenancy {
    let tenancy = this.#tenancies.get(key);
    if (tenancy?.generation !== generation) {
      tenancy = { generation, hasWritten: false, isLooking: false, foundNs: 0 };
      this.#tenancies.set(key, tenancy);
    }
    return tenancy;
  }

  #visit(
    now: Nanos,
    host: RealHost,
    slot: number,
    box: string,
    address: number,
    tenancy: Tenancy,
  ): void {
    const { prng, oracle } = this.#options;
    const { soft, plane } = host.node;
    const { generation } = tenancy;
    // Some hold the function while they look, some do not: both must end well.
    const release = prng.chance(0.5) ? plane.hold(now, slot) : undefined;
    const wasOwned = this.#isAttached(generation);
    tenancy.isLooking = true;
    oracle.counts.up('tenants looked');
    soft.tasks.run(now, look(soft, address, generation, tenancy.hasWritten), (then, outcome) => {
      tenancy.isLooking = false;
      release?.(then);
      if (!outcome.ok || host.isDead) return;
      const { status, found } = outcome.value;
      const what = `${host.id}/${slot} under generation ${generation}`;
      if (status !== 0) {
        const isExcused = !wasOwned || !this.#isAttached(generation);
        if (isExcused || !this.#options.isCalm(host.id, box)) return;
        oracle.fail(STORE_OWNS, `${what} cannot be read, though it is attached`);
        return;
      }
      const expected = tenancy.hasWritten ? generation : 0;
      if (found !== expected) oracle.fail(FENCED, `${what} finds ${found}, not ${expected}`);
      if (tenancy.hasWritten) tenancy.foundNs = then;
      tenancy.hasWritten = true;
    });
    host.node.settle();
  }

  #isAttached(generation: number): boolean {
    return this.#options.mirror.bindingOf(generation)?.state === 'attached';
  }
}

/** Reads what is there; the first time it then writes who it is. */
function* look(
  soft: SoftHost,
  address: number,
  generation: number,
  hasWritten: boolean,
): Task<{ readonly status: number; readonly found: number }> {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  const status = yield* memoryRead(soft, address, bytes);
  const found = view.getFloat64(0, true);
  if (status === 0 && !hasWritten) {
    view.setFloat64(0, generation, true);
    yield* memoryWrite(soft, address, bytes);
  }
  return { status, found };
}
