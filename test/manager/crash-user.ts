/** Who asks for bindings in a crash test, and asks again whenever a manager has died over it. */
import { expect } from 'vitest';
import { DxpuError } from '#base/errors';
import type { PoolClient } from '#manager/rpc/pool-client';
import { type Binding, BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { until } from './until.ts';

/** Longer than anything takes here. */
export const PATIENCE_MS = 30_000;

type Pool = PoolClient['pool'];

export class CrashUser {
  readonly #client: PoolClient;
  #requests = 0;

  constructor(client: PoolClient) {
    this.#client = client;
  }

  close(): void {
    this.#client.close();
  }

  /** Calls again and again, with the same request, until a manager answers. */
  async persist<T>(call: (pool: Pool) => Promise<T>, alsoOn: readonly string[] = []): Promise<T> {
    const again = new Set(['unavailable', 'cancelled', 'deadline_exceeded', ...alsoOn]);
    const deadlineMs = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await call(this.#client.pool);
      } catch (error) {
        const { code } = DxpuError.from(error);
        if (!again.has(code) || Date.now() > deadlineMs) throw error;
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    }
  }

  /** One GPU node for a host, as soon as there is one. */
  async bind(host = 'h1'): Promise<string> {
    const [binding] = await this.bindSome(host, 1);
    return binding!.id;
  }

  /** All in one request. */
  async bindSome(host: string, gpus: number): Promise<readonly Binding[]> {
    const requestId = `bind-${this.#requests++}`;
    const { bindings } = await this.persist(
      (pool) => pool.bind({ requestId, demand: { gpus, host } }),
      ['resource_exhausted'],
    );
    expect(bindings).toHaveLength(gpus);
    return bindings;
  }

  async unbind(bindings: readonly string[], force = false): Promise<void> {
    const requestId = `unbind-${this.#requests++}`;
    await this.persist((pool) => pool.unbind({ requestId, bindings: [...bindings], force }));
  }

  async retry(bindings: readonly string[]): Promise<void> {
    const requestId = `retry-${this.#requests++}`;
    await this.persist((pool) => pool.retry({ requestId, bindings: [...bindings] }));
  }

  async binding(id: string): Promise<Binding | undefined> {
    return (await this.persist((pool) => pool.listBindings({ id }))).bindings[0];
  }

  async bindingsOf(host: string): Promise<readonly Binding[]> {
    return (await this.persist((pool) => pool.listBindings({ host }))).bindings;
  }

  reaches(id: string, state: keyof typeof BindingState): Promise<Binding> {
    let now: Binding | undefined;
    return until(
      async () => {
        now = await this.binding(id);
        return now?.state === BindingState[state] ? now : undefined;
      },
      () => {
        const { state: is, failure } = now ?? {};
        const name = Object.entries(BindingState).find(([, value]) => value === is)?.[0] ?? 'gone';
        return `binding ${id} to be ${state}: it is ${name} ${failure?.reason ?? ''} ${failure?.message ?? ''}`;
      },
      PATIENCE_MS,
    );
  }

  isGone(id: string): Promise<true> {
    return until(
      async () => ((await this.binding(id)) === undefined ? true : undefined),
      `binding ${id} to be gone`,
      PATIENCE_MS,
    );
  }

  /** All that the manager has written down, for people. */
  async log(): Promise<readonly string[]> {
    const lines = [];
    for await (const { entry } of this.#client.pool.watch({})) {
      lines.push(`${entry?.subject} ${entry?.action}: ${entry?.message}`);
    }
    return lines;
  }
}
