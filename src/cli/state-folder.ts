/**
 * Where the processes of one user on one machine meet: a folder with one UNIX socket a process,
 * `host-ID.sock`, `box-ID.sock` or `manager-ID.sock`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { errnoReason, makeFolder } from '#base/make-folder';
import type { Identity } from '#identity/identity';
import { UsageError } from './output.ts';
import { socketPathProblem } from './socket-path.ts';

/**
 * The folder of `--state`, or $DXPU_STATE, or ~/.local/state/dxpu; a variable that is empty is not set.
 * An empty option is wrong usage: whoever gave one did not mean the usual folder.
 */
export function stateFolder(option: string | undefined): string {
  if (option === '') {
    throw new UsageError('--state is empty: name a folder, or leave the option out for the usual');
  }
  const variable = (name: string): string | undefined => process.env[name] || undefined;
  const chosen = option ?? variable('DXPU_STATE');
  if (chosen !== undefined) return path.resolve(chosen);
  const base = variable('XDG_STATE_HOME') ?? path.join(os.homedir(), '.local', 'state');
  return path.join(base, 'dxpu');
}

export function makeStateFolder(folder: string): void {
  try {
    makeFolder(folder);
  } catch (error) {
    const { code, message } = DxpuError.from(error);
    throw new DxpuError(
      code,
      `no state folder at ${folder}: ${message}; choose another with --state`,
      { cause: error },
    );
  }
}

/** The control socket of a process. Fails when the path is longer than the system allows. */
export function socketPath(folder: string, identity: Identity): string {
  return socketOf(folder, `${identity.kind}-${identity.id}`);
}

/** As `socketPath`, of the process called `host-h1`. */
export function socketOf(folder: string, name: string): string {
  return fittingSocket(path.join(folder, `${name}.sock`));
}

/** `file`. Fails when it is longer than the path of a socket may be. */
export function fittingSocket(file: string): string {
  const problem = socketPathProblem(file);
  if (problem === undefined) return file;
  throw new DxpuError(
    'invalid_argument',
    `the socket path ${problem}: choose a shorter folder with --state`,
  );
}

/** In the order in which they are shown. */
const PROCESS_KINDS = ['host', 'box', 'manager'] as const;
export type ProcessKind = (typeof PROCESS_KINDS)[number];

export interface KnownProcess {
  /** `host-h1`, `box-b1`, `manager-m1`. */
  readonly name: string;
  readonly kind: ProcessKind;
  readonly socket: string;
}

/** A process of the folder, running or not. Fails as `socketPath` does. */
export function processOf(folder: string, kind: ProcessKind, id: string): KnownProcess {
  return { name: `${kind}-${id}`, kind, socket: socketPath(folder, { kind, id }) };
}

/** The processes that have a socket in the folder, running or not: hosts, boxes, managers. */
export function knownProcesses(folder: string): KnownProcess[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT') return [];
    const reason =
      code === 'ENOTDIR'
        ? 'it is not a folder'
        : code === 'EACCES'
          ? 'this user may not read it: it belongs to the user who started the processes'
          : errnoReason(error);
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot look for processes in ${folder}: ${reason}; name another folder with --state`,
      { details: { folder }, cause: error },
    );
  }
  names.sort();
  return PROCESS_KINDS.flatMap((kind) =>
    names
      .filter((name) => name.startsWith(`${kind}-`) && name.endsWith('.sock'))
      .map((name) => ({
        name: name.slice(0, -'.sock'.length),
        kind,
        socket: path.join(folder, name),
      })),
  );
}

/** Where the process that listens on a control socket writes its number, for when it is mute. */
export function pidFile(socket: string): string {
  return socket.replace(/\.sock$/, '.pid');
}

/** The number of a process, where it has left one. */
export function pidOf(target: KnownProcess): number | undefined {
  try {
    const pid = Number(readFileSync(pidFile(target.socket), 'utf8'));
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

/** Whether there is a process of that number that has not ended. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  try {
    // A zombie has ended; its parent has not looked yet. Linux alone has this file.
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return !stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
  } catch {
    return true;
  }
}
