/** The guest's whole file system: busybox, modules of its kernel, and programs of whoever starts it. */
import { readFileSync } from 'node:fs';
import type { GuestImage } from './guest-image.ts';
import { type ArchiveEntry, cpioArchive } from './cpio.ts';
import { CONTROL_SCRIPT, INIT_SCRIPT } from './guest-scripts.ts';

export interface GuestProgram {
  /** In /bin of the guest. */
  readonly name: string;
  /** Needs no library. */
  readonly bytes: Uint8Array;
}

/** Uncompressed: unpacking costs an emulated processor more than reading. */
export function guestInitramfs(image: GuestImage, programs: readonly GuestProgram[] = []): Buffer {
  const folder = (path: string): ArchiveEntry => ({ kind: 'folder', path });
  const file = (path: string, bytes: Uint8Array, isProgram = false): ArchiveEntry => ({
    kind: 'file',
    path,
    bytes,
    isProgram,
  });
  return cpioArchive([
    ...['bin', 'dev', 'etc', 'lib', 'lib/modules', 'proc', 'root', 'run', 'sys'].map(folder),
    // Where the kernel finds what its first program writes to, before there is a devtmpfs.
    { kind: 'character-device', path: 'dev/console', major: 5, minor: 1 },
    file('init', Buffer.from(INIT_SCRIPT), true),
    file('bin/control', Buffer.from(CONTROL_SCRIPT), true),
    file('bin/busybox', readFileSync(image.busybox), true),
    { kind: 'link', path: 'bin/sh', target: 'busybox' },
    { kind: 'link', path: 'tmp', target: 'run' },
    ...image.modules.map(({ name, file: from }) =>
      file(`lib/modules/${name}.ko`, readFileSync(from)),
    ),
    file('etc/modules', Buffer.from(image.modules.map(({ name }) => `${name}\n`).join(''))),
    ...programs.map(({ name, bytes }) => file(`bin/${name}`, bytes, true)),
  ]);
}
