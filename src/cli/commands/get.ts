/** `dxpu get`: the lists of the pool. */
import { ListPrinter, type ListShape } from '../list-printer.ts';
import { BINDINGS, BOXES, GPUS, HOSTS, PATHS } from '../pool-columns.ts';
import {
  type PoolConnection,
  poolFailure,
  type PoolOptions,
  withPool,
} from '../pool-connection.ts';
import { bindingPages, boxPages, gpuPages, hostPages, pathPages } from '../pool-lists.ts';
import { stateOfWord } from '../pool-plain.ts';
import type { GetKind } from '../pool-words.ts';

export interface GetOptions extends PoolOptions {
  readonly host?: string;
  readonly box?: string;
  /** A word of `STATE_WORDS`. */
  readonly bindingState?: string;
  readonly requestId?: string;
  readonly free?: boolean;
}

/** All that fit, or the one named by `id`. */
export function get(kind: GetKind, id: string | undefined, options: GetOptions): Promise<void> {
  return withPool(options, (pool) => getFrom(pool, kind, id, options));
}

export async function getFrom(
  pool: PoolConnection,
  kind: GetKind,
  id: string | undefined,
  options: GetOptions,
): Promise<void> {
  const { output, host, box } = options;
  const byId = id === undefined ? {} : { id };
  const byHost = host === undefined ? {} : { host };
  const byBox = box === undefined ? {} : { box };
  try {
    switch (kind) {
      case 'boxes':
        return await print(boxPages(pool, byId), BOXES, output);
      case 'hosts':
        return await print(hostPages(pool, byId), HOSTS, output);
      case 'gpus': {
        const byUuid = id === undefined ? {} : { uuid: id };
        const freeOnly = options.free === true;
        return await print(gpuPages(pool, { ...byUuid, ...byBox, freeOnly }), GPUS, output);
      }
      case 'paths':
        return await print(pathPages(pool, { ...byHost, ...byBox }), PATHS, output);
      case 'bindings': {
        const state = stateOfWord(options.bindingState ?? '');
        const { requestId } = options;
        const filter = {
          ...byId,
          ...byHost,
          ...byBox,
          ...(state === undefined ? {} : { state }),
          ...(requestId === undefined ? {} : { requestId }),
        };
        return await print(bindingPages(pool, filter), BINDINGS, output);
      }
    }
  } catch (error) {
    throw poolFailure(error, pool);
  }
}

async function print<T>(
  pages: AsyncIterable<readonly T[]>,
  shape: ListShape<T>,
  output: GetOptions['output'],
): Promise<void> {
  const printer = new ListPrinter(output, shape);
  for await (const page of pages) await printer.add(page);
  await printer.end();
}
