import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { modulesFor } from './kernel-modules.ts';

let tree = '';
beforeEach(() => {
  tree = mkdtempSync(path.join(os.tmpdir(), 'dxpu-modules-'));
  writeFileSync(path.join(tree, 'modules.builtin'), 'kernel/drivers/virtio/virtio_pci.ko\n');
});
afterEach(() => rmSync(tree, { recursive: true }));

/** What matters of a module's file: its section `.modinfo`, texts with a 0 behind each. */
function put(file: string, needs: string): void {
  mkdirSync(path.dirname(path.join(tree, file)), { recursive: true });
  writeFileSync(path.join(tree, file), `\x7fELF\0license=GPL\0depends=${needs}\0retpoline=Y\0`);
}

const names = async (...wanted: string[]): Promise<string[]> =>
  (await modulesFor(tree, wanted, async (file) => readFileSync(file))).map(({ name }) => name);

describe('modules of a kernel', () => {
  it('come behind those they need, once each, whatever their files are called', async () => {
    put('kernel/gpu/drm.ko', '');
    put('kernel/gpu/drm-helper.ko.xz', 'drm');
    put('kernel/gpu/tiny/bochs.ko', 'drm_helper,drm');
    put('kernel/gpu/virtio/virtio-gpu.ko', 'drm,drm-helper');
    expect(await names('virtio-gpu', 'bochs')).toEqual([
      'drm',
      'drm_helper',
      'virtio_gpu',
      'bochs',
    ]);
  });

  it('are left out where the kernel has them in itself', async () => {
    put('kernel/a.ko', 'virtio_pci');
    expect(await names('virtio_pci', 'a')).toEqual(['a']);
  });

  it('are named where there is none of that name', async () => {
    put('kernel/a.ko', 'lost');
    await expect(names('a')).rejects.toThrow(`the kernel in ${tree} has no module lost`);
  });
});
