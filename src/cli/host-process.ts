/** `dxpu host`: a host proxy with a soft host behind it, as a process. */
import { randomInt, randomUUID } from 'node:crypto';
import { z } from 'zod';
import { HostAgentCore } from '#agent/core/host-agent';
import type { ManagerStream } from '#agent/daemon/manager-stream';
import { DxpuError } from '#base/errors';
import { connectTransport } from '#fabric/socket-endpoint';
import { loadCredentials, type TlsCredentials } from '#identity/tls-identity';
import type { PeerIdentity } from '#fabric/transport';
import { AccessStatus } from '#host/cpu-access';
import { configRead } from '#host/host-operations';
import { formatListing } from '#host/listing';
import type { SoftHost } from '#host/root-complex';
import type { Task } from '#host/task';
import { AccelJobs } from './accel-jobs.ts';
import { type CaptureBegin, captureHandlers } from './capture-stream.ts';
import { reportCounters } from '#agent/daemon/counter-report';
import { type HostConfig, readHostConfig } from './host-config.ts';
import { HostNode } from '#agent/daemon/host-node';
import { ignoredChanges } from './fixed-part.ts';
import { managerStream, refuseReload } from './manager-link.ts';
import { printLine } from './output.ts';
import { version } from './program-options.ts';
import {
  createFrame,
  parseParams,
  type ProcessFrame,
  type ProxyProcess,
  type ProxyProcessOptions,
  reportFaults,
  serveProcess,
} from './proxy-process.ts';
import { measureRoundTrips, type RoundTrips } from './round-trip.ts';

export async function runHost(options: ProxyProcessOptions): Promise<void> {
  const config = readHostConfig(options.config);
  const identity: PeerIdentity = { kind: 'host', id: config.id };
  const credentials = loadCredentials(config.credentialFiles, identity, Date.now());
  if (options.check === true) {
    printLine(`${options.config}: nothing wrong with it`);
    return;
  }
  const frame = createFrame(identity, options);
  await serveProcess(frame, options, async () => {
    // Frames may come before there is a stream.
    const live: { stream?: ManagerStream } = {};
    const node = new HostNode({
      id: config.id,
      softHost: config.softHost,
      linkOptions: config.linkOptions,
      isManaged: config.manager !== undefined,
      onChanged: (now) => live.stream?.changed(now),
      clock: frame.clock,
      log: frame.log,
      newSessionId: () => randomInt(1, 2 ** 47),
      connect: async (path) => {
        const { clock, faults } = frame;
        if (faults.isCut(clock.now())) {
          throw new DxpuError('unavailable', 'cut by fault injection');
        }
        const transport = await connectTransport({
          host: path.host,
          port: path.port,
          clock,
          protection: { kind: 'tls', credentials, expected: { kind: 'box', id: path.box } },
        });
        return faults.wrap(transport);
      },
    });
    const { id, reach } = config;
    const instance = randomUUID();
    const hello = { kind: 'host', id, instance, version: version(), reach } as const;
    const stream = managerStream(config.manager, {
      agent: new HostAgentCore({ hello, plane: node.plane }),
      credentials,
      clock: frame.clock,
      log: frame.log,
      settle: () => node.settle(),
    });
    if (stream === undefined) {
      setTable(node, config);
      node.setPaths(config.paths);
    } else {
      live.stream = stream;
      stream.start();
    }
    return hostProcess(frame, options, config, node, credentials, stream);
  });
}

function hostProcess(
  frame: ProcessFrame,
  options: ProxyProcessOptions,
  config: HostConfig,
  node: HostNode,
  credentials: TlsCredentials,
  stream: ManagerStream | undefined,
): ProxyProcess {
  const jobs = new AccelJobs(node);
  return {
    handlers: {
      status: () => ({
        kind: 'host',
        id: config.id,
        pid: process.pid,
        config: options.config,
        uptimeS: process.uptime(),
        manager: stream?.status(),
        table: node.proxy.rows,
        slots: node.slotStatuses(),
        stray: reportCounters(node.proxy.strayCounters),
        links: node.linkReports(),
        faults: reportFaults(frame),
      }),
      listing: () => ({ text: formatListing(node.soft, node.hotPlug, { verbose: true }) }),
      ...captureHandlers({
        taps: node.taps,
        checkSlot: (slot) => node.checkSlot(slot),
        counters: (slot) => node.proxy.counters(slot),
        readFunction: (slot) => readFunction(node, slot),
      }),
      run: (params, call) => jobs.run(params, call),
      wait: (params) => waitForFunctions(node, params),
      'round-trip': (params) => roundTrip(node, credentials, params),
    },
    reload: () => {
      refuseReload(stream);
      const next = readHostConfig(options.config, config);
      setTable(node, next);
      const ignored = ignoredChanges(config.fixedPart, next.fixedPart);
      return { ...node.tableReport(), ...(ignored === undefined ? {} : { ignored }) };
    },
    stop: (reason) => {
      stream?.stop();
      node.stop(reason);
    },
  };
}

/** Puts the table of a configuration in force, or fails and changes nothing. */
function setTable(node: HostNode, config: HostConfig): void {
  const errors = node.setTable(config.rows);
  if (errors.length > 0) throw config.tableError(errors);
}

/** What a replay needs to know of the function; read before the capture, so that it is not in it. */
async function readFunction(node: HostNode, slot: number): Promise<CaptureBegin['function']> {
  const fn = node.hotPlug.functionAt(slot);
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
