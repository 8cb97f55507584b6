/** `dxpu get`: the lists of the pool. */
import { ListPrinter, type ListShape } from '../list-printer.ts';
import { BINDINGS, BOXES, GPUS, HOSTS, PATHS } from '../pool-columns.ts';
import {
  type PoolConnection,
  poolFailure,
  type PoolOptions,
  withPool,
} from '../pool-connection.ts';
import {
  all,
  bindingPages,
  boxPages,
  gpuPages,
  hostPages,
  notFound,
  pathPages,
} from '../pool-lists.ts';
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
  const check = (): Promise<void> => checkNames(pool, kind, id, options);
  try {
    switch (kind) {
      case 'boxes':
        return await print(boxPages(pool, byId), BOXES, output, check);
      case 'hosts':
        return await print(hostPages(pool, byId), HOSTS, output, check);
      case 'gpus': {
        const byUuid = id === undefined ? {} : { uuid: id };
        const freeOnly = options.free === true;
        const filter = { ...byUuid, ...byBox, freeOnly };
        return await print(gpuPages(pool, filter), GPUS, output, check);
      }
      case 'paths':
        return await print(pathPages(pool, { ...byHost, ...byBox }), PATHS, output, check);
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
        return await print(bindingPages(pool, filter), BINDINGS, output, check);
      }
    }
  } catch (error) {
    throw poolFailure(error, pool);
  }
}

/** `check` is made of a list without items, before it says that there are none. */
async function print<T>(
  pages: AsyncIterable<readonly T[]>,
  shape: ListShape<T>,
  output: GetOptions['output'],
  check: () => Promise<void>,
): Promise<void> {
  const printer = new ListPrinter(output, shape);
  let isEmpty = true;
  for await (const page of pages) {
    isEmpty &&= page.length === 0;
    await printer.add(page);
  }
  if (isEmpty) await check();
  await printer.end();
}

/** Fails for a name that nothing of the pool has: more often a slip than a filter. */
async function checkNames(
  pool: PoolConnection,
  kind: GetKind,
  id: string | undefined,
  { host, box }: GetOptions,
): Promise<void> {
  const isNone = async (list: Parameters<typeof all>[0]): Promise<boolean> =>
    (await all(list)).length === 0;
  if (id !== undefined) {
    if (kind === 'boxes') throw notFound('box', id);
    if (kind === 'hosts') throw notFound('host', id);
    if (kind === 'gpus' && (await isNone(gpuPages(pool, { uuid: id }))))
      throw notFound('GPU node', id);
    if (kind === 'bindings' && (await isNone(bindingPages(pool, { id }))))
      throw notFound('binding', id);
  }
  if (host !== undefined && (await isNone(hostPages(pool, { id: host }))))
    throw notFound('host', host);
  if (box !== undefined && (await isNone(boxPages(pool, { id: box })))) throw notFound('box', box);
}
