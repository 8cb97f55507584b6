/**
 * What the processes that stay, manager, box and host, have in common: a configuration, a state folder
 * with a control socket, signals, faults, and an end that leaves nothing behind.
 */
import { randomInt } from 'node:crypto';
import { z } from 'zod';
import { type Clock, RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import { FaultInjector } from '#fabric/fault-transport';
import type { Identity } from '#identity/identity';
import { type CredentialFiles, loadCredentials, type TlsCredentials } from '#identity/tls-identity';
import { type ControlHandler, type ControlServer, startControlServer } from './control-server.ts';
import { createLog, type Logger, outliveStderr } from './log.ts';
import type { TableReport } from '#agent/daemon/slot-reasons';
import { printLine } from './output.ts';
import { makeStateFolder, type ProcessKind, socketPath, stateFolder } from './state-folder.ts';

export interface DaemonOptions {
  readonly config: string;
  readonly state?: string;
  readonly check?: boolean;
  readonly logFormat?: 'text' | 'json';
  readonly logLevel?: string;
}

/** Set up before anything listens, so that a second process of one name ends at once. */
export interface DaemonFrame {
  readonly identity: Identity;
  readonly clock: Clock;
  readonly log: Logger;
  readonly faults: FaultInjector;
}

export interface DaemonProcess {
  readonly handlers: Readonly<Record<string, ControlHandler>>;
  /**
   * Reads the configuration again and puts its table in force. Fails and changes nothing. Left out by a
   * process whose configuration is read at its start alone.
   */
  reload?(): ReloadResult;
  /** What must not be cut short by `stop`, which follows it. It takes no longer than whoever stops would wait. */
  finish?(): Promise<void>;
  /** Says goodbye to the peers and closes what is open. */
  stop(reason: string): void;
}

export interface ReloadResult extends TableReport {
  /** What changed besides the table: it needs a restart. */
  readonly ignored?: string;
}

/** After `stop`, connections have this long to send their last words. */
const LINGER_MS = 300;

export interface DaemonConfig {
  readonly id: string;
  readonly credentialFiles: CredentialFiles;
}

/** What a process is made of. */
export interface DaemonStart<C extends DaemonConfig> {
  /** The configuration's. */
  readonly file: string;
  readonly config: C;
  readonly credentials: TlsCredentials;
  readonly frame: DaemonFrame;
  readonly end: EndProcess;
}

/**
 * Reads and checks a configuration and, unless that was all that was asked for, serves `make`'s process
 * until it is told to stop. Returns once everything listens; the process then lives on by its sockets
 * and ends with status 0, or with another where it ends itself.
 */
export async function runDaemon<C extends DaemonConfig>(
  kind: ProcessKind,
  options: DaemonOptions,
  read: (file: string) => C,
  make: (start: DaemonStart<C>) => Promise<DaemonProcess>,
): Promise<void> {
  const { config: file } = options;
  const config = read(file);
  const identity: Identity = { kind, id: config.id };
  const credentials = loadCredentials(config.credentialFiles, identity, Date.now());
  if (options.check === true) {
    printLine(`${file}: nothing wrong with it`);
    return;
  }
  const frame = createFrame(identity, options);
  outliveStderr();
  await serve(frame, options, (end) => make({ file, config, credentials, frame, end }));
}

function createFrame(identity: Identity, options: DaemonOptions): DaemonFrame {
  const clock = new RealClock();
  return {
    identity,
    clock,
    log: createLog(`${identity.kind}-${identity.id}`, {
      ...(options.logFormat === undefined ? {} : { format: options.logFormat }),
      ...(options.logLevel === undefined ? {} : { level: options.logLevel }),
    }),
    faults: new FaultInjector(clock, new Prng(randomInt(2 ** 47))),
  };
}

/** Message a process sends over its IPC channel once it serves, where somebody started it with one. */
export interface ReadyMessage {
  readonly ready: true;
}

/** Ends the process in order, with an exit status. */
export type EndProcess = (reason: string, status: number) => void;

async function serve(
  frame: DaemonFrame,
  options: DaemonOptions,
  make: (end: EndProcess) => Promise<DaemonProcess>,
): Promise<void> {
  const { identity, log } = frame;
  const folder = stateFolder(options.state);
  makeStateFolder(folder);
  const path = socketPath(folder, identity);

  const live: { process?: DaemonProcess; control?: ControlServer } = {};
  let stopping = false;
  const end = (reason: string): void => {
    live.process?.stop(reason);
    live.control?.close();
    if (process.connected === true) process.disconnect?.();
    // Everything that is open ends by itself; this is for what does not.
    setTimeout(() => process.exit(), LINGER_MS).unref();
  };
  const stop = (reason: string, status = 0): void => {
    if (stopping) return;
    stopping = true;
    process.exitCode = status;
    log.info({ reason }, 'stopping');
    if (live.process?.finish === undefined) end(reason);
    else void live.process.finish().then(() => end(reason));
  };
  // Before there is anything to leave behind: a signal may come at any time.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal));
  const orphaned = (): void => stop('the process that started this one is gone');
  process.on('disconnect', orphaned);
  // Undefined for a process that was started without a channel.
  if (process.connected === false) orphaned();
  if (stopping) return;

  const handlers: Record<string, ControlHandler> = {};
  live.control = await startControlServer(path, handlers);
  let made: DaemonProcess;
  try {
    // Told to stop meanwhile: what was made is taken down again.
    if (stopping) throw new DxpuError('cancelled', 'told to stop while starting');
    made = await make(stop);
  } catch (error) {
    live.control.close();
    if (stopping) return;
    throw error;
  }
  live.process = made;
  if (stopping) {
    made.stop('told to stop while starting');
    live.control.close();
    return;
  }

  const reload = (): ReloadResult => {
    if (made.reload === undefined) {
      throw new DxpuError(
        'unimplemented',
        `${identity.kind}-${identity.id} reads its configuration at its start alone: restart it`,
      );
    }
    try {
      const result = made.reload();
      log.info({ rows: result.rows, contained: result.contained.length }, 'table reloaded');
      if (result.ignored !== undefined) log.warn(result.ignored);
      return result;
    } catch (error) {
      const refused = DxpuError.from(error);
      log.error(`reload refused, the table in force stays: ${refused.message}`);
      throw new DxpuError(refused.code, `the table in force stays: ${refused.message}`, {
        details: refused.details,
        cause: error,
      });
    }
  };
  Object.assign(handlers, made.handlers, {
    reload,
    fault: (params: unknown) => setFault(frame, params),
    stop: () => {
      setImmediate(() => stop('asked for by dxpu stop'));
      return { pid: process.pid };
    },
  });

  process.on('SIGHUP', () => {
    try {
      reload();
    } catch {
      // Logged already; the process goes on with what it had.
    }
  });
  if (process.connected === true) {
    const message: ReadyMessage = { ready: true };
    // Without a callback a parent that has just gone would end this process with an exception.
    process.send?.(message, undefined, undefined, (error) => {
      if (error !== null) orphaned();
    });
  }
  log.info({ control: path, pid: process.pid }, 'ready');
}

const faultParams = z.strictObject({
  cutNs: z.number().min(0).optional(),
  delayNs: z.number().min(0).optional(),
  dropProbability: z.number().min(0).max(1).optional(),
  clear: z.boolean().optional(),
});

function setFault(frame: DaemonFrame, params: unknown): object {
  const { faults, clock, log } = frame;
  const asked = parseParams(faultParams, params);
  if (asked.clear === true) faults.clear();
  faults.set({
    ...(asked.delayNs === undefined ? {} : { delayNs: asked.delayNs }),
    ...(asked.dropProbability === undefined ? {} : { dropProbability: asked.dropProbability }),
  });
  if (asked.cutNs !== undefined) faults.cut(clock.now(), asked.cutNs);
  log.warn(asked, asked.clear === true ? 'faults cleared' : 'faults set');
  return reportFaults(frame);
}

export function reportFaults({ faults, clock }: DaemonFrame): object {
  const now = clock.now();
  return {
    ...faults.settings,
    cutForNs: Math.max(0, faults.cutUntilNs - now),
    ...faults.counters,
  };
}

/** Parameters of a control request as `schema` has them, or an error that says what is wrong. */
export function parseParams<T>(schema: z.ZodType<T>, params: unknown): T {
  const result = schema.safeParse(params);
  if (result.success) return result.data;
  const [first] = result.error.issues;
  const at = (first?.path ?? []).map(String).join('.');
  const where = at === '' ? 'the parameters' : `parameter ${at}`;
  const message = first?.message ?? 'Wrong';
  const said = `${message.charAt(0).toLowerCase()}${message.slice(1)}`;
  throw new DxpuError('invalid_argument', `${where}: ${said}`, {
    details: { problems: result.error.issues.map(({ path, message: text }) => ({ path, text })) },
  });
}
