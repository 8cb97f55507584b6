import { RealClock } from '#base/clock';
import { PoolCore } from '#manager/domain/pool-core';
import type { BindingState } from '#manager/domain/records';
import { ManagerShell } from '#manager/shell/manager-shell';
import type { Shell } from '#manager/shell/shell';
import { SqliteStore } from '#manager/store/sqlite-store';
import { InstantAgents, type Sizes } from './store-agents.ts';

const CALLER = { name: 'user/bench' };
/** No deadline of a binding passes during a block, however long agents are held. */
const TIMEOUT_MS = 24 * 3_600_000;

/** A whole manager but for the wire, its store on disk, its agents in the same process. */
export class BenchPool {
  readonly agents: InstantAgents;
  readonly #shell: Shell;
  readonly #store: SqliteStore;
  readonly #ended = new AbortController();
  /** Who waits for a binding to come to a state. */
  readonly #waiting = new Map<string, { readonly state: string; readonly go: () => void }>();
  #requests = 0;

  private constructor(store: SqliteStore, sizes: Sizes) {
    this.#store = store;
    this.#shell = new ManagerShell({
      store,
      clock: new RealClock(),
      makePool: (start) =>
        new PoolCore({
          ...start,
          timeouts: {
            reservedMs: TIMEOUT_MS,
            programmingMs: TIMEOUT_MS,
            attachingMs: TIMEOUT_MS,
            drainingMs: TIMEOUT_MS,
            detachingMs: TIMEOUT_MS,
            scrubbingMs: TIMEOUT_MS,
          },
        }),
      log: { info: () => {}, warn: console.error, error: console.error },
      onFatal: (error) => {
        throw error;
      },
    });
    this.agents = new InstantAgents(this.#shell, sizes);
    void this.#follow();
  }

  /** In `folder`, which is empty. Resolves once every GPU node is free. */
  static async start(folder: string, sizes: Sizes): Promise<BenchPool> {
    const pool = new BenchPool(await SqliteStore.open(folder, { version: 'bench' }), sizes);
    const gpus = sizes.zones * sizes.boxesPerZone * sizes.slotsPerBox;
    while ((await pool.#shell.read((core) => core.status())).gpusFree < gpus) {
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    return pool;
  }

  /** One GPU node for `host`, acknowledged. */
  async bind(host: string): Promise<string> {
    const answer = await this.#shell.command(CALLER, {
      kind: 'bind',
      requestId: `r${this.#requests++}`,
      demand: {
        gpus: 1,
        host,
        model: undefined,
        memoryBytes: undefined,
        sameBox: false,
        nvlink: false,
        boxKind: undefined,
        maxRttNs: undefined,
      },
      retries: true,
    });
    if (!answer.ok) {
      throw new Error('refusal' in answer ? answer.refusal.summary : answer.error.message);
    }
    const [binding] = answer.bindings;
    if (binding === undefined) throw new Error('granted, and nothing was given');
    return binding.id;
  }

  async unbind(binding: string): Promise<void> {
    const answer = await this.#shell.command(CALLER, {
      kind: 'unbind',
      requestId: `r${this.#requests++}`,
      bindings: [binding],
      force: false,
    });
    if (!answer.ok) throw new Error('refused to unbind');
  }

  /** Resolves when the log tells that `binding` came to `state`. Ask before it can have. */
  reaches(binding: string, state: BindingState | 'free'): Promise<void> {
    return new Promise((resolve) => this.#waiting.set(binding, { state, go: resolve }));
  }

  async #follow(): Promise<void> {
    const watch = this.#shell.watch({ after: 0, follow: true, signal: this.#ended.signal });
    for await (const { entries } of watch) {
      for (const { binding } of entries) {
        if (binding === undefined) continue;
        if (binding.state === 'failed') throw new Error(binding.failure?.message);
        const waits = this.#waiting.get(binding.id);
        if (waits?.state !== binding.state) continue;
        this.#waiting.delete(binding.id);
        waits.go();
      }
    }
  }

  stop(): void {
    this.#ended.abort();
    this.agents.stop();
    this.#shell.stop('the benchmark is over');
    this.#store.close();
  }
}
