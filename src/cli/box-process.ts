/** `dxpu box`: a box proxy with its devices, as a process. */
import { randomUUID } from 'node:crypto';
import { BoxAgentCore } from '#agent/core/box-agent';
import { formatEndpoint } from '#agent/daemon/endpoint';
import type { ManagerStream } from '#agent/daemon/manager-stream';
import { DxpuError } from '#base/errors';
import { type Listener, listenTransports } from '#fabric/socket-endpoint';
import { loadCredentials } from '#identity/tls-identity';
import type { PeerIdentity } from '#fabric/transport';
import type { BoxHello, Endpoint } from '#proto/agent-messages';
import { type BoxConfig, isWildcard, readBoxConfig } from './box-config.ts';
import { BoxNode } from '#agent/daemon/box-node';
import { captureHandlers } from './capture-stream.ts';
import { reportCounters } from '#agent/daemon/counter-report';
import { EchoServers } from './echo-server.ts';
import { ignoredChanges } from './fixed-part.ts';
import { managerStream, refuseReload } from './manager-link.ts';
import { printLine } from './output.ts';
import { version } from './program-options.ts';
import {
  createFrame,
  type ProcessFrame,
  type ProxyProcess,
  type ProxyProcessOptions,
  reportFaults,
  serveProcess,
} from './proxy-process.ts';
import { RepeatedLog } from '#agent/daemon/repeated-log';

export async function runBox(options: ProxyProcessOptions): Promise<void> {
  const config = readBoxConfig(options.config);
  const identity: PeerIdentity = { kind: 'box', id: config.id };
  const credentials = loadCredentials(config.credentialFiles, identity, Date.now());
  if (options.check === true) {
    printLine(`${options.config}: nothing wrong with it`);
    return;
  }
  const frame = createFrame(identity, options);
  await serveProcess(frame, options, async () => {
    // Frames may come before there is a stream.
    const live: { stream?: ManagerStream } = {};
    const node = new BoxNode({
      id: config.id,
      devices: config.devices,
      linkOptions: config.linkOptions,
      ...(config.outstandingReads === undefined
        ? {}
        : { outstandingReads: config.outstandingReads }),
      clock: frame.clock,
      log: frame.log,
      isManaged: config.manager !== undefined,
      onChanged: (now) => live.stream?.changed(now),
    });
    if (config.manager === undefined) setTable(node, config);
    const listeners: Listener[] = [];
    const repeated = new RepeatedLog(frame.log);
    try {
      for (const { host, port } of config.listen) {
        const listener = await listenTransports({
          host,
          port,
          clock: frame.clock,
          protection: { kind: 'tls', credentials, expected: { kind: 'host' } },
          onTransport: (transport, from) => {
            const { faults, clock } = frame;
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
        frame.log.info(`listening on ${listener.host}:${listener.port}`);
      }
    } catch (error) {
      for (const listener of listeners) listener.close();
      throw error;
    }
    const hello: BoxHello = {
      kind: 'box',
      id: config.id,
      instance: randomUUID(),
      version: version(),
      boxKind: config.kind,
      zone: config.zone,
      endpoints: config.advertise ?? endpointsOf(listeners),
    };
    const stream = managerStream(config.manager, {
      agent: new BoxAgentCore({ hello, plane: node.plane }),
      credentials,
      clock: frame.clock,
      log: frame.log,
      settle: () => node.settle(),
    });
    if (stream !== undefined) {
      live.stream = stream;
      stream.start();
    }
    const echo = new EchoServers(credentials);
    return boxProcess(frame, options, config, node, listeners, echo, stream);
  });
}

function boxProcess(
  frame: ProcessFrame,
  options: ProxyProcessOptions,
  config: BoxConfig,
  node: BoxNode,
  listeners: readonly Listener[],
  echo: EchoServers,
  stream: ManagerStream | undefined,
): ProxyProcess {
  return {
    handlers: {
      status: () => ({
        kind: 'box',
        id: config.id,
        pid: process.pid,
        config: options.config,
        listen: listeners.map((one) => `${one.host}:${one.port}`),
        uptimeS: process.uptime(),
        manager: stream?.status(),
        table: node.proxy.rows,
        slots: node.slotStatuses(),
        stray: reportCounters(node.proxy.strayCounters),
        links: node.linkReports(),
        faults: reportFaults(frame),
      }),
      ...captureHandlers({
        taps: node.taps,
        checkSlot: (slot) => node.checkSlot(slot),
        counters: (slot) => node.proxy.counters(slot),
        readFunction: (slot) => node.readFunction(slot),
      }),
      echo: (_params, call) => echo.open(call.signal, (ports) => call.emit(ports)),
    },
    reload: () => {
      refuseReload(stream);
      const next = readBoxConfig(options.config, config);
      setTable(node, next);
      const ignored = ignoredChanges(config.fixedPart, next.fixedPart);
      return { ...node.tableReport(), ...(ignored === undefined ? {} : { ignored }) };
    },
    stop: (reason) => {
      stream?.stop();
      for (const listener of listeners) listener.close();
      node.stop(reason);
      echo.close();
    },
  };
}

/** Puts the table of a configuration in force, or fails and changes nothing. */
function setTable(node: BoxNode, config: BoxConfig): void {
  const errors = node.setTable(config.rows);
  if (errors.length > 0) throw config.tableError(errors);
}

/** The addresses hosts can connect to, with the ports that were taken: paths net0, net1 and so on. */
function endpointsOf(listeners: readonly Listener[]): Endpoint[] {
  return listeners
    .filter(({ host }) => !isWildcard(host))
    .map((listener, index) => ({ path: `net${index}`, address: formatEndpoint(listener) }));
}
