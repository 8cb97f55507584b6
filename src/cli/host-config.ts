/** The configuration of `dxpu host`. */
import { z } from 'zod';
import type { DxpuError } from '#base/errors';
import type { CredentialFiles } from '#identity/tls-identity';
import type { LinkOptions } from '#fabric/link-options';
import type { HostRow } from '#fabric/mapping-table';
import { checkHostTable } from '#fabric/host-table';
import type { TableError } from '#fabric/table-check';
import type { SoftHostOptions } from '#host/root-complex';
import type { PathToBox } from '#agent/daemon/link-to-box';
import { unknownPorts } from '#agent/daemon/unknown-ports';
import type { VmPlace } from '#agent/daemon/vm-slots';
import { ConfigFile, type ConfigProblem, type FieldPath } from './config-file.ts';
import * as schema from './config-schema.ts';
import { type FixedPart, fixedPartOf } from './fixed-part.ts';
import {
  checkMemory,
  checkRunning,
  checkVm,
  checkWindows,
  type Range,
  type SlotWindows,
} from './host-config-checks.ts';
import { linkFields, linkOptionsOf } from './link-config.ts';
import {
  checkSameKind,
  checkStandsFor,
  managerFields,
  managerOf,
  type ManagerPlace,
} from './member-config.ts';

const MIB = 2 ** 20;

export const hostSchema = schema.fields({
  host: schema.name,
  certificates: schema.certificates,
  manager: managerFields,
  /** Zones of boxes this host reaches; empty means all. */
  reach: z.array(schema.name).default([]),
  paths: z
    .array(schema.fields({ name: schema.name, box: schema.name, address: schema.peerEndpoint }))
    .min(1, 'needs at least one path to a box')
    .optional(),
  slots: z
    .array(
      schema.fields({
        slot: schema.whole(0, 30),
        secondaryBus: schema.whole(1, 255),
        nonPrefetchable: schema.window32,
        prefetchable: schema.window64,
      }),
    )
    .min(1, 'needs at least one virtual slot')
    .max(31, 'a host has room for 31 virtual slots')
    .optional(),
  /** A VM whose QEMU uses the functions, in place of the soft host. */
  vm: schema
    .fields({
      qmp: z.string().min(1),
      rootPorts: z.array(schema.name),
    })
    .optional(),
  table: z
    .array(
      schema.fields({
        virtualSlot: schema.whole(0, 30),
        used: z.boolean().default(true),
        box: schema.name,
        slot: schema.whole(0, 65535),
        path: schema.name,
        generation: schema.generation,
      }),
    )
    .optional(),
  memory: z
    .array(schema.fields({ base: schema.address, size: schema.size }))
    .min(1, 'needs at least one region')
    .default([{ base: 0, size: 64 * MIB }]),
  maxPayload: schema.powerOfTwo(128, 4096).default(256),
  maxReadRequest: schema.powerOfTwo(128, 4096).default(512),
  link: linkFields,
});

/** As the command line or the file says it. */
export type VmOfHost = Pick<VmPlace, 'qmp' | 'rootPorts'>;

export interface HostConfig {
  readonly id: string;
  readonly credentialFiles: CredentialFiles;
  /** Where rows and paths come from; without it `rows` and `paths` are in force. */
  readonly manager: ManagerPlace | undefined;
  readonly reach: readonly string[];
  readonly paths: readonly PathToBox[];
  readonly slots: readonly SlotWindows[];
  /** Its QEMU uses the functions; buses and windows are the guest's. */
  readonly vm: VmOfHost | undefined;
  readonly rows: readonly HostRow[];
  readonly softHost: Pick<
    SoftHostOptions,
    'ports' | 'memory' | 'maxPayloadBytes' | 'maxReadRequestBytes'
  >;
  readonly linkOptions: Partial<LinkOptions>;
  /** What cannot be changed without a restart. */
  readonly fixedPart: FixedPart;
  /** Turns what `HostProxy.setTable` refuses into an error that shows the place in the file. */
  tableError(errors: readonly TableError[]): DxpuError;
}

/**
 * Reads and checks a whole file. Fails with a `DxpuError` that names every problem and its place.
 * With `inForce`, what a running host was started with, it fails too where a row needs a slot or a
 * path that differs from it: those change by a restart alone. `vmGiven` stands for what the file says of
 * slots, memory and VM.
 */
export function readHostConfig(file: string, inForce?: HostConfig, vmGiven?: VmOfHost): HostConfig {
  const source = new ConfigFile(file);
  const { table: rowsOfFile = [], slots: slotsOfFile, ...parsed } = source.parse(hostSchema);
  const vm = vmGiven ?? vmOf(source, parsed.vm);
  const slots = vm === undefined ? (slotsOfFile ?? []) : slotsOfVm(vm.rootPorts);
  const manager = managerOf(parsed.manager);
  const table = manager === undefined ? rowsOfFile : [];
  const paths = manager === undefined ? (parsed.paths ?? []) : [];
  const problems: ConfigProblem[] = [
    ...checkStandsFor(source, {
      paths: 'the ways to boxes come',
      table: 'the rows of this host come',
    }),
    ...checkSameKind(inForce, manager),
  ];
  const complain = (at: FieldPath, message: string): void => {
    problems.push({ path: at, message });
  };

  if (vm === undefined && slotsOfFile === undefined) {
    complain([], 'needs slots, or vm where a VM uses the functions');
  }
  if (vm !== undefined) checkVm(vm, vmGiven === undefined ? source : undefined, complain);
  const slotIndex = new Map<number, number>();
  for (const [index, slot] of slots.entries()) {
    if (slotIndex.has(slot.slot)) complain(['slots', index, 'slot'], `slot ${slot.slot} is twice`);
    slotIndex.set(slot.slot, index);
  }
  const ordered = [...slots].sort((a, b) => a.slot - b.slot);
  const gap = ordered.findIndex((slot, index) => slot.slot !== index);
  if (gap >= 0 && problems.length === 0) {
    complain(['slots'], `virtual slots must be numbered from 0 without gaps; ${gap} is missing`);
  }
  if (vm === undefined) {
    checkWindows(slots, complain);
    checkMemory(parsed.memory, source.has(['memory']), slots, complain);
  }

  const seenPaths = new Map<string, string>();
  for (const [index, one] of paths.entries()) {
    const key = `${one.box} ${one.name}`;
    if (seenPaths.has(key)) complain(['paths', index, 'name'], `path ${one.name} is twice`);
    seenPaths.set(key, one.name);
  }
  const virtualSlots = new Map<number, number>();
  const boxSlots = new Map<string, number>();
  for (const [index, row] of table.entries()) {
    const twice = virtualSlots.get(row.virtualSlot);
    if (twice === undefined) virtualSlots.set(row.virtualSlot, index);
    else {
      const line = source.line(['table', twice, 'virtualSlot']);
      complain(
        ['table', index, 'virtualSlot'],
        `virtual slot ${row.virtualSlot} is twice: line ${line} has it already`,
      );
    }
    const boxSlot = `slot ${row.slot} of box ${row.box}`;
    const other = row.used ? boxSlots.get(boxSlot) : undefined;
    if (row.used && other === undefined) boxSlots.set(boxSlot, index);
    if (other !== undefined && twice === undefined) {
      const line = source.line(['table', other, 'slot']);
      complain(['table', index, 'slot'], `${boxSlot} is twice: line ${line} has it already`);
    }
    if (!slotIndex.has(row.virtualSlot)) {
      complain(
        ['table', index, 'virtualSlot'],
        `there is no virtual slot ${row.virtualSlot}; slots has ${[...slotIndex.keys()].join(', ')}`,
      );
    }
    if (!seenPaths.has(`${row.box} ${row.path}`)) {
      const known = paths.filter((one) => one.box === row.box).map((one) => one.name);
      complain(
        ['table', index, known.length === 0 ? 'box' : 'path'],
        known.length === 0
          ? `no path leads to box ${row.box}; add one to paths`
          : `there is no path ${row.path} to box ${row.box}; there is: ${known.join(', ')}`,
      );
    }
  }
  if (inForce !== undefined) checkRunning(inForce, { slots, table }, slotIndex, complain);
  if (problems.length > 0) throw source.error(problems);

  const rows = table.map((row): HostRow => {
    const slot = ordered[row.virtualSlot];
    if (slot === undefined) throw source.error([{ path: ['table'], message: 'has no such slot' }]);
    return {
      virtualSlot: row.virtualSlot,
      used: row.used,
      secondaryBus: slot.secondaryBus,
      nonPrefetchable: toWindow(slot.nonPrefetchable),
      prefetchable: toWindow(slot.prefetchable),
      box: row.box,
      slot: row.slot,
      path: row.path,
      generation: row.generation,
    };
  });
  const tableError = (errors: readonly TableError[]): DxpuError =>
    source.error(
      errors.map((error) => ({
        path: placeOfField(error, table, slotIndex),
        message: error.message,
      })),
    );
  const errors = checkHostTable(rows);
  if (errors.length > 0) throw tableError(errors);
  return {
    id: parsed.host,
    credentialFiles: source.credentialFiles(parsed.certificates),
    manager,
    reach: parsed.reach,
    paths: paths.map((one) => ({
      name: one.name,
      box: one.box,
      host: one.address.host,
      port: one.address.port,
    })),
    slots,
    vm,
    rows,
    softHost: {
      ports: ordered.map((slot) => ({
        secondaryBus: slot.secondaryBus,
        nonPrefetchableBase: slot.nonPrefetchable.base,
        nonPrefetchableBytes: slot.nonPrefetchable.size,
        prefetchableBase: slot.prefetchable.base,
        prefetchableBytes: slot.prefetchable.size,
      })),
      memory: (vm === undefined ? parsed.memory : []).map((region) => ({
        base: region.base,
        sizeBytes: region.size,
      })),
      maxPayloadBytes: parsed.maxPayload,
      maxReadRequestBytes: parsed.maxReadRequest,
    },
    linkOptions: linkOptionsOf(parsed.link),
    fixedPart: fixedPartOf({ ...parsed, slots: slotsOfFile }),
    tableError,
  };
}

function vmOf(source: ConfigFile, vm: VmOfHost | undefined): VmOfHost | undefined {
  return vm === undefined ? undefined : { ...vm, qmp: source.pathOf(vm.qmp) };
}

/** What is known of the slots of a VM before its guest has set up the root ports: numbers. */
function slotsOfVm(rootPorts: readonly string[]): SlotWindows[] {
  return unknownPorts(rootPorts.length).map((port, slot) => ({
    slot,
    secondaryBus: port.secondaryBus,
    nonPrefetchable: { base: port.nonPrefetchableBase, size: port.nonPrefetchableBytes },
    prefetchable: { base: port.prefetchableBase, size: port.prefetchableBytes },
  }));
}

function toWindow(window: Range): HostRow['prefetchable'] {
  return { base: window.base, limit: window.base + window.size - 1 };
}

/** Bus and windows of a row come from its slot: that is where a mistake in them is. */
function placeOfField(
  error: TableError,
  table: readonly { readonly virtualSlot: number }[],
  slotIndex: ReadonlyMap<number, number>,
): FieldPath {
  const parts = error.field.split('.');
  const [first = ''] = parts;
  if (first === 'secondaryBus' || first === 'nonPrefetchable' || first === 'prefetchable') {
    const index = slotIndex.get(table[error.row]?.virtualSlot ?? -1);
    if (index !== undefined) {
      return ['slots', index, ...parts.map((part) => (part === 'limit' ? 'size' : part))];
    }
  }
  return ['table', error.row, ...parts];
}
