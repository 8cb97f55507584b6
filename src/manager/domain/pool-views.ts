/** Answers to queries: records joined with what is observed, page by page, in the order of keys. */
import { DxpuError } from '#base/errors';
import {
  type Binding,
  bindingNumber,
  type BoxSlot,
  type Host,
  type Inventory,
  pathKey,
} from './inventory.ts';
import type {
  BindingFilter,
  BindingView,
  BoxView,
  GpuFilter,
  GpuView,
  HostView,
  PageOf,
  PathView,
} from './pool.ts';
import { bindingView, boxView, gpuState, gpuView, hostView } from './view-items.ts';
import { compareText, type SortedKeys } from './sorted-keys.ts';

const BINDING_ID = /^b[1-9][0-9]{0,15}$/;

export class PoolViews {
  readonly #inventory: Inventory;

  constructor(inventory: Inventory) {
    this.#inventory = inventory;
  }

  binding(id: string): BindingView | undefined {
    const binding = this.#inventory.bindings.get(id);
    return binding === undefined ? undefined : bindingView(binding);
  }

  bindings(filter: BindingFilter, after: string, limit: number): PageOf<BindingView> {
    if (after !== '' && !BINDING_ID.test(after)) throw wrongToken(after);
    const above = after === '' ? undefined : bindingNumber(after);
    const found = page(this.#candidates(filter, above), limit, ({ record }) => {
      const { host, box, state, requestId } = filter;
      return (
        (host === undefined || record.host === host) &&
        (box === undefined || record.box === box) &&
        (state === undefined || record.state === state) &&
        (requestId === undefined || record.requestId === requestId)
      );
    });
    return { items: found.items.map(bindingView), next: found.last?.record.id };
  }

  boxes(filter: { readonly id?: string }, after: string, limit: number): PageOf<BoxView> {
    const { boxes, boxIds } = this.#inventory;
    const found = page(named(boxes, boxIds, filter.id, after), limit, () => true);
    return { items: found.items.map(boxView), next: found.last?.id };
  }

  hosts(filter: { readonly id?: string }, after: string, limit: number): PageOf<HostView> {
    const { hosts, hostIds } = this.#inventory;
    const found = page(named(hosts, hostIds, filter.id, after), limit, () => true);
    return { items: found.items.map(hostView), next: found.last?.id };
  }

  gpus(filter: GpuFilter, after: string, limit: number): PageOf<GpuView> {
    const found = page(this.#slots(filter, after), limit, (slot) => {
      if (slot.record === undefined) return false;
      if (filter.uuid !== undefined && slot.record.node.uuid !== filter.uuid) return false;
      return filter.freeOnly !== true || gpuState(slot) === 'free';
    });
    const items = found.items.flatMap((slot) => gpuView(slot) ?? []);
    const { last } = found;
    return { items, next: last === undefined ? undefined : `${last.box.id}/${last.slot}` };
  }

  paths(
    filter: { readonly host?: string; readonly box?: string },
    after: string,
    limit: number,
  ): PageOf<PathView> {
    const found = page(this.#paths(filter, after), limit, () => true);
    const { last } = found;
    const next = last === undefined ? undefined : `${last.host}/${last.box}/${last.path}`;
    return { items: found.items, next };
  }

  *#candidates(filter: BindingFilter, above: number | undefined): Iterable<Binding> {
    const { bindings, bindingNumbers, hosts, boxes } = this.#inventory;
    const owner =
      filter.host !== undefined
        ? hosts.get(filter.host)?.slots
        : filter.box !== undefined
          ? boxes.get(filter.box)?.slots
          : undefined;
    if (filter.host !== undefined || filter.box !== undefined) {
      const own: Binding[] = [];
      for (const { binding } of owner?.values() ?? []) {
        if (binding !== undefined && binding.number > (above ?? 0)) own.push(binding);
      }
      yield* own.sort((a, b) => a.number - b.number);
      return;
    }
    for (const number of bindingNumbers.above(above)) {
      const binding = bindings.get(`b${number}`);
      if (binding !== undefined) yield binding;
    }
  }

  /** Box by box; boxes without a free GPU node are passed over where only free ones are asked for. */
  *#slots(filter: GpuFilter, after: string): Iterable<BoxSlot> {
    const { boxes, boxIds, nodes } = this.#inventory;
    const token = after === '' ? undefined : slotToken(after);
    if (filter.uuid !== undefined) {
      // Where it is now; places it was in before are found by going through all.
      const slot = nodes.get(filter.uuid);
      if (slot !== undefined) {
        if (token === undefined || isBehind(slot, token)) yield slot;
        return;
      }
    }
    const ids = filter.box === undefined ? boxIds.above(undefined) : [filter.box];
    const wanted = token === undefined || filter.box !== undefined ? ids : from(boxIds, token.box);
    for (const id of wanted) {
      const box = boxes.get(id);
      if (box === undefined || (filter.freeOnly === true && box.gpusFree === 0)) continue;
      if (token !== undefined && compareText(id, token.box) < 0) continue;
      const above = id === token?.box ? token.slot : undefined;
      for (const number of box.slotNumbers.above(above)) {
        const slot = box.slots.get(number);
        if (slot !== undefined) yield slot;
      }
    }
  }

  *#paths(
    filter: { readonly host?: string; readonly box?: string },
    after: string,
  ): Iterable<PathView> {
    const { hosts, hostIds } = this.#inventory;
    const token = after === '' ? undefined : pathToken(after);
    const ids =
      filter.host !== undefined
        ? [filter.host]
        : token === undefined
          ? hostIds.above(undefined)
          : from(hostIds, token.host);
    for (const id of ids) {
      const host = hosts.get(id);
      if (host === undefined || (token !== undefined && compareText(id, token.host) < 0)) continue;
      const behind = id === token?.host ? token.key : undefined;
      yield* pathsOf(host, filter.box, behind);
    }
  }
}

function* pathsOf(
  host: Host,
  box: string | undefined,
  behind: string | undefined,
): Iterable<PathView> {
  const start = box === undefined ? undefined : pathKey(box, '');
  const above =
    start === undefined ? behind : behind === undefined || behind < start ? start : behind;
  for (const key of host.pathKeys.above(above)) {
    const path = host.paths.get(key);
    if (path === undefined) continue;
    if (box !== undefined && path.record.box !== box) return;
    yield { ...path.record, up: path.up, problem: path.problem };
  }
}

/** At most `limit` that are wanted, and the last of them when there are more. */
function page<T>(
  candidates: Iterable<T>,
  limit: number,
  isWanted: (one: T) => boolean,
): { readonly items: T[]; readonly last: T | undefined } {
  const items: T[] = [];
  for (const one of candidates) {
    if (!isWanted(one)) continue;
    if (items.length >= limit) return { items, last: items.at(-1) };
    items.push(one);
  }
  return { items, last: undefined };
}

/** Behind `after`, in order: the one asked for, or all. */
function* named<T>(
  all: ReadonlyMap<string, T>,
  ids: SortedKeys<string>,
  only: string | undefined,
  after: string,
): Iterable<T> {
  const wanted = only === undefined ? ids.above(after === '' ? undefined : after) : [only];
  for (const id of wanted) {
    const one = all.get(id);
    if (one !== undefined && id > after) yield one;
  }
}

/** `id` itself, if it is there, and those above it. */
function* from(ids: SortedKeys<string>, id: string): Iterable<string> {
  yield id;
  yield* ids.above(id);
}

function slotToken(after: string): { readonly box: string; readonly slot: number } {
  const at = after.lastIndexOf('/');
  const slot = Number(after.slice(at + 1));
  if (at < 1 || !Number.isSafeInteger(slot)) throw wrongToken(after);
  return { box: after.slice(0, at), slot };
}

function pathToken(after: string): { readonly host: string; readonly key: string } {
  const [host, box, ...path] = after.split('/');
  if (host === undefined || box === undefined || path.length === 0) throw wrongToken(after);
  return { host, key: pathKey(box, path.join('/')) };
}

function isBehind(slot: BoxSlot, token: { readonly box: string; readonly slot: number }): boolean {
  const order = compareText(slot.box.id, token.box);
  return order > 0 || (order === 0 && slot.slot > token.slot);
}

function wrongToken(after: string): DxpuError {
  return new DxpuError(
    'invalid_argument',
    `'${after}' is no place to go on in this list: pass on what the page before said, or begin anew`,
  );
}
