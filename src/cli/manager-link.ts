/** What box and host processes do with the manager of their configuration. */
import { ManagerStream, type ManagerStreamOptions } from '#agent/daemon/manager-stream';
import { DxpuError } from '#base/errors';
import type { ManagerPlace } from './member-config.ts';

/** The stream to the manager, not started yet; `undefined` where the configuration has none. */
export function managerStream(
  manager: ManagerPlace | undefined,
  options: Omit<ManagerStreamOptions, 'address' | 'manager' | 'random'>,
): ManagerStream | undefined {
  if (manager === undefined) return undefined;
  const { address, id } = manager;
  return new ManagerStream({
    ...options,
    address,
    ...(id === undefined ? {} : { manager: id }),
    random: () => Math.random(),
  });
}

/** With a manager there is no table to read. */
export function refuseReload(stream: ManagerStream | undefined): void {
  if (stream === undefined) return;
  throw new DxpuError(
    'failed_precondition',
    `its rows come from the manager at ${stream.status().address}, the file has none to read: use ` +
      'dxpu bind and dxpu unbind; everything else in the file needs a restart',
  );
}
