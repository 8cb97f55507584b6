/** docs/display-devices.md says of the registers and limits what the constants say. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import * as bochs from './bochs-display.ts';
import { MAX_SHOWN_PIXELS } from './screenshot.ts';
import * as reg from './virtio-gpu-registers.ts';
import {
  MAX_ALL_BACKING_ENTRIES,
  MAX_BACKING_ENTRIES,
  MAX_DIMENSION,
  MAX_RESOURCES,
} from './virtio-gpu-resources.ts';
import { MAX_CHAIN } from './virtqueue-chain.ts';

const text = readFileSync(new URL('../../docs/display-devices.md', import.meta.url), 'utf8');

/** The cells of the row whose first cell is `name`. */
function row(name: string): string[] {
  const line = text.split('\n').find((one) => one.startsWith(`| ${name} |`)) ?? '';
  return line
    .split('|')
    .map((cell) => cell.trim())
    .slice(2, -1);
}

const hex = (value: number): string => `0x${value.toString(16).padStart(4, '0')}`;
const idOf = (vendor: number, device: number): string =>
  `${vendor.toString(16).toUpperCase()}h:${device.toString(16).toUpperCase()}h`;

it('identities', () => {
  expect(row('PCI ID, revision')).toEqual([
    `${idOf(reg.VIRTIO_VENDOR_ID, reg.VIRTIO_GPU_DEVICE_ID)}, 0${reg.VIRTIO_GPU_REVISION_ID}h`,
    `${idOf(bochs.BOCHS_VENDOR_ID, bochs.BOCHS_DEVICE_ID)}, 0${bochs.BOCHS_REVISION_ID}h`,
  ]);
  expect(row('subsystem')).toEqual([
    idOf(reg.VIRTIO_VENDOR_ID, reg.VIRTIO_GPU_SUBSYSTEM_ID),
    idOf(bochs.BOCHS_SUBSYSTEM_VENDOR_ID, bochs.BOCHS_SUBSYSTEM_ID),
  ]);
  expect([reg.VIRTIO_GPU_CLASS_CODE, bochs.BOCHS_CLASS_CODE]).toEqual([0x038000, 0x038000]);
});

it('where structures are', () => {
  expect(row('common configuration')).toEqual([hex(reg.COMMON_CFG), `${reg.COMMON_CFG_BYTES}`]);
  expect(row('ISR status')[0]).toBe(hex(reg.ISR_CFG));
  expect(row('device configuration')).toEqual([hex(reg.DEVICE_CFG), `${reg.DEVICE_CFG_BYTES}`]);
  expect(row('notification')).toEqual([
    hex(reg.NOTIFY_CFG),
    `8; \`notify_off_multiplier\` ${reg.NOTIFY_OFF_MULTIPLIER}`,
  ]);
});

it('which commands there are, and which answers', () => {
  const [commands = ''] = row('5.7.6.8 commands');
  const [cursor = ''] = row('5.7.6.10 cursor');
  const [, capsets = ''] = row('5.7.6.8 commands');
  for (const name of Object.keys(reg.Command)) {
    expect(`${commands} ${cursor} ${capsets}`).toContain(name);
  }
  const answers = [...text.matchAll(/^\| (ERR_\w+) \|/gm)].map(([, name]) => name);
  const errors = Object.keys(reg.Response).filter((name) => name.startsWith('ERR_'));
  expect(new Set(answers)).toEqual(new Set(errors));
});

it('limits', () => {
  const [, limits = ''] = /\*\*Limits\.\*\*([^]*?)\n\n/.exec(text) ?? [];
  const numbers = limits.match(/\d+/g)?.map(Number) ?? [];
  for (const limit of [
    MAX_RESOURCES,
    MAX_DIMENSION,
    MAX_BACKING_ENTRIES,
    MAX_ALL_BACKING_ENTRIES,
    MAX_CHAIN,
    MAX_SHOWN_PIXELS,
  ]) {
    expect(numbers).toContain(limit);
  }
});

it('registers of the bochs-display', () => {
  const [dispi = ''] = row('0x500 + 2n');
  const documented = Object.fromEntries(
    [...dispi.matchAll(/(\d+) ([A-Z][A-Z_0-9]*)/g)].map(([, index, name]) => [name, Number(index)]),
  );
  const constants = Object.fromEntries(
    Object.entries(bochs)
      .filter(([name]) => name.startsWith('VBE_DISPI_INDEX_'))
      .map(([name, value]) => [name.slice('VBE_DISPI_INDEX_'.length), value]),
  );
  expect(documented).toEqual(constants);
  expect([bochs.DISPI, bochs.QEXT_SIZE, bochs.QEXT_BYTEORDER]).toEqual([0x500, 0x600, 0x604]);
  const byteOrder = row('0x604')[0]?.toUpperCase();
  expect(byteOrder).toContain(bochs.BYTEORDER_LITTLE_ENDIAN.toString(16).toUpperCase());
  expect(byteOrder).toContain(bochs.BYTEORDER_BIG_ENDIAN.toString(16).toUpperCase());
});
