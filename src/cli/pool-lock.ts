/** Keeps a second `up`, `down` or `start` out of a state folder while one is at work there. */
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { type ControlServer, startControlServer } from './control-server.ts';

/** A socket that is there while one is at work; no process is found under its name. */
const LOCK = 'pool-lock.sock';

/** Goes with this process, however that one ends. */
export async function lockPool(folder: string): Promise<ControlServer> {
  try {
    return await startControlServer(path.join(folder, LOCK), {});
  } catch (error) {
    if (DxpuError.from(error).code !== 'already_exists') throw error;
    throw new DxpuError(
      'already_exists',
      `another dxpu up, down or start is at work in ${folder}: wait for it, or choose another ` +
        'folder with --state',
      { details: { folder }, cause: error },
    );
  }
}
