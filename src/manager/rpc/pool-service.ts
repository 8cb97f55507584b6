/** `PoolService` over a shell: checks, asks, answers. Who asks was proved by the connection. */
import { randomUUID } from 'node:crypto';
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import { identityName, identityUri } from '#identity/identity';
import * as pb from '#proto/generated/dxpu/pool/v1/pool_pb';
import { toRpcError } from '#proto/rpc-error';
import type { Caller, Command } from '../domain/commands.ts';
import type { PageOf } from '../domain/pool.ts';
import type { BindingRecord } from '../domain/records.ts';
import type { PoolReads, Shell } from '../shell/shell.ts';
import { keyOfToken, pageToken } from './page-token.ts';
import { type FaultReport, peerOf } from './peers.ts';
import * as message from './pool-messages.ts';
import * as request from './requests.ts';

export interface PoolServiceOptions {
  readonly shell: Shell;
  readonly version: string;
  readonly report: FaultReport;
}

type Implementation = ServiceImpl<typeof pb.PoolService>;

export function poolService(options: PoolServiceOptions): Implementation {
  const { shell, report } = options;
  const instance = randomUUID();
  const startedMs = Date.now();

  /** Fails as an RPC does; what is no error of ours is told to who runs the manager. */
  const failed = (thrown: unknown): Error => {
    if (!(thrown instanceof DxpuError)) report.fault(thrown);
    return toRpcError(thrown);
  };
  const answer =
    <I, O>(serve: (input: I, caller: Caller) => Promise<O>) =>
    async (input: I, context: HandlerContext): Promise<O> => {
      try {
        return await serve(input, callerOf(context));
      } catch (error) {
        throw failed(error);
      }
    };
  const stream = <I, O>(serve: (input: I, signal: AbortSignal) => AsyncIterable<O>) =>
    async function* (input: I, context: HandlerContext): AsyncGenerator<O> {
      try {
        callerOf(context);
        yield* serve(input, context.signal);
      } catch (error) {
        throw failed(error);
      }
    };

  const command = async (caller: Caller, asked: Command): Promise<pb.Binding[]> => {
    const done = await shell.command(caller, asked);
    if (!done.ok) {
      throw 'refusal' in done ? message.refusalError(done.refusal) : done.error;
    }
    return done.bindings.map((record: BindingRecord) => message.bindingMessage(record));
  };
  /** One page. `list` names the list and what it is selected by. */
  const page = async <T>(
    list: string,
    asked: { readonly pageSize: number; readonly pageToken: string },
    query: (pool: PoolReads, after: string, limit: number) => PageOf<T>,
  ): Promise<{ items: readonly T[]; nextPageToken: string }> => {
    const limit = request.pageSize(asked.pageSize);
    const after = keyOfToken(list, asked.pageToken);
    const { items, next } = await shell.read((pool) => query(pool, after, limit));
    return { items, nextPageToken: pageToken(list, next) };
  };

  return {
    getStatus: answer(async () => {
      const status = await shell.read((pool) => pool.status());
      return create(pb.GetStatusResponseSchema, {
        ...status,
        position: BigInt(status.position),
        version: options.version,
        instance,
        started: timestampFromMs(startedMs),
      });
    }),

    bind: answer(async (asked: pb.BindRequest, caller) => {
      if (asked.dryRun) {
        const demand = request.demandOf(asked.demand);
        const found = await shell.read((pool) => pool.dryRun(demand));
        if (!found.ok) throw message.refusalError(found);
        return create(pb.BindResponseSchema, { bindings: message.plannedBindings(found) });
      }
      const bindings = await command(caller, request.bindCommand(asked));
      return create(pb.BindResponseSchema, { bindings });
    }),
    unbind: answer(async (asked: pb.UnbindRequest, caller) =>
      create(pb.UnbindResponseSchema, {
        bindings: await command(caller, request.unbindCommand(asked)),
      }),
    ),
    retry: answer(async (asked: pb.RetryRequest, caller) =>
      create(pb.RetryResponseSchema, {
        bindings: await command(caller, request.retryCommand(asked)),
      }),
    ),

    explain: stream((asked: pb.ExplainRequest) => explained(shell, asked)),

    listBindings: answer(async (asked: pb.ListBindingsRequest) => {
      const { id, filter } = request.bindingFilter(asked);
      const list = JSON.stringify(['bindings', id, filter]);
      const { items, nextPageToken } = await page(list, asked, (pool, after, limit) => {
        if (id === undefined) return pool.bindings(filter, after, limit);
        const one = pool.binding(id);
        return { items: one === undefined ? [] : [one], next: undefined };
      });
      return create(pb.ListBindingsResponseSchema, {
        bindings: items.map(message.bindingViewMessage),
        nextPageToken,
      });
    }),
    listBoxes: answer(async (asked: pb.ListBoxesRequest) => {
      const filter = request.idFilter(asked);
      const list = JSON.stringify(['boxes', filter]);
      const { items, nextPageToken } = await page(list, asked, (pool, after, limit) =>
        pool.boxes(filter, after, limit),
      );
      return create(pb.ListBoxesResponseSchema, {
        boxes: items.map(message.boxMessage),
        nextPageToken,
      });
    }),
    listHosts: answer(async (asked: pb.ListHostsRequest) => {
      const filter = request.idFilter(asked);
      const list = JSON.stringify(['hosts', filter]);
      const { items, nextPageToken } = await page(list, asked, (pool, after, limit) =>
        pool.hosts(filter, after, limit),
      );
      return create(pb.ListHostsResponseSchema, {
        hosts: items.map(message.hostMessage),
        nextPageToken,
      });
    }),
    listGpus: answer(async (asked: pb.ListGpusRequest) => {
      const filter = request.gpuFilter(asked);
      const list = JSON.stringify(['gpus', filter]);
      const { items, nextPageToken } = await page(list, asked, (pool, after, limit) =>
        pool.gpus(filter, after, limit),
      );
      return create(pb.ListGpusResponseSchema, {
        gpus: items.map(message.gpuMessage),
        nextPageToken,
      });
    }),
    listPaths: answer(async (asked: pb.ListPathsRequest) => {
      const filter = request.pathFilter(asked);
      const list = JSON.stringify(['paths', filter]);
      const { items, nextPageToken } = await page(list, asked, (pool, after, limit) =>
        pool.paths(filter, after, limit),
      );
      return create(pb.ListPathsResponseSchema, {
        paths: items.map(message.pathMessage),
        nextPageToken,
      });
    }),

    watch: stream((asked: pb.WatchRequest, signal) => watched(shell, asked, signal)),
  };
}

function callerOf(context: HandlerContext): Caller {
  const identity = peerOf(context);
  if (identity.kind === 'user') return { name: identityName(identity) };
  throw new DxpuError(
    'permission_denied',
    `${identityUri(identity)} is a ${identity.kind}: PoolService is for users alone; issue a ` +
      'certificate with dxpu cert issue user NAME',
    { details: { reason: 'wrong-kind', peer: identityUri(identity) } },
  );
}

async function* explained(
  shell: Shell,
  asked: pb.ExplainRequest,
): AsyncGenerator<MessageInitShape<typeof pb.ExplainResponseSchema>> {
  const demand = request.demandOf(asked.demand);
  // Of one moment, though it takes long to send.
  const { candidates, decision } = await shell.read((pool) => ({
    candidates: asked.all ? [...pool.explain(demand)] : [],
    decision: pool.dryRun(demand),
  }));
  for (const candidate of candidates) {
    yield { message: { case: 'candidate', value: message.candidateMessage(candidate) } };
  }
  yield {
    message: decision.ok
      ? { case: 'plan', value: message.planMessage(decision) }
      : { case: 'refusal', value: message.refusalMessage(decision) },
  };
}

async function* watched(
  shell: Shell,
  asked: pb.WatchRequest,
  signal: AbortSignal,
): AsyncGenerator<MessageInitShape<typeof pb.WatchResponseSchema>> {
  let wasCaughtUp = false;
  for await (const seen of shell.watch({ ...request.watchRequest(asked), signal })) {
    for (const entry of seen.entries) {
      yield { entry: message.logMessage(entry), position: BigInt(entry.position) };
    }
    if (seen.caughtUp && !wasCaughtUp) yield { position: BigInt(seen.position) };
    wasCaughtUp ||= seen.caughtUp;
  }
}
