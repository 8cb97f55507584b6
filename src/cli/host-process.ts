/** `dxpu host`: a host proxy with a soft host or a VM behind it, as a process. */
import { randomInt, randomUUID } from 'node:crypto';
import * as path from 'node:path';
import { z } from 'zod';
import { HostAgentCore } from '#agent/core/host-agent';
import { HostNode } from '#agent/daemon/host-node';
import type { ManagerStream } from '#agent/daemon/manager-stream';
import type { VmPlace } from '#agent/daemon/vm-slots';
import { DxpuError } from '#base/errors';
import { connectTransport } from '#fabric/socket-endpoint';
import { AccessStatus } from '#host/cpu-access';
import { configRead } from '#host/host-operations';
import { formatListing } from '#host/listing';
import type { SoftHost } from '#host/root-complex';
import type { Task } from '#host/task';
import type { TlsCredentials } from '#identity/tls-identity';
import { AccelJobs } from './accel-jobs.ts';
import type { CaptureBegin } from './capture-stream.ts';
import {
  type DaemonOptions,
  type DaemonProcess,
  type DaemonStart,
  parseParams,
  runDaemon,
} from './daemon-process.ts';
import { type HostConfig, readHostConfig, type VmOfHost } from './host-config.ts';
import { UsageError } from './output.ts';
import { version } from './program-options.ts';
import { managerStream, proxyProcess, setTable } from './proxy-process.ts';
import { stateFolder } from './state-folder.ts';
import { measureRoundTrips, type RoundTrips } from './round-trip.ts';

/** QEMU takes in a function in some 0.1 s; `OwnProcess` waits 3 s for the end of a process. */
const TAKEN_IN_NS = 2e9;

export interface HostOptions extends DaemonOptions {
  readonly qmp?: string;
  readonly slot?: readonly string[];
}

/** Throws `UsageError` for a QMP socket without root ports, or the other way. */
export function runHost(options: HostOptions): Promise<void> {
  const { qmp, slot: rootPorts } = options;
  if ((qmp === undefined) !== (rootPorts === undefined)) {
    throw new UsageError("--qmp and --slot go together: a VM's QMP socket, and its root ports");
  }
  const vm = qmp === undefined || rootPorts === undefined ? undefined : { qmp, rootPorts };
  return runDaemon(
    'host',
    options,
    (file) => readHostConfig(file, undefined, vm),
    (start) => startHost(start, options.state),
  );
}

async function startHost(
  start: DaemonStart<HostConfig>,
  state: string | undefined,
): Promise<DaemonProcess> {
  const { config, credentials, frame } = start;
  const { id, reach } = config;
  const vm = config.vm === undefined ? undefined : await vmPlace(config.vm, stateFolder(state), id);
  const { clock, faults } = frame;
  // Frames may come before there is one.
  let stream: ManagerStream | undefined = undefined;
  const node = new HostNode({
    id,
    softHost: config.softHost,
    linkOptions: config.linkOptions,
    ...(vm === undefined ? {} : { vm }),
    isManaged: config.manager !== undefined,
    onChanged: (now) => stream?.changed(now),
    clock,
    log: frame.log,
    newSessionId: () => randomInt(1, 2 ** 47),
    connect: async (path) => {
      if (faults.isCut(clock.now())) throw new DxpuError('unavailable', 'cut by fault injection');
      const transport = await connectTransport({
        host: path.host,
        port: path.port,
        clock,
        protection: { kind: 'tls', credentials, expected: { kind: 'box', id: path.box } },
      });
      return faults.wrap(transport);
    },
  });
  const hello = { kind: 'host', id, instance: randomUUID(), version: version(), reach } as const;
  stream = managerStream(start, new HostAgentCore({ hello, plane: node.plane }), node);
  stream?.start();
  if (stream === undefined) {
    setTable(node, config);
    node.setPaths(config.paths);
  }
  const jobs = new AccelJobs(node);
  return proxyProcess(start, node, stream, {
    read: (file, inForce) => readHostConfig(file, inForce, config.vm),
    readFunction: (slot) => readFunction(node, slot),
    handlers: {
      listing: () => ({ text: formatListing(node.soft, node.hotPlug, { verbose: true }) }),
      run: (params, call) => jobs.run(params, call),
      wait: (params) => waitForFunctions(node, params),
      'round-trip': (params) => roundTrip(node, credentials, params),
    },
    finish: () => node.untilTakenIn(TAKEN_IN_NS),
    stop: (reason) => node.stop(reason),
  });
}

/** Loads what serves devices to a VM: other hosts need none of it. */
async function vmPlace(vm: VmOfHost, folder: string, id: string): Promise<VmPlace> {
  const { VfioUserServer } = await import('#vfio-user/server');
  return {
    ...vm,
    socketPrefix: path.join(folder, `host-${id}-vfio`),
    serve: (device, socket) => new VfioUserServer({ path: socket, device }),
  };
}

/** What a replay needs to know of the function; read before the capture, so that it is not in it. */
async function readFunction(node: HostNode, slot: number): Promise<CaptureBegin['function']> {
  const fn = node.usedFunctionAt(slot);
  if (fn === undefined) return undefined;
  const configSpace = await node.run(readConfigSpace(node.soft, fn.bdf));
  return { bdf: fn.bdf, configSpace: configSpace.toString('hex') };
}

function* readConfigSpace(host: SoftHost, bdf: number): Task<Buffer> {
  const bytes = Buffer.alloc(256);
  for (let register = 0; register < bytes.length; register += 4) {
    bytes.writeUInt32LE(yield* configRead(host, bdf, register), register);
  }
  return bytes;
}

const waitParams = z.strictObject({
  slots: z.array(z.int().min(0)),
  withinMs: z.number().min(0),
});

/** Returns once every slot has its function; fails with what is in the way of one. */
async function waitForFunctions(node: HostNode, params: unknown): Promise<object> {
  const { slots, withinMs } = parseParams(waitParams, params);
  for (const slot of slots) {
    node.checkSlot(slot);
    await node.run(node.hotPlug.waitForFunction(slot, withinMs * 1e6));
  }
  return { slots: node.slotStatuses() };
}

const roundTripParams = z.strictObject({
  slot: z.int().min(0),
  samples: z.int().min(10).max(100_000),
  tcpPort: z.int().min(1).max(65535),
  tlsPort: z.int().min(1).max(65535),
});

/** Reads the first register of the function over and over, beside raw echoes. */
async function roundTrip(
  node: HostNode,
  credentials: TlsCredentials,
  params: unknown,
): Promise<RoundTrips> {
  const { slot, samples, ...ports } = parseParams(roundTripParams, params);
  const bar = node.functionAt(slot).bars.find((one) => one.index === 0);
  if (bar === undefined) {
    throw new DxpuError('failed_precondition', `the function of slot ${slot} has no BAR 0`);
  }
  let failed = 0;
  const read = (done: () => void): void => {
    node.soft.readMmio32(node.now(), bar.address, (_now, _value, status) => {
      if (status !== AccessStatus.OK) failed++;
      done();
    });
    node.settle();
  };
  const release = node.hold(slot);
  let result: RoundTrips;
  try {
    result = await measureRoundTrips(read, ports, credentials, samples);
  } finally {
    release();
  }
  if (failed > 0) {
    throw new DxpuError('unavailable', `${failed} reads of slot ${slot} failed: is its link up?`);
  }
  return result;
}
