/** Requests of users as checked values. What cannot be is `invalid_argument` and names the field. */
import { isIdentityName } from '#identity/identity';
import { type Demand, MAX_GPUS } from '#placement/demand';
import * as pb from '#proto/generated/dxpu/pool/v1/pool_pb';
import { distinct, name, safeNumber, wholeNumber, wireError, word } from '#proto/wire-fields';
import type { BindCommand, RetryCommand, UnbindCommand } from '../domain/commands.ts';
import type { BindingFilter } from '../domain/pool.ts';
import { bindingState } from './pool-messages.ts';

const BOX_KINDS = ['pcie', 'nvswitch'] as const;
const MAX_BINDINGS = 10_000;
const DEFAULT_PAGE = 100;
const MAX_PAGE = 1000;
const REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/;

export function demandOf(demand: pb.Demand | undefined): Demand {
  if (demand === undefined) throw wireError('', 'demand', 'is missing');
  const at = 'demand';
  const boxKind = BOX_KINDS.find((kind) => kind === demand.boxKind);
  if (boxKind === undefined && demand.boxKind !== '') {
    throw wireError(at, 'box_kind', `${shown(demand.boxKind)} is none of ${BOX_KINDS.join(', ')}`);
  }
  const rttNs = demand.maxRoundTripNs;
  if (!(rttNs >= 0 && rttNs < Infinity)) {
    throw wireError(at, 'max_round_trip_ns', `${rttNs} is not a finite number from 0`);
  }
  if (demand.gpus === 0) throw wireError(at, 'gpus', `is missing: 1 to ${MAX_GPUS} GPU nodes`);
  return {
    gpus: wholeNumber(at, 'gpus', demand.gpus, MAX_GPUS),
    host: name(at, 'host', demand.host),
    model: demand.model === '' ? undefined : word(at, 'model', demand.model),
    memoryBytes:
      demand.memoryBytes === 0n ? undefined : safeNumber(at, 'memory_bytes', demand.memoryBytes),
    sameBox: demand.sameBox,
    nvlink: demand.nvlink,
    boxKind,
    maxRttNs: rttNs === 0 ? undefined : rttNs,
  };
}

export function bindCommand(request: pb.BindRequest): BindCommand {
  return {
    kind: 'bind',
    requestId: requestIdOf(request.requestId),
    demand: demandOf(request.demand),
    retries: !request.noRetry,
  };
}

export function unbindCommand(request: pb.UnbindRequest): UnbindCommand {
  return {
    kind: 'unbind',
    requestId: requestIdOf(request.requestId),
    bindings: bindingsOf(request.bindings),
    force: request.force,
  };
}

export function retryCommand(request: pb.RetryRequest): RetryCommand {
  return {
    kind: 'retry',
    requestId: requestIdOf(request.requestId),
    bindings: bindingsOf(request.bindings),
  };
}

function requestIdOf(id: string): string {
  if (REQUEST_ID.test(id)) return id;
  throw wireError(
    '',
    'request_id',
    id === ''
      ? 'is missing: make one for each thing that is asked, and keep it when the call is repeated'
      : `${shown(id)} is not 1 to 64 letters, digits, dots, dashes, underscores`,
  );
}

function bindingsOf(ids: readonly string[]): readonly string[] {
  if (ids.length === 0) throw wireError('', 'bindings', 'is empty: name at least one');
  if (ids.length > MAX_BINDINGS) {
    throw wireError('', 'bindings', `has ${ids.length} entries, at most ${MAX_BINDINGS} can be`);
  }
  for (const [index, id] of ids.entries()) bindingId(`bindings[${index}]`, id);
  distinct('', 'bindings', ids, (id) => id);
  return ids;
}

/** Bindings are named by the manager; what is none of its names cannot be known. */
function bindingId(field: string, id: string): string {
  if (isIdentityName(id)) return id;
  throw wireError('', field, `${shown(id)} is no id of a binding`);
}

/** A filter: '' selects all. */
function filter(field: string, value: string): string | undefined {
  return value === '' ? undefined : name('', field, value);
}

export function idFilter(request: { readonly id: string }): { readonly id?: string } {
  const id = filter('id', request.id);
  return id === undefined ? {} : { id };
}

export function pathFilter(request: pb.ListPathsRequest): { host?: string; box?: string } {
  const host = filter('host', request.host);
  const box = filter('box', request.box);
  return { ...(host === undefined ? {} : { host }), ...(box === undefined ? {} : { box }) };
}

export function gpuFilter(request: pb.ListGpusRequest): {
  uuid?: string;
  box?: string;
  freeOnly?: boolean;
} {
  const box = filter('box', request.box);
  return {
    ...(request.uuid === '' ? {} : { uuid: word('', 'uuid', request.uuid) }),
    ...(box === undefined ? {} : { box }),
    ...(request.freeOnly ? { freeOnly: true } : {}),
  };
}

export function bindingFilter(request: pb.ListBindingsRequest): {
  readonly id: string | undefined;
  readonly filter: BindingFilter;
} {
  const host = filter('host', request.host);
  const box = filter('box', request.box);
  const state = bindingState(request.state);
  if (state === undefined && request.state !== pb.BindingState.UNSPECIFIED) {
    throw wireError('', 'state', `${Number(request.state)} is the state of no binding there is`);
  }
  return {
    id: request.id === '' ? undefined : bindingId('id', request.id),
    filter: {
      ...(host === undefined ? {} : { host }),
      ...(box === undefined ? {} : { box }),
      ...(state === undefined ? {} : { state }),
      ...(request.requestId === '' ? {} : { requestId: requestIdOf(request.requestId) }),
    },
  };
}

export function watchRequest(request: pb.WatchRequest): {
  readonly after: number;
  readonly follow: boolean;
  readonly binding?: string;
} {
  return {
    after: safeNumber('', 'after', request.after),
    follow: request.follow,
    ...(request.binding === '' ? {} : { binding: bindingId('binding', request.binding) }),
  };
}

/** How many to answer with. */
export function pageSize(size: number): number {
  if (size === 0) return DEFAULT_PAGE;
  if (size > 0 && size <= MAX_PAGE) return size;
  throw wireError(
    '',
    'page_size',
    `${size} is not from 1 to ${MAX_PAGE}, or 0 for ${DEFAULT_PAGE}`,
  );
}

function shown(value: string): string {
  return JSON.stringify(value.length <= 80 ? value : `${value.slice(0, 80)}…`);
}
