/** The configuration of `dxpu box`. */
import { z } from 'zod';
import type { BoxDevice } from '#agent/daemon/box-devices';
import { formatEndpoint, type HostAndPort } from '#agent/daemon/endpoint';
import type { DxpuError } from '#base/errors';
import type { CredentialFiles } from '#identity/tls-identity';
import type { LinkOptions } from '#fabric/link-options';
import type { BoxRow } from '#fabric/mapping-table';
import { checkBoxTable } from '#fabric/box-table';
import type { TableError } from '#fabric/table-check';
import { BOX_KINDS, type BoxKind, type Endpoint } from '#proto/agent-messages';
import { ConfigFile, type ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';
import { checkDevice, choiceOf, deviceSchema } from './device-config.ts';
import { type FixedPart, fixedPartOf } from './fixed-part.ts';
import { linkFields, linkOptionsOf } from './link-config.ts';
import {
  checkSameKind,
  checkStandsFor,
  managerFields,
  managerOf,
  type ManagerPlace,
} from './member-config.ts';

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

/** What is in a slot. */
export type DeviceConfig = BoxDevice & {
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
    problems.push(...checkDevice(source, parsed.devices, index));
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
      ...choiceOf(source, device, parsed.box),
      nvlinkGroup: device.nvlinkGroup ?? '',
    })),
    rows: table,
    outstandingReads: parsed.outstandingReads,
    linkOptions: linkOptionsOf(parsed.link),
    fixedPart: fixedPartOf(parsed),
    tableError,
  };
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
