/** The configuration of `dxpu box`. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import { formatEndpoint, type HostAndPort } from '#agent/daemon/endpoint';
import type { DxpuError } from '#base/errors';
import { DEVICE_KINDS, type DeviceKind, type ModelChoice } from '#devices/device-models';
import type { CredentialFiles } from '#identity/tls-identity';
import type { LinkOptions } from '#fabric/link-options';
import type { BoxRow } from '#fabric/mapping-table';
import { checkBoxTable } from '#fabric/box-table';
import type { TableError } from '#fabric/table-check';
import { BOX_KINDS, type BoxKind, type Endpoint } from '#proto/agent-messages';
import { ConfigFile, type ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';
import { type FixedPart, fixedPartOf } from './fixed-part.ts';
import { linkFields, linkOptionsOf } from './link-config.ts';
import {
  checkSameKind,
  checkStandsFor,
  managerFields,
  managerOf,
  type ManagerPlace,
} from './member-config.ts';

const MIB = 2 ** 20;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const deviceSchema = schema.fields({
  slot: schema.whole(0, 65535),
  kind: z.enum(DEVICE_KINDS),
  uuid: z
    .string()
    .refine((uuid) => UUID.test(uuid), 'must be lower-case hexadecimal as 8-4-4-4-12')
    .optional(),
  model: z.string().min(1).max(32).optional(),
  memory: schema.size
    .refine(
      (bytes) => bytes >= MIB && bytes <= 2048 * MIB && Number.isInteger(Math.log2(bytes)),
      'must be a power of two from 1MiB to 2GiB',
    )
    .optional(),
  tags: schema.whole(1, 768).optional(),
  channels: schema.whole(1, 16).optional(),
  maxPayload: schema.powerOfTwo(128, 4096).optional(),
  maxReadRequest: schema.powerOfTwo(128, 4096).optional(),
  nsPerFlop: z.number().min(0, 'must not be negative').optional(),
  width: schema.whole(64, 3840).optional(),
  height: schema.whole(64, 2160).optional(),
  /** Devices of one box with the same name here reach each other by NVLink. */
  nvlinkGroup: schema.name.optional(),
});

type ParsedDevice = z.infer<typeof deviceSchema>;

/** Fields of some kinds alone. */
const FIELD_KINDS: readonly (readonly [keyof ParsedDevice, readonly DeviceKind[]])[] = [
  ['channels', ['accel']],
  ['nsPerFlop', ['accel']],
  ['tags', ['accel', 'virtio-gpu']],
  ['maxReadRequest', ['accel', 'virtio-gpu']],
  ['width', ['virtio-gpu', 'bochs-display']],
  ['height', ['virtio-gpu', 'bochs-display']],
];

const USUAL_MEMORY: Readonly<Record<DeviceKind, number>> = {
  accel: 64 * MIB,
  'virtio-gpu': 64 * MIB,
  'bochs-display': 16 * MIB,
};

export const boxSchema = schema.fields({
  box: schema.name,
  certificates: schema.certificates,
  kind: z.enum(BOX_KINDS).default('pcie'),
  zone: schema.name.optional(),
  manager: managerFields,
  listen: z.array(schema.endpoint).min(1, 'needs at least one address to listen on'),
  advertise: z
    .array(schema.fields({ path: schema.name, address: schema.peerEndpoint }))
    .min(1, 'needs at least one address hosts can connect to')
    .optional(),
  devices: z.array(deviceSchema).min(1, 'needs at least one device'),
  table: z
    .array(
      schema.fields({
        slot: schema.whole(0, 65535),
        valid: z.boolean().default(true),
        used: z.boolean().default(true),
        host: schema.name,
        path: schema.name,
        generation: schema.generation,
      }),
    )
    .optional(),
  /** Non-posted requests of one slot outstanding at once, on top of the device's own tags. */
  outstandingReads: schema.whole(1, 65536).optional(),
  link: linkFields,
});

/** One device model of a slot. */
export type DeviceConfig = ModelChoice & {
  readonly slot: number;
  /** '' for none. */
  readonly nvlinkGroup: string;
};

export interface BoxConfig {
  readonly id: string;
  readonly credentialFiles: CredentialFiles;
  /** Where rows come from; without it `rows` are in force. */
  readonly manager: ManagerPlace | undefined;
  readonly kind: BoxKind;
  /** '' for none. */
  readonly zone: string;
  readonly listen: readonly HostAndPort[];
  /** What hosts are told to connect to; without it where this box listens. */
  readonly advertise: readonly Endpoint[] | undefined;
  readonly devices: readonly DeviceConfig[];
  readonly rows: readonly BoxRow[];
  readonly outstandingReads: number | undefined;
  readonly linkOptions: Partial<LinkOptions>;
  /** What cannot be changed without a restart. */
  readonly fixedPart: FixedPart;
  /** Turns what `BoxProxy.setTable` refuses into an error that shows the place in the file. */
  tableError(errors: readonly TableError[]): DxpuError;
}

/**
 * Reads and checks a whole file. Fails with a `DxpuError` that names every problem and its place.
 * With `inForce`, what a running box was started with, it fails too where a row is of a device that
 * was added since: devices change by a restart alone.
 */
export function readBoxConfig(file: string, inForce?: BoxConfig): BoxConfig {
  const source = new ConfigFile(file);
  const { table: rowsOfFile = [], ...parsed } = source.parse(boxSchema);
  const manager = managerOf(parsed.manager);
  const table = manager === undefined ? rowsOfFile : [];
  const problems: ConfigProblem[] = [
    ...checkStandsFor(source, { table: 'the rows of this box come' }),
    ...checkSameKind(inForce, manager),
    ...checkAdvertised(parsed, manager !== undefined),
  ];
  const slots = new Set<number>();
  for (const [index, device] of parsed.devices.entries()) {
    if (slots.has(device.slot)) {
      problems.push({ path: ['devices', index, 'slot'], message: `slot ${device.slot} is twice` });
    }
    slots.add(device.slot);
    problems.push(...checkDevice(device, index));
  }
  for (const [index, address] of parsed.listen.entries()) {
    const other = parsed.listen.findIndex((one) => isSameListener(one, address));
    if (other === index) continue;
    problems.push({
      path: ['listen', index],
      message:
        `port ${address.port} of this address is taken by listen[${other}] in line ` +
        `${source.line(['listen', other])}`,
    });
  }
  const rowOfSlot = new Map<number, number>();
  for (const [index, row] of table.entries()) {
    const twice = rowOfSlot.get(row.slot);
    if (twice === undefined) rowOfSlot.set(row.slot, index);
    else {
      const line = source.line(['table', twice, 'slot']);
      problems.push({
        path: ['table', index, 'slot'],
        message: `slot ${row.slot} is twice: line ${line} has it already`,
      });
    }
    if (!slots.has(row.slot)) {
      problems.push({
        path: ['table', index, 'slot'],
        message: `there is no device in slot ${row.slot}; devices has ${[...slots].join(', ')}`,
      });
    } else if (inForce?.devices.every((device) => device.slot !== row.slot) === true) {
      problems.push({
        path: ['table', index, 'slot'],
        message:
          `the device of slot ${row.slot} is not one the box was started with: restart the box ` +
          `(dxpu stop --process box-${inForce.id}, then dxpu box)`,
      });
    }
  }
  const tableError = (errors: readonly TableError[]): DxpuError =>
    source.error(
      errors.map((error) => ({
        path: ['table', error.row, ...error.field.split('.')],
        message: error.message,
      })),
    );
  if (problems.length > 0) throw source.error(problems);
  const errors = checkBoxTable(table);
  if (errors.length > 0) throw tableError(errors);

  return {
    id: parsed.box,
    credentialFiles: source.credentialFiles(parsed.certificates),
    manager,
    kind: parsed.kind,
    zone: parsed.zone ?? '',
    listen: parsed.listen,
    advertise: parsed.advertise?.map((one) => ({
      path: one.path,
      address: formatEndpoint(one.address),
    })),
    devices: parsed.devices.map((device) => ({
      slot: device.slot,
      ...modelOf(device, parsed.box),
      nvlinkGroup: device.nvlinkGroup ?? '',
    })),
    rows: table,
    outstandingReads: parsed.outstandingReads,
    linkOptions: linkOptionsOf(parsed.link),
    fixedPart: fixedPartOf(parsed),
    tableError,
  };
}

/** What a kind has no use for, or cannot have. */
function checkDevice(device: ParsedDevice, index: number): ConfigProblem[] {
  const { kind, memory = USUAL_MEMORY[kind], width = 1024, height = 768 } = device;
  const problems = FIELD_KINDS.flatMap(([field, kinds]): ConfigProblem[] => {
    if (device[field] === undefined || kinds.includes(kind)) return [];
    const message = `is of no use to kind ${kind}; it belongs to ${kinds.join(' and ')}`;
    return [{ path: ['devices', index, field], message }];
  });
  if (kind === 'bochs-display' && (memory < 4 * MIB || memory > 256 * MIB)) {
    const message = 'must be a power of two from 4MiB to 256MiB for a bochs-display';
    problems.push({ path: ['devices', index, 'memory'], message });
  } else if (kind !== 'accel' && 4 * width * height > memory) {
    const message = `${width} x ${height} pixels need ${4 * width * height} bytes of memory`;
    problems.push({ path: ['devices', index, 'memory'], message });
  }
  return problems;
}

/** The model of a device, with the options of its kind. */
function modelOf(device: ParsedDevice, box: string): ModelChoice {
  const { kind, tags, channels, nsPerFlop, width, height } = device;
  const common = {
    uuid: device.uuid ?? uuidOf(kind, box, device.slot),
    memoryBytes: device.memory ?? USUAL_MEMORY[kind],
    ...(device.model === undefined ? {} : { model: device.model }),
    ...(device.maxPayload === undefined ? {} : { maxPayloadBytes: device.maxPayload }),
  };
  const reads = {
    ...(tags === undefined ? {} : { tags }),
    ...(device.maxReadRequest === undefined ? {} : { maxReadRequestBytes: device.maxReadRequest }),
  };
  const mode = {
    ...(width === undefined ? {} : { width }),
    ...(height === undefined ? {} : { height }),
  };
  switch (kind) {
    case 'accel': {
      const own = {
        ...(channels === undefined ? {} : { channels }),
        ...(nsPerFlop === undefined ? {} : { nsPerFlop }),
      };
      return { kind, options: { ...common, ...reads, ...own } };
    }
    case 'virtio-gpu':
      return { kind, options: { ...common, ...reads, ...mode } };
    case 'bochs-display':
      return { kind, options: { ...common, ...mode } };
  }
}

/** Hosts must be able to tell the ways to this box apart, and to take one. */
function checkAdvertised(
  parsed: Pick<z.infer<typeof boxSchema>, 'advertise' | 'listen'>,
  isManaged: boolean,
): ConfigProblem[] {
  const { advertise, listen } = parsed;
  if (advertise === undefined) {
    if (!isManaged || listen.some(({ host }) => !isWildcard(host))) return [];
    const message =
      'is missing: listen names no address that a host could connect to; write such as ' +
      '[{ path: net0, address: "10.0.0.1:7001" }]';
    return [{ path: ['advertise'], message }];
  }
  return advertise.flatMap(({ path: name }, index): ConfigProblem[] => {
    const first = advertise.findIndex((one) => one.path === name);
    if (first === index) return [];
    return [{ path: ['advertise', index, 'path'], message: `path ${name} is twice` }];
  });
}

/** Whether it stands for all addresses of the machine. */
export function isWildcard(host: string): boolean {
  return host === '0.0.0.0' || host === '::';
}

/** Whether the system would not let both listen. */
function isSameListener(a: HostAndPort, b: HostAndPort): boolean {
  if (a.port === 0 || a.port !== b.port) return a === b;
  const hosts = [a.host.toLowerCase(), b.host.toLowerCase()];
  if (hosts[0] === hosts[1] || hosts.includes('::')) return true;
  return hosts.includes('0.0.0.0') && hosts.every((host) => !host.includes(':'));
}

/** A UUID that is the same at each start: name based, version 8 (RFC 9562), of kind, box and slot. */
function uuidOf(kind: DeviceKind, box: string, slot: number): string {
  const hash = createHash('sha256').update(`dxpu ${kind} ${box} ${slot}`).digest();
  hash[6] = ((hash[6] ?? 0) & 0x0f) | 0x80;
  hash[8] = ((hash[8] ?? 0) & 0x3f) | 0x80;
  const hex = hash.toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join('-');
}
