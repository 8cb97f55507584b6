/** What `get` shows of each kind. */
import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import {
  type Binding,
  BindingSchema,
  BindingState,
  type Box,
  BoxSchema,
  type Candidate,
  CandidateSchema,
  type Gpu,
  GpuSchema,
  type Host,
  HostSchema,
  type LogEntry,
  LogEntrySchema,
  type Path,
  PathSchema,
  type PlannedGpu,
  PlannedGpuSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { ListShape } from './list-printer.ts';
import { plainOf, stateWord, timeOf } from './pool-plain.ts';
import { formatDuration, formatRate, formatSize } from './quantity.ts';

const connected = (is: boolean): string => (is ? 'connected' : 'away');
const roundTrip = (ns: number): string => (ns === 0 ? '' : formatDuration(ns));

function shapeOf<D extends DescMessage>(
  schema: D,
  none: string,
  columns: ListShape<MessageShape<D>>['columns'],
): ListShape<MessageShape<D>> {
  return { none, columns, plain: (item) => plainOf(schema, item) };
}

export const BOXES: ListShape<Box> = shapeOf(BoxSchema, 'no boxes', [
  { title: 'box', cell: ({ id }) => id },
  { title: 'agent', cell: (box) => connected(box.connected) },
  { title: 'kind', cell: ({ kind }) => kind },
  { title: 'zone', cell: ({ zone }) => zone },
  { title: 'gpus', cell: ({ gpus }) => gpus },
  { title: 'free', cell: ({ gpusFree }) => gpusFree },
  { title: 'listens', cell: ({ endpoints }) => endpoints.join(' ') },
  { title: 'problem', cell: ({ problem }) => problem },
]);

export const HOSTS: ListShape<Host> = shapeOf(HostSchema, 'no hosts', [
  { title: 'host', cell: ({ id }) => id },
  { title: 'agent', cell: (host) => connected(host.connected) },
  { title: 'slots', cell: ({ slots }) => slots.length },
  { title: 'bound', cell: ({ slots }) => slots.filter(({ binding }) => binding !== '').length },
  {
    title: 'bindings',
    cell: ({ slots }) =>
      slots
        .map(({ binding }) => binding)
        .filter((binding) => binding !== '')
        .join(' '),
  },
  { title: 'problem', cell: ({ problem }) => problem },
]);

export const GPUS: ListShape<Gpu> = shapeOf(GpuSchema, 'no GPU nodes', [
  { title: 'box', cell: ({ box }) => box },
  { title: 'slot', cell: ({ slot }) => slot },
  { title: 'model', cell: ({ model }) => model },
  { title: 'memory', cell: ({ memoryBytes }) => formatSize(Number(memoryBytes)) },
  { title: 'nvlink', cell: ({ nvlinkGroup }) => nvlinkGroup },
  { title: 'state', cell: ({ state }) => state },
  { title: 'binding', cell: ({ binding }) => binding },
  { title: 'host', cell: ({ host }) => host },
  { title: 'uuid', cell: ({ uuid }) => uuid },
  { title: 'reason', cell: ({ reason }) => reason },
]);

export const PATHS: ListShape<Path> = shapeOf(PathSchema, 'no paths', [
  { title: 'host', cell: ({ host }) => host },
  { title: 'box', cell: ({ box }) => box },
  { title: 'path', cell: ({ path }) => path },
  { title: 'state', cell: ({ up }) => (up ? 'up' : 'down') },
  { title: 'round trip', cell: ({ roundTripNs }) => roundTrip(roundTripNs) },
  { title: 'rate', cell: ({ bitsPerSecond }) => formatRate(bitsPerSecond) },
  { title: 'problem', cell: ({ problem }) => problem },
]);

export const BINDINGS: ListShape<Binding> = shapeOf(BindingSchema, 'no bindings', [
  { title: 'binding', cell: ({ id }) => id },
  { title: 'state', cell: (binding) => bindingState(binding) },
  { title: 'host', cell: ({ host }) => host },
  { title: 'vslot', cell: ({ hostSlot }) => hostSlot },
  { title: 'address', cell: ({ attachment }) => attachment?.bdf ?? '' },
  { title: 'box', cell: ({ box }) => box },
  { title: 'slot', cell: ({ boxSlot }) => boxSlot },
  { title: 'model', cell: ({ model }) => model },
  { title: 'path', cell: ({ path }) => path },
  { title: 'generation', cell: ({ generation }) => Number(generation) },
]);

const WHERE: ReadonlySet<string> = new Set(['host', 'vslot', 'box', 'slot', 'model', 'path']);

/** Bindings of a dry run: where they would be, without what only a binding has. */
export const WOULD_BE_BOUND: ListShape<Binding> = {
  none: 'nothing would be bound',
  columns: [
    { title: 'state', cell: () => 'would be bound' },
    ...BINDINGS.columns.filter(({ title }) => WHERE.has(title)),
  ],
  plain: ({ host, hostSlot, box, boxSlot, gpu, model, path }) => ({
    host,
    hostSlot,
    box,
    boxSlot,
    gpu,
    model,
    path,
  }),
};

/** `failed(link-down)`: the reason is what one looks for. */
export function bindingState({ state, failure }: Binding): string {
  const word = stateWord(state);
  return state === BindingState.FAILED && failure !== undefined
    ? `${word}(${failure.reason})`
    : word;
}

export const PLANNED: ListShape<PlannedGpu> = shapeOf(PlannedGpuSchema, 'nothing planned', [
  { title: 'vslot', cell: ({ hostSlot }) => hostSlot },
  { title: 'box', cell: ({ box }) => box },
  { title: 'slot', cell: ({ slot }) => slot },
  { title: 'path', cell: ({ path }) => path },
  { title: 'round trip', cell: ({ roundTripNs }) => roundTrip(roundTripNs) },
  { title: 'uuid', cell: ({ gpu }) => gpu },
]);

export const CANDIDATES: ListShape<Candidate> = shapeOf(CandidateSchema, 'no GPU nodes', [
  { title: 'box', cell: ({ box }) => box },
  { title: 'slot', cell: ({ slot }) => slot },
  { title: 'uuid', cell: ({ gpu }) => gpu },
  { title: 'verdict', cell: ({ reason }) => (reason === '' ? 'would do' : reason) },
  { title: '', cell: ({ message }) => message },
]);

export const LOG: ListShape<LogEntry> = shapeOf(LogEntrySchema, 'no entries', [
  { title: 'position', cell: ({ position }) => Number(position) },
  { title: 'time', cell: ({ time }) => timeOf(time), least: 24 },
  { title: 'by', cell: ({ actor }) => actor, least: 10 },
  { title: 'of', cell: ({ subjectKind, subject }) => `${subjectKind} ${subject}`, least: 12 },
  { title: 'what', cell: ({ action }) => action, least: 12 },
  { title: '', cell: ({ message }) => message },
]);
