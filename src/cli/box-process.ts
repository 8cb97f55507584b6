/** `dxpu box`: a box proxy with its devices, as a process. */
import { randomUUID } from 'node:crypto';
import { BoxAgentCore } from '#agent/core/box-agent';
import { BoxNode } from '#agent/daemon/box-node';
import { formatEndpoint } from '#agent/daemon/endpoint';
import type { ManagerStream } from '#agent/daemon/manager-stream';
import { RepeatedLog } from '#agent/daemon/repeated-log';
import { DxpuError } from '#base/errors';
import { type Listener, listenTransports } from '#fabric/socket-endpoint';
import type { BoxHello, Endpoint } from '#proto/agent-messages';
import { type BoxConfig, isWildcard, readBoxConfig } from './box-config.ts';
import {
  type DaemonOptions,
  type DaemonProcess,
  type DaemonStart,
  runDaemon,
} from './daemon-process.ts';
import { EchoServers } from './echo-server.ts';
import { takeScreenshot } from './take-screenshot.ts';
import { version } from './program-options.ts';
import { managerStream, proxyProcess, setTable } from './proxy-process.ts';

/** For devices of other processes: longer than one takes that is there. */
const FIRST_LOOK_NS = 2e9;

export const runBox = (options: DaemonOptions): Promise<void> =>
  runDaemon('box', options, readBoxConfig, startBox);

async function startBox(start: DaemonStart<BoxConfig>): Promise<DaemonProcess> {
  const { config, credentials, frame } = start;
  // Frames may come before there is one.
  let stream: ManagerStream | undefined = undefined;
  const node = new BoxNode({
    id: config.id,
    devices: config.devices,
    linkOptions: config.linkOptions,
    ...(config.outstandingReads === undefined ? {} : { outstandingReads: config.outstandingReads }),
    clock: frame.clock,
    log: frame.log,
    isManaged: config.manager !== undefined,
    onChanged: (now) => stream?.changed(now),
  });
  if (config.manager === undefined) setTable(node, config);
  const listeners = await listen(start, node);
  const hello: BoxHello = {
    kind: 'box',
    id: config.id,
    instance: randomUUID(),
    version: version(),
    boxKind: config.kind,
    zone: config.zone,
    endpoints: config.advertise ?? endpointsOf(listeners),
  };
  stream = managerStream(start, new BoxAgentCore({ hello, plane: node.plane }), node);
  // A binding whose GPU node is missing from the first report fails, and does not come back by itself.
  if (stream !== undefined) await node.devicesSeen(FIRST_LOOK_NS);
  stream?.start();
  const echo = new EchoServers(credentials);
  return proxyProcess(start, node, stream, {
    read: readBoxConfig,
    readFunction: (slot) => node.readFunction(slot),
    status: { listen: listeners.map((one) => `${one.host}:${one.port}`) },
    handlers: {
      echo: (_params, call) => echo.open(call.signal, (ports) => call.emit(ports)),
      screenshot: (params) => takeScreenshot(node, params),
    },
    stop: (reason) => {
      for (const listener of listeners) listener.close();
      node.stop(reason);
      echo.close();
    },
  });
}

/** Takes hosts at all addresses of the configuration, or at none. */
async function listen(
  { config, credentials, frame }: DaemonStart<BoxConfig>,
  node: BoxNode,
): Promise<Listener[]> {
  const { faults, clock, log } = frame;
  const listeners: Listener[] = [];
  const repeated = new RepeatedLog(log);
  try {
    for (const { host, port } of config.listen) {
      const listener = await listenTransports({
        host,
        port,
        clock,
        protection: { kind: 'tls', credentials, expected: { kind: 'host' } },
        onTransport: (transport, from) => {
          if (faults.isCut(clock.now())) transport.close();
          else node.accept(faults.wrap(transport), from);
        },
        onRefused: (error) => {
          // Each connection has a port of its own: the reason alone makes two alike.
          const reason = DxpuError.from(error.cause).message;
          repeated.say('warn', error.details, error.message, reason);
        },
      });
      listeners.push(listener);
      log.info(`listening on ${listener.host}:${listener.port}`);
    }
  } catch (error) {
    for (const listener of listeners) listener.close();
    throw error;
  }
  return listeners;
}

/** The addresses hosts can connect to, with the ports that were taken: paths net0, net1 and so on. */
function endpointsOf(listeners: readonly Listener[]): Endpoint[] {
  return listeners
    .filter(({ host }) => !isWildcard(host))
    .map((listener, index) => ({ path: `net${index}`, address: formatEndpoint(listener) }));
}
