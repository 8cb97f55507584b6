import { expect } from 'vitest';
import { askProcess, callProcess } from '#cli/control-client';
import type { KnownProcess } from '#cli/state-folder';
import { until } from './until.ts';

interface Links {
  readonly links: readonly {
    readonly sessionId: number;
    readonly counters: Readonly<Record<string, unknown>>;
  }[];
}

/** An sgemm loop on a host, each result checked there, which must not notice what happens elsewhere. */
export class Bystander {
  readonly #host: KnownProcess;
  readonly #stop = new AbortController();
  readonly #over: Promise<unknown>;
  #iterations = 0;
  #links: unknown;
  #error: unknown;

  private constructor(host: KnownProcess, slot: number) {
    this.#host = host;
    const job = { kernel: 'sgemm', slot, m: 16, n: 16, k: 16, seed: 1, iterations: 1e9 };
    this.#over = callProcess(host, 'run', job, {
      signal: this.#stop.signal,
      onEvent: (event) => {
        const { iteration } = event as { iteration: number };
        // The first one that is missing or late stays the error.
        if (iteration !== this.#iterations) {
          this.#error ??= new Error(`iteration ${iteration} came after ${this.#iterations - 1}`);
        }
        this.#iterations++;
      },
    }).catch((error: unknown) => {
      if (!this.#stop.signal.aborted) this.#error ??= error;
    });
  }

  /** Returns once it computes. */
  static async start(host: KnownProcess, slot: number): Promise<Bystander> {
    const bystander = new Bystander(host, slot);
    await bystander.#computes();
    bystander.#links = await bystander.#sessions();
    return bystander;
  }

  async #computes(): Promise<void> {
    const before = this.#iterations;
    await until(
      () => {
        if (this.#error !== undefined) throw this.#error;
        return this.#iterations > before ? true : undefined;
      },
      'the bystander to compute',
      30_000,
    );
  }

  /** Sessions of its link, and connections lost in them. */
  async #sessions(): Promise<unknown> {
    const { links } = (await askProcess(this.#host, 'status', {})) as Links;
    return links.map(({ sessionId, counters }) => ({
      sessionId,
      sessions: counters['sessions'],
      sessionsLost: counters['sessionsLost'],
      connectionsLost: counters['connectionsLost'],
      resumes: counters['resumes'],
    }));
  }

  /** Fails unless it goes on, has missed no iteration, and its link is the one it began with. */
  async goesOn(): Promise<void> {
    await this.#computes();
    expect(await this.#sessions()).toEqual(this.#links);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#over;
  }
}
