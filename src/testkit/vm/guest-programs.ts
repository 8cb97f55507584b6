/** Builds the programs of `guest/` for the guest, with the system's gcc. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { runChild } from '#vm/child-run';
import type { GuestProgram } from '#vm/guest-initramfs';

const SOURCES: Readonly<Record<string, readonly string[]>> = {
  sgemm: ['sgemm.c', 'accel-channel.c', 'vfio-function.c'],
  measure: ['measure.c', 'accel-channel.c', 'vfio-function.c'],
  reach: ['reach.c', 'accel-channel.c', 'vfio-function.c'],
  fbdraw: ['fbdraw.c'],
};
/** Static: the guest has no libraries. Without contraction, so that fp32 rounds as the accelerator does. */
const FLAGS = ['-static', '-O2', '-std=gnu11', '-Wall', '-Wextra', '-Werror', '-ffp-contract=off'];
const WITHIN_MS = 60_000;

const GUEST = fileURLToPath(new URL('../../../guest', import.meta.url));

export async function buildGuestPrograms(): Promise<GuestProgram[]> {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-guest-'));
  try {
    const programs: GuestProgram[] = [];
    for (const [name, sources] of Object.entries(SOURCES)) {
      const out = path.join(folder, name);
      const files = sources.map((file) => path.join(GUEST, file));
      await runChild('gcc', [...FLAGS, '-o', out, ...files], { deadlineMs: WITHIN_MS });
      programs.push({ name, bytes: readFileSync(out) });
    }
    return programs;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
