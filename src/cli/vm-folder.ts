/**
 * The VMs of a state folder:
 *
 *   vm/images/          what they are made of (`#vm/image-parts`)
 *   vm/ID/vm.json       what the VM of host ID was started with
 *   vm/ID/initrd        its file system
 *   vm/ID/host.qmp      QEMU's socket for the host proxy; tool.qmp: for dxpu vm
 *   vm/ID/console       its serial console; console.log: what it has shown
 *   vm/ID/qemu.log      what QEMU says; qemu.pid: the number of its process
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { fittingSocket, type KnownProcess, processOf } from './state-folder.ts';

const IMAGES = 'images';

export interface VmFiles {
  readonly id: string;
  readonly folder: string;
  readonly record: string;
  readonly initrd: string;
  readonly hostQmp: string;
  readonly toolQmp: string;
  readonly console: string;
  readonly consoleLog: string;
  readonly qemuLog: string;
  readonly pidFile: string;
}

/** What a VM was started with; it stays so until it ends. */
export interface VmRecord {
  readonly qemu: string;
  readonly kernel: string;
  readonly initrd: string;
  readonly memoryBytes: number;
  readonly cpus: number;
  /** Names of its root ports, in the order of its slots. */
  readonly ports: readonly string[];
}

const vmsFolder = (state: string): string => path.join(state, 'vm');

/** Option, $DXPU_VM_IMAGES, or a folder of the state. */
export function imagesFolder(state: string, option: string | undefined): string {
  const chosen = option ?? (process.env['DXPU_VM_IMAGES'] || undefined);
  return chosen === undefined ? path.join(vmsFolder(state), IMAGES) : path.resolve(chosen);
}

/** Fails where the paths of its sockets are longer than the system allows. */
export function vmFiles(state: string, id: string): VmFiles {
  if (id === IMAGES) {
    throw new DxpuError('invalid_argument', `a VM cannot be called ${id}: choose another --host`);
  }
  const folder = path.join(vmsFolder(state), id);
  const of = (name: string): string => path.join(folder, name);
  return {
    id,
    folder,
    record: of('vm.json'),
    initrd: of('initrd'),
    hostQmp: fittingSocket(of('host.qmp')),
    toolQmp: fittingSocket(of('tool.qmp')),
    console: fittingSocket(of('console')),
    consoleLog: of('console.log'),
    qemuLog: of('qemu.log'),
    pidFile: of('qemu.pid'),
  };
}

/** As `vmFiles`; fails where no VM of host `id` was ever started. */
export function vmThere(state: string, id: string): VmFiles {
  const files = vmFiles(state, id);
  // A VM that runs has its folder, whatever became of its record.
  if (existsSync(files.folder)) return files;
  throw new DxpuError(
    'not_found',
    `there is no VM of host ${id} in ${state}: dxpu vm status lists those there are, --state names ` +
      'another folder',
    { details: { folder: state, host: id } },
  );
}

/** The host proxy of the VM of host `id`. */
export function vmProxy(state: string, id: string): KnownProcess {
  return processOf(state, 'host', id);
}

/** Those that were ever started and not removed. */
export function knownVms(state: string): VmFiles[] {
  const folder = vmsFolder(state);
  if (!existsSync(folder)) return [];
  return readdirSync(folder)
    .sort()
    .filter((name) => name !== IMAGES && existsSync(path.join(folder, name, 'vm.json')))
    .map((name) => vmFiles(state, name));
}

/** `undefined` where there never was such a VM. */
export function readRecord(files: VmFiles): VmRecord | undefined {
  if (!existsSync(files.record)) return undefined;
  try {
    return JSON.parse(readFileSync(files.record, 'utf8')) as VmRecord;
  } catch (error) {
    throw new DxpuError(
      'data_loss',
      `${files.record} cannot be read: end the VM with dxpu vm down --host ${files.id}, then remove ` +
        files.folder,
      { cause: error },
    );
  }
}
