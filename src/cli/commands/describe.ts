/** `dxpu describe`: one thing of the pool with all there is to say of it, and what happened to it last. */
import {
  type Binding,
  BindingSchema,
  BindingState,
  type Box,
  BoxSchema,
  type Gpu,
  GpuSchema,
  type Host,
  HostSchema,
  type LogEntry,
  LogEntrySchema,
  PathSchema,
  type VirtualSlot,
  type Window,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { type Column, tableOf } from '../list-printer.ts';
import { printData, printLine } from '../output.ts';
import { BINDINGS, bindingState, GPUS, LOG, PATHS } from '../pool-columns.ts';
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
import { followLog } from '../pool-log.ts';
import { plainOf, stateWord, timeOf } from '../pool-plain.ts';
import type { DescribeKind } from '../pool-words.ts';
import { formatDuration, formatSize } from '../quantity.ts';
import { indent } from '../status-text.ts';

export interface DescribeOptions extends PoolOptions {
  /** How many entries of the log. */
  readonly log: number;
}

/** Entries of the whole log that are looked through for those of one box, host or GPU node. */
const LOOKED_THROUGH = 2000;

export const describe = (kind: DescribeKind, id: string, options: DescribeOptions): Promise<void> =>
  withPool(options, (pool) => describeOf(pool, kind, id, options));

/** What there is to say of one thing. */
interface Description {
  /** As machines get it. */
  readonly plain: object;
  readonly fields: Fields;
  /** Tables below the fields, as text. */
  readonly parts: readonly string[];
  readonly log: readonly LogEntry[];
}

type Describer = (pool: PoolConnection, id: string, logged: number) => Promise<Description>;

export async function describeOf(
  pool: PoolConnection,
  kind: DescribeKind,
  id: string,
  { output, log: logged }: DescribeOptions,
): Promise<void> {
  try {
    const { plain, fields, parts, log } = await DESCRIBERS[kind](pool, id, logged);
    if (output !== 'table') {
      const plainLog = log.map((entry) => plainOf(LogEntrySchema, entry));
      await printData({ [kind]: plain, log: plainLog }, output);
      return;
    }
    printFields(fields);
    for (const part of [...parts, partOf('Log', LOG.columns, log)]) {
      if (part !== '') printLine(`\n${part}`);
    }
  } catch (error) {
    throw poolFailure(error, pool);
  }
}

const describeBox: Describer = async (pool, id, logged) => {
  const box = only(await all(boxPages(pool, { id })), 'box', id);
  const gpus = await all(gpuPages(pool, { box: id }));
  const log = await logOf(pool, logged, ({ subjectKind, subject, binding }) =>
    subjectKind === 'box' ? subject === id : binding?.box === id,
  );
  return {
    plain: { ...plainOf(BoxSchema, box), gpuNodes: gpus.map((gpu) => plainOf(GpuSchema, gpu)) },
    fields: boxFields(box),
    parts: [partOf('GPU nodes', GPUS.columns, gpus)],
    log,
  };
};

const boxFields = (box: Box): Fields => [
  ['box', box.id],
  ['agent', agentText(box)],
  ['kind', box.kind],
  ['zone', box.zone],
  ['listens', box.endpoints.join(', ')],
  ['GPU nodes', `${box.gpus}, ${box.gpusFree} free`],
  ['problem', box.problem],
];

const describeHost: Describer = async (pool, id, logged) => {
  const host = only(await all(hostPages(pool, { id })), 'host', id);
  const paths = await all(pathPages(pool, { host: id }));
  const bindings = await all(bindingPages(pool, { host: id }));
  const log = await logOf(pool, logged, ({ subjectKind, subject, binding }) =>
    subjectKind === 'host' ? subject === id : binding?.host === id,
  );
  return {
    plain: {
      ...plainOf(HostSchema, host),
      paths: paths.map((path) => plainOf(PathSchema, path)),
      bindings: bindings.map((binding) => plainOf(BindingSchema, binding)),
    },
    fields: hostFields(host),
    parts: [
      partOf('Virtual slots', SLOTS, host.slots),
      partOf('Bindings', BINDINGS.columns, bindings),
      partOf('Paths', PATHS.columns, paths),
    ],
    log,
  };
};

const hostFields = (host: Host): Fields => [
  ['host', host.id],
  ['agent', agentText(host)],
  ['problem', host.problem],
];

const agentText = ({ connected, version, seen }: Box | Host): string =>
  connected ? `connected, version ${version}` : `away since ${timeOf(seen)}`;

const hex = (value: bigint | number): string => `0x${value.toString(16)}`;
const windowText = (window: Window | undefined): string =>
  window === undefined || window.base > window.limit
    ? ''
    : `${hex(window.base)}-${hex(window.limit)}`;

const SLOTS: readonly Column<VirtualSlot>[] = [
  { title: 'vslot', cell: ({ slot }) => slot },
  { title: 'bus', cell: ({ secondaryBus }) => hex(secondaryBus) },
  { title: 'non-prefetchable', cell: ({ nonPrefetchable }) => windowText(nonPrefetchable) },
  { title: 'prefetchable', cell: ({ prefetchable }) => windowText(prefetchable) },
  { title: 'binding', cell: ({ binding }) => binding },
  { title: 'state', cell: ({ state }) => state },
];

const describeGpu: Describer = async (pool, id, logged) => {
  const gpu = await findGpu(pool, id);
  const log = await logOf(pool, logged, ({ subjectKind, subject, binding }) =>
    subjectKind === 'gpu' ? subject === gpu.uuid : binding?.gpu === gpu.uuid,
  );
  return { plain: plainOf(GpuSchema, gpu), fields: gpuFields(gpu), parts: [], log };
};

const gpuFields = (gpu: Gpu): Fields => [
  ['GPU node', gpu.uuid],
  ['model', `${gpu.model}, ${formatSize(Number(gpu.memoryBytes))}`],
  ['NVLink group', gpu.nvlinkGroup],
  ['place', `box ${gpu.box} slot ${gpu.slot}`],
  ['state', `${gpu.state}${gpu.reason === '' ? '' : `: ${gpu.reason}`}`],
  ['bound to', gpu.binding === '' ? '' : `host ${gpu.host}, binding ${gpu.binding}`],
];

/** By its UUID, or by where it is: `b1/0`. */
async function findGpu(pool: PoolConnection, id: string): Promise<Gpu> {
  const [, box, slot] = /^([^/]+)\/(\d+)$/.exec(id) ?? [];
  const gpus = await all(gpuPages(pool, box === undefined ? { uuid: id } : { box }));
  const fitting = box === undefined ? gpus : gpus.filter((gpu) => gpu.slot === Number(slot));
  return only(fitting, 'GPU node', id);
}

const describeBinding: Describer = async (pool, id, logged) => {
  const found = await all(bindingPages(pool, { id }));
  const log: LogEntry[] = [];
  for await (const { entry } of followLog(pool, { after: 0, follow: false, binding: id })) {
    if (entry !== undefined) keepLast(log, entry, logged);
  }
  // One that was given back has a history all the same.
  const binding = found.length === 0 ? log.at(-1)?.binding : only(found, 'binding', id);
  if (binding === undefined) throw notFound('binding', id);
  return { plain: plainOf(BindingSchema, binding), fields: bindingFields(binding), parts: [], log };
};

function bindingFields(binding: Binding): Fields {
  const { failure, attachment, live } = binding;
  const bars = attachment?.bars.map(
    (bar) => `BAR${bar.index} ${formatSize(Number(bar.sizeBytes))} at ${hex(bar.address)}`,
  );
  const isFree = binding.state === BindingState.FREE;
  const yes = (is: boolean): string => (is ? 'on' : 'off');
  return [
    ['binding', binding.id],
    ['state', `${bindingState(binding)}${binding.leaving && !isFree ? ', to be given back' : ''}`],
    [
      'failure',
      failure === undefined
        ? ''
        : `${failure.message} (in ${stateWord(failure.during)}; attempts: ${failure.attempts}; ` +
          `${failure.retries ? 'is tried again by itself' : `dxpu retry ${binding.id} tries again`})`,
    ],
    ['host', `${binding.host}, virtual slot ${binding.hostSlot}`],
    ['GPU node', `${binding.gpu}, ${binding.model}, box ${binding.box} slot ${binding.boxSlot}`],
    ['path', binding.path],
    ['generation', String(binding.generation)],
    ['function', attachment === undefined ? '' : `${attachment.bdf}, ${bars?.join(', ')}`],
    [
      'live',
      live === undefined
        ? isFree
          ? ''
          : 'unknown: not both proxies report'
        : `memory space ${yes(live.memoryEnable)}, bus master ${yes(live.busMaster)}, ` +
          `${live.inUse ? 'in use' : 'not in use'}` +
          (live.roundTripNs === 0 ? '' : `, round trip ${formatDuration(live.roundTripNs)}`),
    ],
    ['asked for by', `${binding.requestedBy}, request ${binding.requestId}`],
    ['since', timeOf(binding.created)],
    ['changed', timeOf(binding.changed)],
  ];
}

async function logOf(
  pool: PoolConnection,
  count: number,
  isWanted: (entry: LogEntry) => boolean,
): Promise<LogEntry[]> {
  const { position } = await pool.pool.getStatus({});
  const after = Math.max(0, Number(position) - LOOKED_THROUGH);
  const log: LogEntry[] = [];
  for await (const { entry } of followLog(pool, { after, follow: false })) {
    if (entry !== undefined && isWanted(entry)) keepLast(log, entry, count);
  }
  return log;
}

function keepLast(log: LogEntry[], entry: LogEntry, count: number): void {
  log.push(entry);
  if (log.length > count) log.shift();
}

const DESCRIBERS: Readonly<Record<DescribeKind, Describer>> = {
  box: describeBox,
  host: describeHost,
  gpu: describeGpu,
  binding: describeBinding,
};

function only<T>(found: readonly T[], what: Parameters<typeof notFound>[0], id: string): T {
  const [first] = found;
  if (first === undefined) throw notFound(what, id);
  return first;
}

type Fields = readonly (readonly [name: string, value: string])[];

/** A line each; those with nothing to say are left out. */
function printFields(fields: Fields): void {
  const shown = fields.filter(([, value]) => value !== '');
  const width = Math.max(...shown.map(([name]) => name.length));
  for (const [name, value] of shown) printLine(`${`${name}:`.padEnd(width + 2)}${value}`);
}

/** '' without items. */
function partOf<T>(title: string, columns: readonly Column<T>[], items: readonly T[]): string {
  return items.length === 0 ? '' : `${title}\n${indent(tableOf(columns, items))}`;
}
