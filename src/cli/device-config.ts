/** The devices of a box's configuration: what is in each slot. */
import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { RemoteChoice } from '#agent/daemon/box-devices';
import { DEVICE_KINDS, type DeviceKind, type ModelChoice } from '#devices/device-models';
import type { ConfigFile, ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';
import { socketPathProblem } from './socket-path.ts';

const MIB = 2 ** 20;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** A device that another process serves, beside the models of this one. */
const REMOTE = 'vfio-user';
const SLOT_KINDS = [...DEVICE_KINDS, REMOTE] as const;
type SlotKind = (typeof SLOT_KINDS)[number];

export const deviceSchema = schema.fields({
  slot: schema.whole(0, 65535),
  kind: z.enum(SLOT_KINDS),
  /** Where another process serves it. */
  socket: z.string().min(1).optional(),
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

export type ParsedDevice = z.infer<typeof deviceSchema>;

/** `a, b and c`. */
const LIST = new Intl.ListFormat('en-GB');

/** Fields of some kinds alone. */
const FIELD_KINDS: readonly (readonly [keyof ParsedDevice, readonly SlotKind[]])[] = [
  ['socket', [REMOTE]],
  ['memory', DEVICE_KINDS],
  ['maxPayload', DEVICE_KINDS],
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

/** What a kind has no use for, or cannot have. */
function checkFields(device: ParsedDevice, index: number): ConfigProblem[] {
  const { kind } = device;
  const problems = FIELD_KINDS.flatMap(([field, kinds]): ConfigProblem[] => {
    if (device[field] === undefined || kinds.includes(kind)) return [];
    const message = `is of no use to kind ${kind}; it belongs to ${LIST.format(kinds)}`;
    return [{ path: ['devices', index, field], message }];
  });
  if (kind === REMOTE) return problems;
  const { memory = USUAL_MEMORY[kind], width = 1024, height = 768 } = device;
  if (kind === 'bochs-display' && (memory < 4 * MIB || memory > 256 * MIB)) {
    const message = 'must be a power of two from 4MiB to 256MiB for a bochs-display';
    problems.push({ path: ['devices', index, 'memory'], message });
  } else if (kind !== 'accel' && 4 * width * height > memory) {
    const message = `${width} x ${height} pixels need ${4 * width * height} bytes of memory`;
    problems.push({ path: ['devices', index, 'memory'], message });
  }
  return problems;
}

/** What is wrong with one of the devices. */
export function checkDevice(
  source: ConfigFile,
  devices: readonly ParsedDevice[],
  index: number,
): ConfigProblem[] {
  const device = devices[index];
  if (device === undefined) return [];
  return [...checkFields(device, index), ...checkSocket(source, devices, index)];
}

/** A server has one client at a time. */
function checkSocket(
  source: ConfigFile,
  devices: readonly ParsedDevice[],
  index: number,
): ConfigProblem[] {
  const device = devices[index];
  if (device?.kind !== REMOTE) return [];
  if (device.socket === undefined) {
    const message =
      'is missing: where another process serves the device, as dxpu device serve does';
    return [{ path: ['devices', index, 'socket'], message }];
  }
  const file = source.pathOf(device.socket);
  const tooLong = socketPathProblem(file);
  if (tooLong !== undefined) {
    return [{ path: ['devices', index, 'socket'], message: `${tooLong}: choose a shorter path` }];
  }
  const first = devices.findIndex(
    ({ socket }) => socket !== undefined && source.pathOf(socket) === file,
  );
  if (first === index) return [];
  const message = `${file} is twice: slot ${devices[first]?.slot} has it already`;
  return [{ path: ['devices', index, 'socket'], message }];
}

/** What is in the slot, with the options of its kind. */
export function choiceOf(
  source: ConfigFile,
  device: ParsedDevice,
  box: string,
): ModelChoice | RemoteChoice {
  const { kind, model, socket = '' } = device;
  const uuid = device.uuid ?? uuidOf(kind, box, device.slot);
  if (kind !== REMOTE) return modelOf({ ...device, kind }, uuid);
  const path = source.pathOf(socket);
  return { kind, options: { path, uuid, ...(model === undefined ? {} : { model }) } };
}

/** The model of a device, with the options of its kind. */
function modelOf(device: ParsedDevice & { kind: DeviceKind }, uuid: string): ModelChoice {
  const { kind, tags, channels, nsPerFlop, width, height } = device;
  const common = {
    uuid,
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

/** A UUID that is the same at each start: name based, version 8 (RFC 9562), of kind, box and slot. */
function uuidOf(kind: SlotKind, box: string, slot: number): string {
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
