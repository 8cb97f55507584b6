/**
 * Where the processes of one user on one machine meet: a folder with one UNIX socket a process,
 * `host-ID.sock` or `box-ID.sock`.
 */
import { mkdirSync, readdirSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import type { PeerIdentity } from '#fabric/transport';

/** sun_path has 108 bytes with its end mark on Linux, 104 elsewhere. */
const MAX_SOCKET_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

/** The folder of `--state`, or $DXPU_STATE, or ~/.local/state/dxpu. */
export function stateFolder(option: string | undefined): string {
  const chosen = option ?? process.env.DXPU_STATE;
  if (chosen !== undefined && chosen !== '') return path.resolve(chosen);
  const base = process.env.XDG_STATE_HOME ?? path.join(os.homedir(), '.local', 'state');
  return path.join(base, 'dxpu');
}

export function makeStateFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
  } catch (error) {
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot make the state folder ${folder}: ${(error as Error).message}; choose one with --state`,
      { cause: error },
    );
  }
}

/** The control socket of a process. Fails when the path is longer than the system allows. */
export function socketPath(folder: string, identity: PeerIdentity): string {
  const file = path.join(folder, `${identity.kind}-${identity.id}.sock`);
  const bytes = Buffer.byteLength(file);
  if (bytes > MAX_SOCKET_PATH_BYTES) {
    throw new DxpuError(
      'invalid_argument',
      `the socket path ${file} has ${bytes} bytes, the system allows ${MAX_SOCKET_PATH_BYTES}: ` +
        'choose a shorter folder with --state',
    );
  }
  return file;
}

export interface KnownProcess {
  /** `host-h1`, `box-b1`. */
  readonly name: string;
  readonly kind: 'host' | 'box';
  readonly socket: string;
}

/** The processes that have a socket in the folder, running or not; hosts first. */
export function knownProcesses(folder: string): KnownProcess[] {
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw DxpuError.from(error);
  }
  return names
    .filter((name) => /^(?:host|box)-.+\.sock$/.test(name))
    .map((name) => ({
      name: name.slice(0, -'.sock'.length),
      kind: name.startsWith('host-') ? ('host' as const) : ('box' as const),
      socket: path.join(folder, name),
    }))
    .sort((a, b) => (a.kind === b.kind ? (a.name < b.name ? -1 : 1) : a.kind === 'host' ? -1 : 1));
}
