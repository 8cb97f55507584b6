/** A manager for tests of what asks it: answers are written by the test, the log is kept here. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { Code, ConnectError, createClient, createRouterTransport } from '@connectrpc/connect';
import type { ServiceImpl } from '@connectrpc/connect';
import type { PoolClient } from '#manager/rpc/pool-client';
import {
  type LogEntry,
  LogEntrySchema,
  PoolService,
  type WatchRequest,
  WatchResponseSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { fromRpcError } from '#proto/rpc-error';

type Answers = Partial<ServiceImpl<typeof PoolService>>;

/** Calls arrive over a transport in memory; errors come back as they do over the real one. */
export class FakePool implements PoolClient {
  readonly address = '127.0.0.1:7400';
  readonly pool: PoolClient['pool'];
  readonly log: LogEntry[] = [];
  /** Where each Watch began. */
  readonly watchedFrom: number[] = [];
  readonly #wake = new Set<() => void>();
  #isCut = false;
  #cuts = 0;

  constructor(answers: Answers) {
    const transport = createRouterTransport(({ service }) => {
      service(PoolService, {
        getStatus: () => ({ position: BigInt(this.log.length) }),
        watch: (request, context) => this.#watch(request, context.signal),
        ...answers,
      });
    });
    this.pool = withErrors(createClient(PoolService, transport));
  }

  close(): void {}

  append(entry: MessageInitShape<typeof LogEntrySchema>): void {
    const position = BigInt(this.log.length + 1);
    this.log.push(create(LogEntrySchema, { ...entry, position }));
    this.#wakeAll();
  }

  /** Streams break, and none comes to be until `mend`. */
  cut(): void {
    this.#isCut = true;
    this.#cuts++;
    this.#wakeAll();
  }

  mend(): void {
    this.#isCut = false;
  }

  #wakeAll(): void {
    for (const wake of this.#wake) wake();
    this.#wake.clear();
  }

  async *#watch(request: WatchRequest, signal: AbortSignal) {
    this.watchedFrom.push(Number(request.after));
    const cuts = this.#cuts;
    const check = (): void => {
      if (!this.#isCut && cuts === this.#cuts) return;
      // As the library tells of a process that is gone.
      const code = this.#isCut ? Code.Unavailable : Code.Canceled;
      throw new ConnectError('the connection was lost', code);
    };
    check();
    let position = Number(request.after);
    if (position > this.log.length) throw new ConnectError('no such position', Code.OutOfRange);
    for (;;) {
      for (; position < this.log.length; position++) {
        const entry = this.log[position];
        if (request.binding !== '' && entry?.binding?.id !== request.binding) continue;
        if (entry === undefined) continue;
        yield create(WatchResponseSchema, { entry, position: entry.position });
      }
      yield create(WatchResponseSchema, { position: BigInt(position) });
      if (!request.follow) return;
      await new Promise<void>((resolve) => {
        this.#wake.add(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
      if (signal.aborted) return;
      check();
    }
  }
}

/** As the real client has it: every failure is a `DxpuError`. */
function withErrors(client: PoolClient['pool']): PoolClient['pool'] {
  return new Proxy(client, {
    get(target, name) {
      const call = Reflect.get(target, name) as (...args: unknown[]) => unknown;
      return (...args: unknown[]) => {
        const result = call(...args);
        return result instanceof Promise
          ? result.catch((error: unknown) => {
              throw fromRpcError(error);
            })
          : mapped(result as AsyncIterable<unknown>);
      };
    },
  });
}

async function* mapped(stream: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  try {
    yield* stream;
  } catch (error) {
    throw fromRpcError(error);
  }
}
