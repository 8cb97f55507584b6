/** What is said of a thing the pool does not know. */
import { DxpuError } from '#base/errors';

const LISTS = { box: 'boxes', host: 'hosts', 'GPU node': 'gpus', binding: 'bindings' } as const;

export function notFound(what: keyof typeof LISTS, id: string): DxpuError {
  return new DxpuError(
    'not_found',
    `there is no ${what} ${JSON.stringify(id.slice(0, 80))}; dxpu get ${LISTS[what]} shows those ` +
      'there are',
    { details: { id } },
  );
}
