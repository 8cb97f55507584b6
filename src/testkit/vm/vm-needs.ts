/** What tests with a real VM need of this machine, or why they cannot run. */
import { fileURLToPath } from 'node:url';
import { DxpuError } from '#base/errors';
import { runChild } from '#vm/child-run';
import { type GuestImage, guestImage } from '#vm/guest-image';
import type { GuestProgram } from '#vm/guest-initramfs';
import { type QemuProgram, qemuProgram } from '#vm/qemu-program';
import { buildGuestPrograms } from './guest-programs.ts';

export interface VmNeeds {
  readonly qemu: QemuProgram;
  readonly image: GuestImage;
  readonly programs: readonly GuestProgram[];
}

/** Shared by all tests of a checkout; fetched once. */
const IMAGES = fileURLToPath(new URL('../../../.dxpu/vm-images', import.meta.url));

/** Or the reason, as a text. $DXPU_VM_IMAGES is another folder of images. */
export async function vmNeeds(): Promise<VmNeeds | string> {
  const images = process.env['DXPU_VM_IMAGES'] || IMAGES;
  try {
    await runChild('gcc', ['--version'], { deadlineMs: 10_000 });
  } catch {
    return 'no gcc to build the programs of the guest with';
  }
  try {
    const [qemu, image] = [await qemuProgram(undefined, { images }), await guestImage({ images })];
    return { qemu, image, programs: await buildGuestPrograms() };
  } catch (error) {
    const { code, message } = DxpuError.from(error);
    // What is not to be had here, and nothing else.
    if (code !== 'unavailable' && code !== 'deadline_exceeded') throw error;
    return `no QEMU or no guest to be had: ${message}`;
  }
}
