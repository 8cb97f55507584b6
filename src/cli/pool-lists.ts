/** The lists of the pool, page by page. */
import { DxpuError } from '#base/errors';
import type {
  Binding,
  BindingState,
  Box,
  Gpu,
  Host,
  Path,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { PoolConnection } from './pool-connection.ts';

/** What the manager gives at most in one answer. */
const PAGE_SIZE = 1000;

type Pages<T> = AsyncGenerator<readonly T[]>;

interface PageRequest {
  readonly pageSize: number;
  readonly pageToken: string;
}

async function* pages<A extends { readonly nextPageToken: string }, T>(
  ask: (request: PageRequest) => Promise<A>,
  itemsOf: (answer: A) => readonly T[],
): Pages<T> {
  let pageToken = '';
  do {
    const answer = await ask({ pageSize: PAGE_SIZE, pageToken });
    yield itemsOf(answer);
    pageToken = answer.nextPageToken;
  } while (pageToken !== '');
}

export interface BindingFilter {
  readonly id?: string;
  readonly host?: string;
  readonly box?: string;
  readonly state?: BindingState;
  readonly requestId?: string;
}

export const bindingPages = ({ pool }: PoolConnection, filter: BindingFilter): Pages<Binding> =>
  pages(
    (page) => pool.listBindings({ ...filter, ...page }),
    ({ bindings }) => bindings,
  );

export const boxPages = ({ pool }: PoolConnection, filter: { readonly id?: string }): Pages<Box> =>
  pages(
    (page) => pool.listBoxes({ ...filter, ...page }),
    ({ boxes }) => boxes,
  );

export const hostPages = (
  { pool }: PoolConnection,
  filter: { readonly id?: string },
): Pages<Host> =>
  pages(
    (page) => pool.listHosts({ ...filter, ...page }),
    ({ hosts }) => hosts,
  );

export interface GpuFilter {
  readonly uuid?: string;
  readonly box?: string;
  readonly freeOnly?: boolean;
}

export const gpuPages = ({ pool }: PoolConnection, filter: GpuFilter): Pages<Gpu> =>
  pages(
    (page) => pool.listGpus({ ...filter, ...page }),
    ({ gpus }) => gpus,
  );

export const pathPages = (
  { pool }: PoolConnection,
  filter: { readonly host?: string; readonly box?: string },
): Pages<Path> =>
  pages(
    (page) => pool.listPaths({ ...filter, ...page }),
    ({ paths }) => paths,
  );

/** All of it at once: for lists that are short by nature. */
export async function all<T>(list: Pages<T>): Promise<T[]> {
  const items: T[] = [];
  for await (const page of list) items.push(...page);
  return items;
}

const LISTS = { box: 'boxes', host: 'hosts', 'GPU node': 'gpus', binding: 'bindings' } as const;

/** What is said of a thing the pool does not know. */
export function notFound(what: keyof typeof LISTS, id: string): DxpuError {
  return new DxpuError(
    'not_found',
    `there is no ${what} ${JSON.stringify(id.slice(0, 80))}; dxpu get ${LISTS[what]} shows those ` +
      'there are',
    { details: { id } },
  );
}
