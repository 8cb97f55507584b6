/** `dxpu box`: a box proxy with its devices, as a process. */
import { DxpuError } from '#base/errors';
import { type Listener, listenTransports } from '#fabric/socket-endpoint';
import { loadCredentials } from '#identity/tls-identity';
import type { PeerIdentity } from '#fabric/transport';
import { type BoxConfig, readBoxConfig } from './box-config.ts';
import { BoxNode } from './box-node.ts';
import { captureHandlers } from './capture-stream.ts';
import { reportCounters } from './counter-report.ts';
import { EchoServers } from './echo-server.ts';
import { ignoredChanges } from './fixed-part.ts';
import { printLine } from './output.ts';
import {
  createFrame,
  type ProcessFrame,
  type ProxyProcess,
  type ProxyProcessOptions,
  reportFaults,
  serveProcess,
} from './proxy-process.ts';
import { RepeatedLog } from './repeated-log.ts';

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
    const node = new BoxNode(config, frame.clock, frame.log);
    node.setTable(config);
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
    return boxProcess(frame, options, config, node, listeners, new EchoServers(credentials));
  });
}

function boxProcess(
  frame: ProcessFrame,
  options: ProxyProcessOptions,
  config: BoxConfig,
  node: BoxNode,
  listeners: readonly Listener[],
  echo: EchoServers,
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
        table: node.proxy.rows,
        slots: node.slotReports(),
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
      const next = readBoxConfig(options.config, config);
      node.setTable(next);
      const ignored = ignoredChanges(config.fixedPart, next.fixedPart);
      return { ...node.rowsInForce(), ...(ignored === undefined ? {} : { ignored }) };
    },
    stop: (reason) => {
      for (const listener of listeners) listener.close();
      node.stop(reason);
      echo.close();
    },
  };
}
