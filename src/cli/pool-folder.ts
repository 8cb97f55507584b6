/**
 * The pool of a state folder: everything `dxpu up` and `dxpu start` write, in one folder of its own.
 *
 *   pool/pool.yaml       what was asked for: how many of what
 *   pool/client.yaml     how commands reach the manager
 *   pool/*.pem           the authority, and a certificate each
 *   pool/NAME.yaml       configuration of the process NAME (manager-m1, box-b1, host-h1)
 *   pool/NAME.log        what it says
 *   pool/store/          what the manager remembers
 */
import { existsSync } from 'node:fs';
import * as path from 'node:path';

export const poolFolder = (state: string): string => path.join(state, 'pool');
export const clientFile = (state: string): string => path.join(poolFolder(state), 'client.yaml');
export const sizesFile = (state: string): string => path.join(poolFolder(state), 'pool.yaml');
export const configFile = (state: string, name: string): string =>
  path.join(poolFolder(state), `${name}.yaml`);
export const logFile = (state: string, name: string): string =>
  path.join(poolFolder(state), `${name}.log`);

export const storeFolder = (state: string): string => path.join(poolFolder(state), 'store');

/** Where a process of this pool logs; `undefined` for one that was not started by it. */
export function knownLogFile(state: string, name: string): string | undefined {
  const file = logFile(state, name);
  return existsSync(file) ? file : undefined;
}
