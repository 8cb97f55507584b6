import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { socketFolder, until } from '#testkit/vfio-user-rig';
import { ArrayMemory } from './client-memory.ts';
import { VfioUserClient } from './client.ts';
import { IRQ_MSI } from './irq-info.ts';
import { REGION_CONFIG } from './region-info.ts';
import { VfioUserServer } from './server.ts';

it('the example of README.md runs', async () => {
  const folder = socketFolder();
  const path = folder.path('device');
  const device = new ExampleDevice();
  const guest = new Uint8Array(4096);
  const fired: number[] = [];
  // README example
  const server = new VfioUserServer({ path, device }); // device: ServedDevice
  const client = await VfioUserClient.connect({ path, memory: new ArrayMemory(guest) });
  const sizeBytes = client.device.regions[0]?.sizeBytes; // 4096
  const lent = { address: 0, sizeBytes: 4096, fileOffset: 0, readable: true, writable: true };
  await client.mapMemory(lent); // without a descriptor: the device asks `memory` by messages
  await client.enableIrqs(IRQ_MSI, 1, (vector) => fired.push(vector));
  await client.writeRegion(REGION_CONFIG, 4, Uint8Array.of(6, 0)); // memory space, bus master
  // end
  expect(sizeBytes).toBe(4096);
  device.client?.trigger(IRQ_MSI, 0);
  await until(() => fired.length === 1, 'an interrupt');
  expect(device.config.busMaster).toBe(true);
  client.close();
  server.close();
  folder.remove();
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});
