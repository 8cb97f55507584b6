import { existsSync } from 'node:fs';
import { afterEach, expect, it, vi } from 'vitest';
import { socketFolder, until } from '#testkit/vfio-user-rig';
import { ArrayMemory } from '#vfio-user/client-memory';
import { VfioUserClient } from '#vfio-user/client';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { deviceServe } from './commands/device-serve.ts';
import { UsageError } from './output.ts';

const folder = socketFolder();
afterEach(() => {
  vi.restoreAllMocks();
  folder.remove();
});

it('serves a model until a signal, and leaves no socket behind', async () => {
  vi.spyOn(process.stdout, 'write').mockReturnValue(true);
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const path = folder.path('vga');
  const listeners = process.listenerCount('SIGTERM');
  const serving = deviceServe('bochs-display', path, { memory: 4 * 2 ** 20, output: 'json' });
  await until(() => existsSync(path), 'the socket');
  const client = await VfioUserClient.connect({ path, memory: new ArrayMemory(new Uint8Array(1)) });
  expect(client.device.regions[0]?.sizeBytes).toBe(4 * 2 ** 20);
  // Vendor 1234h, device 1111h: QEMU's "Standard VGA".
  expect(await client.readRegion(REGION_CONFIG, 0, 4)).toEqual(
    Uint8Array.of(0x34, 0x12, 0x11, 0x11),
  );
  client.close();
  // As the signal would, without ending whoever runs the test.
  process.listeners('SIGTERM').at(-1)?.('SIGTERM');
  await serving;
  expect(existsSync(path)).toBe(false);
  expect(process.listenerCount('SIGTERM')).toBe(listeners);
});

it('an option that its model does not take is one of usage, under its own name', async () => {
  const options = { output: 'table' } as const;
  for (const [kind, wrong, words] of [
    ['accel', { memory: 3 * 2 ** 20 }, '--memory must be a power of two from 1048576'],
    ['virtio-gpu', { memory: 0 }, '--memory must be'],
    ['bochs-display', { memory: 2 ** 20 }, '--memory must be'],
    ['accel', { uuid: 'xx' }, '--uuid must be lower-case hexadecimal'],
  ] as const) {
    const failure = deviceServe(kind, folder.path('none'), { ...options, ...wrong });
    await expect(failure).rejects.toThrow(words);
    await expect(failure).rejects.toBeInstanceOf(UsageError);
  }
  expect(existsSync(folder.path('none'))).toBe(false);
});
