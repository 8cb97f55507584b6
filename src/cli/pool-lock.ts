/** Keeps a second `up`, `down` or `start` out of a state folder while one is at work there. */
import { DxpuError } from '#base/errors';
import { type ControlServer, startControlServer } from './control-server.ts';
import { socketOf } from './state-folder.ts';

/**
 * A socket that is there while one is at work; no process is found under its name, which is as long as
 * the longest of them: a folder whose path is too long is refused before anything is made in it.
 */
const LOCK = 'pool-locked';

/** Goes with this process, however that one ends. */
export async function lockPool(folder: string): Promise<ControlServer> {
  try {
    return await startControlServer(socketOf(folder, LOCK), {});
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
