/** Kernel, modules and busybox for the guest, of Debian's packages. */
import { copyFileSync, existsSync, rmSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { AptArchive } from './apt-archive.ts';
import { runChild } from './child-run.ts';
import { imagePart } from './image-parts.ts';
import { modulesFor } from './kernel-modules.ts';

/** The latest whose QEMU, from its backports, speaks vfio-user. */
export const DEBIAN_SUITE = 'trixie';

/** Drivers for what boxes have, and for programs that drive a function by themselves. */
const MODULES = ['virtio_pci', 'virtio_gpu', 'bochs', 'vfio_pci', 'vfio_iommu_type1'];

const KERNEL = 'linux-image-amd64';
const BUSYBOX = 'busybox-static';
const UNPACK_WITHIN_MS = 20_000;

export interface GuestImage {
  readonly kernel: string;
  readonly kernelVersion: string;
  readonly busybox: string;
  /** In the order in which they can be loaded. */
  readonly modules: readonly { readonly name: string; readonly file: string }[];
}

export interface FetchOptions {
  /** Where what was fetched stays. */
  readonly images: string;
  readonly mirror?: string | undefined;
  /** What is being done, for people who wait. */
  readonly onNote?: (text: string) => void;
}

interface Label {
  readonly kernel: string;
  readonly busybox: string;
  readonly modules: readonly string[];
}

/** From the folder of images; fetched where it is not there yet. */
export async function guestImage(options: FetchOptions): Promise<GuestImage> {
  const { folder, label } = await imagePart<Label>(options.images, 'guest', async (part) => {
    options.onNote?.('fetching a kernel and busybox from Debian');
    return await make(part, options);
  });
  return {
    kernel: path.join(folder, 'vmlinuz'),
    kernelVersion: label.kernel,
    busybox: path.join(folder, 'busybox'),
    modules: label.modules.map((name) => ({ name, file: path.join(folder, `${name}.ko`) })),
  };
}

async function make(part: string, { mirror }: FetchOptions): Promise<Label> {
  const root = path.join(part, 'root');
  const folder = path.join(part, 'apt');
  const archive = await AptArchive.open({ folder, suites: [DEBIAN_SUITE], mirror });
  const needed = await archive.needs(KERNEL);
  const image = needed.find((name) => /^linux-image-\d/.test(name));
  if (image === undefined) {
    throw new DxpuError('not_found', `${KERNEL} of Debian ${DEBIAN_SUITE} needs no kernel`);
  }
  await archive.unpack(root, [image, BUSYBOX], { withNeeds: false });
  const kernel = image.slice('linux-image-'.length);
  const busybox = path.join(part, 'busybox');
  copyFileSync(inRoot(root, 'bin/busybox'), busybox);
  copyFileSync(path.join(root, 'boot', `vmlinuz-${kernel}`), path.join(part, 'vmlinuz'));
  const modules = await modulesFor(inRoot(root, `lib/modules/${kernel}`), MODULES, (file) =>
    // Static, so that it runs on any system; no other program need be there.
    runChild(busybox, [file.endsWith('.xz') ? 'xzcat' : 'cat', file], {
      deadlineMs: UNPACK_WITHIN_MS,
    }),
  );
  for (const { name, bytes } of modules) writeFileSync(path.join(part, `${name}.ko`), bytes);
  const version = (await archive.version(BUSYBOX)) ?? '';
  rmSync(root, { recursive: true });
  archive.remove();
  return { kernel, busybox: version, modules: modules.map(({ name }) => name) };
}

/** Debian moves folders into /usr: either may be. */
function inRoot(root: string, name: string): string {
  const places = [path.join(root, 'usr', name), path.join(root, name)];
  const found = places.find((place) => existsSync(place));
  if (found !== undefined) return found;
  throw new DxpuError('not_found', `there is none of ${places.join(', ')}`);
}
