import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BOX_CONFIG as BOX, changed, configTexts } from '#testkit/config-text';
import { readBoxConfig } from './box-config.ts';

const { folder, written, complaint, remove } = configTexts();
afterAll(remove);

/** The box with another device in its slot. */
const withDevice = (device: string): string =>
  changed(BOX, 'kind: accel, memory: 64MiB, tags: 140', device);

describe('a box configuration', () => {
  it('becomes rows and devices', () => {
    const config = readBoxConfig(written(BOX));
    expect(config.rows).toEqual([
      { slot: 3, valid: true, used: true, host: 'h1', path: 'p0', generation: 7 },
    ]);
    expect(config.listen).toEqual([
      { host: '127.0.0.1', port: 7001 },
      { host: '::1', port: 7002 },
    ]);
    expect(config.devices[0]?.options).toMatchObject({ memoryBytes: 67_108_864, tags: 140 });
    expect(config.devices[0]?.options.uuid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect(readBoxConfig(written(BOX)).devices[0]?.options.uuid).toBe(
      config.devices[0]?.options.uuid,
    );
  });

  it('has displays, with the options of their kind', () => {
    const gpu = 'kind: virtio-gpu, width: 800, height: 600, tags: 140';
    expect(readBoxConfig(written(withDevice(gpu))).devices[0]).toMatchObject({
      kind: 'virtio-gpu',
      options: { memoryBytes: 67_108_864, width: 800, height: 600, tags: 140 },
    });
    const display = withDevice('kind: bochs-display');
    expect(readBoxConfig(written(display)).devices[0]).toMatchObject({
      kind: 'bochs-display',
      options: { memoryBytes: 16_777_216 },
    });
  });

  it('has devices of other processes, at a socket beside the file', () => {
    const remote = withDevice('kind: vfio-user, socket: run/nvme.sock');
    const [device] = readBoxConfig(written(remote)).devices;
    expect(device).toMatchObject({
      kind: 'vfio-user',
      options: { path: path.join(folder, 'run/nvme.sock') },
    });
    expect(device?.options.uuid).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
  });

  it.each([
    [
      'kind: acel, memory: 64MiB, tags: 140',
      '5:22: devices[0].kind: must be one of accel, virtio-gpu, bochs-display, vfio-user, not "acel"',
    ],
    ['kind: vfio-user', 'devices[0].socket: is missing: where another process serves the device'],
    [
      'kind: vfio-user, socket: a.sock, memory: 64MiB',
      'devices[0].memory: is of no use to kind vfio-user; it belongs to accel, virtio-gpu and bochs-display',
    ],
    ['kind: accel, memory: 64MiB, socket: a.sock', 'devices[0].socket: is of no use to kind accel'],
    ["kind: accel, memory: 64MiB, socket: ''", 'devices[0].socket: must not be empty'],
    ["kind: accel, memory: 64MiB, model: ''", 'devices[0].model: must not be empty'],
    [
      `kind: accel, memory: 64MiB, model: ${'a'.repeat(33)}`,
      'devices[0].model: must have at most 32 characters',
    ],
    [
      `kind: vfio-user, socket: /${'a'.repeat(107)}`,
      'has 108 bytes, the system allows 107: choose a shorter path',
    ],
    [
      'kind: vfio-user, socket: ./a.sock }\n  - { slot: 4, kind: vfio-user, socket: a.sock',
      'is twice: slot 3 has it already',
    ],
    [
      'kind: bochs-display, memory: 64MiB, tags: 140',
      'devices[0].tags: is of no use to kind bochs-display; it belongs to accel and virtio-gpu',
    ],
    [
      'kind: bochs-display, memory: 512MiB',
      'devices[0].memory: must be a power of two from 4MiB to 256MiB for a bochs-display',
    ],
    [
      'kind: accel, width: 1024',
      'devices[0].width: is of no use to kind accel; it belongs to virtio-gpu and bochs-display',
    ],
    [
      'kind: virtio-gpu, memory: 2MiB, tags: 140',
      'devices[0].memory: 1024 x 768 pixels need 3145728 bytes of memory',
    ],
    [
      'kind: accel, memory: 63MiB, tags: 140',
      'devices[0].memory: must be a power of two from 1MiB to 2GiB',
    ],
    [
      'kind: accel, memory: 64MiB, tags: 1000',
      'devices[0].tags: must be a whole number from 1 to 768',
    ],
  ])('with a device of %j says %j', (device, message) => {
    expect(complaint(readBoxConfig, withDevice(device))).toContain(message);
  });

  it.each([
    ['- { slot: 3, host', '- { slot: 4, host', 'table[0].slot: there is no device in slot 4'],
    [
      '"127.0.0.1:7001"',
      '"127.0.0.1:70000"',
      '3:10: listen[0]: "127.0.0.1:70000" is not an address',
    ],
    ['listen: ["127.0.0.1:7001", "[::1]:7002"]', 'listen: []', 'needs at least one address'],
    ['listen: ["127.0.0.1:7001", "[::1]:7002"]', 'liston: []', 'did you mean listen?'],
  ])('with %j changed to %j says %j', (from, to, message) => {
    expect(complaint(readBoxConfig, changed(BOX, from, to))).toContain(message);
  });

  it('with one slot in two rows shows the second, and names the line of the first', () => {
    const row = '  - { slot: 3, host: h1, path: p0, generation: 7 }\n';
    expect(complaint(readBoxConfig, `${BOX}${row}`)).toBe(
      '8:13: table[1].slot: slot 3 is twice: line 7 has it already',
    );
  });

  it('reloaded with a row of a new device says that this takes a restart', () => {
    const before = readBoxConfig(written(BOX));
    const text = BOX.replace('table:\n', '  - { slot: 4, kind: accel }\ntable:\n');
    const row = '  - { slot: 4, host: h1, path: p0, generation: 8 }\n';
    const again = (file: string): unknown => readBoxConfig(file, before);
    expect(() => again(written(text))).not.toThrow();
    expect(complaint(again, `${text}${row}`)).toBe(
      '9:13: table[1].slot: the device of slot 4 is not one the box was started with: restart ' +
        'the box (dxpu stop --process box-b1, then dxpu box)',
    );
  });
});
