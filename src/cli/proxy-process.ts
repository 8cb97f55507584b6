/** What the processes of a box and of a host have in common: a node with its table, and its agent. */
import type { Agent } from '#agent/core/agent-core';
import { type LinkReport, reportCounters } from '#agent/daemon/counter-report';
import { ManagerStream } from '#agent/daemon/manager-stream';
import type { TableReport } from '#agent/daemon/slot-reasons';
import { DxpuError } from '#base/errors';
import type { SlotCounters } from '#fabric/counters';
import type { TableError } from '#fabric/table-check';
import { type CaptureSource, captureHandlers } from './capture-stream.ts';
import type { ControlHandler } from './control-server.ts';
import {
  type DaemonConfig,
  type DaemonProcess,
  type DaemonStart,
  reportFaults,
} from './daemon-process.ts';
import { type FixedPart, ignoredChanges } from './fixed-part.ts';
import type { ManagerPlace } from './member-config.ts';

/** A `BoxNode` or a `HostNode`. */
interface ProxyNode<R> extends Pick<CaptureSource, 'taps' | 'checkSlot'> {
  readonly proxy: {
    readonly rows: readonly R[];
    readonly strayCounters: SlotCounters;
    counters(slot: number): SlotCounters;
  };
  setTable(rows: readonly R[]): TableError[];
  tableReport(): TableReport;
  slotStatuses(): readonly object[];
  linkReports(): readonly LinkReport[];
  settle(): void;
}

/** A `BoxConfig` or a `HostConfig`. */
interface ProxyConfig<R> extends DaemonConfig {
  readonly manager: ManagerPlace | undefined;
  readonly rows: readonly R[];
  readonly fixedPart: FixedPart;
  tableError(errors: readonly TableError[]): DxpuError;
}

/** The stream to the manager, not started yet; `undefined` where the configuration has none. */
export function managerStream<R>(
  { config, credentials, frame }: DaemonStart<ProxyConfig<R>>,
  agent: Agent,
  node: ProxyNode<R>,
): ManagerStream | undefined {
  if (config.manager === undefined) return undefined;
  const { address, id } = config.manager;
  return new ManagerStream({
    agent,
    address,
    ...(id === undefined ? {} : { manager: id }),
    credentials,
    clock: frame.clock,
    log: frame.log,
    random: () => Math.random(),
    settle: () => node.settle(),
  });
}

/** Puts the table of a configuration in force, or fails and changes nothing. */
export function setTable<R>(node: ProxyNode<R>, config: ProxyConfig<R>): void {
  const errors = node.setTable(config.rows);
  if (errors.length > 0) throw config.tableError(errors);
}

/** What is particular to one kind of proxy. */
export interface ProxyParts<C> {
  readonly read: (file: string, inForce: C) => C;
  readonly readFunction: CaptureSource['readFunction'];
  /** Of its status. */
  readonly status?: object;
  readonly handlers: Readonly<Record<string, ControlHandler>>;
  /** As `DaemonProcess.finish`. */
  readonly finish?: () => Promise<void>;
  readonly stop: (reason: string) => void;
}

export function proxyProcess<R, C extends ProxyConfig<R>>(
  { file, config, frame }: DaemonStart<C>,
  node: ProxyNode<R>,
  stream: ManagerStream | undefined,
  parts: ProxyParts<C>,
): DaemonProcess {
  const { proxy } = node;
  return {
    handlers: {
      status: () => ({
        kind: frame.identity.kind,
        id: config.id,
        pid: process.pid,
        config: file,
        ...parts.status,
        uptimeS: process.uptime(),
        manager: stream?.status(),
        table: proxy.rows,
        slots: node.slotStatuses(),
        stray: reportCounters(proxy.strayCounters),
        links: node.linkReports(),
        faults: reportFaults(frame),
      }),
      ...captureHandlers({
        taps: node.taps,
        checkSlot: (slot) => node.checkSlot(slot),
        counters: (slot) => proxy.counters(slot),
        readFunction: parts.readFunction,
      }),
      ...parts.handlers,
    },
    reload: () => {
      if (stream !== undefined) throw noTableToRead(stream);
      const next = parts.read(file, config);
      setTable(node, next);
      const ignored = ignoredChanges(config.fixedPart, next.fixedPart);
      return { ...node.tableReport(), ...(ignored === undefined ? {} : { ignored }) };
    },
    ...(parts.finish === undefined ? {} : { finish: parts.finish }),
    stop: (reason) => {
      stream?.stop();
      parts.stop(reason);
    },
  };
}

function noTableToRead(stream: ManagerStream): DxpuError {
  return new DxpuError(
    'failed_precondition',
    `its rows come from the manager at ${stream.status().address}, the file has none to read: use ` +
      'dxpu bind and dxpu unbind; everything else in the file needs a restart',
  );
}
