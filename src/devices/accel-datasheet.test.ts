import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { createAccelerator } from './accel.ts';
import * as command from './accel-command.ts';
import * as reg from './accel-registers.ts';

const datasheet = readFileSync(
  new URL('../../docs/accelerator-datasheet.md', import.meta.url),
  'utf8',
);

/** Cells of every table row in the section under `heading`, up to the next heading. */
function rows(heading: string): string[][] {
  const start = datasheet.indexOf(`${heading}\n`);
  expect(start, `the datasheet has a section ${heading}`).toBeGreaterThan(0);
  const rest = datasheet.slice(start + heading.length);
  const end = rest.search(/\n##/);
  return rest
    .slice(0, end < 0 ? undefined : end)
    .split('\n')
    .filter((line) => line.startsWith('| '))
    .map((line) =>
      line
        .split('|')
        .map((cell) => cell.trim())
        .slice(1, -1),
    );
}

function offsets(heading: string, prefix: string): Record<string, number> {
  const found: Record<string, number> = {};
  for (const [offset = '', name = ''] of rows(heading)) {
    if (offset.startsWith(`${prefix}0x`)) found[name] = Number(offset.slice(prefix.length));
  }
  return found;
}

const constants: Record<string, unknown> = { ...reg };

/** Offsets are the constants in the order of the file, from one name to another. */
function constantsBetween(first: string, last: string): Record<string, number> {
  const source = readFileSync(new URL('./accel-registers.ts', import.meta.url), 'utf8');
  const names = [...source.matchAll(/^export const ([A-Z0-9_]+) = 0x/gm)].map(
    ([, name]) => name ?? '',
  );
  const picked = names.slice(names.indexOf(first), names.indexOf(last) + 1);
  return Object.fromEntries(picked.map((name) => [name, constants[name] as number]));
}

describe('the datasheet', () => {
  it('has every global register at its offset', () => {
    const table = offsets('### 2.1 Global registers', '');
    expect(Object.keys(table).length).toBe(22);
    expect(table).toEqual(constantsBetween('ID', 'DMA_UNEXPECTED_COMPLETIONS'));
  });

  it('has every channel register at its offset', () => {
    const table = offsets('### 2.2 Channel registers', '+');
    expect(Object.keys(table).length).toBe(14);
    expect(table).toEqual(constantsBetween('CHANNEL_CONTROL', 'FENCE_VALUE_HI'));
  });

  it('states bases, strides, keys and identity', () => {
    const hex = (value: number, digits: number): string => value.toString(16).padStart(digits, '0');
    expect(datasheet).toContain(
      `0x${hex(reg.CHANNEL_BASE, 4)} + n × 0x${hex(reg.CHANNEL_STRIDE, 4)} (CHANNEL_BASE`,
    );
    expect(datasheet).toContain(
      `0x${hex(reg.DOORBELL_BASE, 4)} + n × 0x${hex(reg.DOORBELL_STRIDE, 4)} (DOORBELL_BASE`,
    );
    expect(datasheet).toContain(`writing 0x${hex(reg.RESET_KEY, 8)} resets`);
    expect(datasheet).toContain(`| 0x0000 | ID | RO | 0x${hex(reg.ID_VALUE, 8)} |`);
    expect(datasheet).toContain(`| 0x0004 | VERSION | RO | 0x${hex(reg.VERSION_VALUE, 8)} |`);
    const ids = `${hex(reg.ACCEL_VENDOR_ID, 4)}h, ${hex(reg.ACCEL_DEVICE_ID, 4)}h`.toUpperCase();
    expect(datasheet.toUpperCase()).toContain(ids);
    expect(datasheet).toContain(`${hex(reg.ACCEL_CLASS_CODE, 6)}h`);
    expect(datasheet).toContain(`16 KiB: registers`);
    expect(reg.BAR0_BYTES).toBe(16 * 1024);
    expect(datasheet).toContain(`from ${reg.MIN_RING_ENTRIES} to ${reg.MAX_RING_ENTRIES}`);
    expect(command.MAX_KERNEL_FLOPS).toBe(2 ** 30);
    expect(datasheet).toContain('at most 2^30 floating-point');
  });

  it('has every field and opcode of a command', () => {
    const table = rows('## 4. Commands');
    const fields = Object.fromEntries(
      table
        .filter(([, , name]) => name?.startsWith('COMMAND_'))
        .map(([at, , name]) => [name, Number(at)]),
    );
    const expected = Object.fromEntries(
      Object.entries(command).filter(([name]) => /^COMMAND_(?!BYTES)/.test(name)),
    );
    expect(Object.keys(fields).length).toBe(13);
    expect(fields).toEqual(expected);
    const opcodes = Object.fromEntries(
      table.filter(([code]) => code?.startsWith('0x')).map(([code, name]) => [name, Number(code)]),
    );
    expect(opcodes).toEqual(command.Opcode);
    expect(datasheet).toContain('bit 0 FENCE, bit 1 INTERRUPT, bit 2 DURATION, bit 3 ACCUMULATE');
    expect([
      command.FLAG_FENCE,
      command.FLAG_INTERRUPT,
      command.FLAG_DURATION,
      command.FLAG_ACCUMULATE,
    ]).toEqual([1, 2, 4, 8]);
  });

  it('has every error code', () => {
    const table = rows('## 6. Errors').filter(([code]) => /^\d+$/.test(code ?? ''));
    expect(Object.fromEntries(table.map(([code, name]) => [name, Number(code)]))).toEqual(
      reg.AccelError,
    );
  });
});

it('has the capabilities and the link the datasheet names', () => {
  const accel = createAccelerator({ uuid: '00000000-0000-4000-8000-000000000000' });
  const found: number[] = [];
  for (let at = accel.readConfig(0x34) & 0xff; at !== 0; at = (accel.readConfig(at) >>> 8) & 0xff) {
    found.push(accel.readConfig(at) & 0xff);
    // Link Capabilities: 8 GT/s (3), ×16. Device Capabilities 2: timeout may be off, not set.
    if (found.at(-1) !== 0x10) continue;
    expect(accel.readConfig(at + 0x0c) & 0x3ff).toBe(0x103);
    expect(accel.readConfig(at + 0x24) & 0x1f).toBe(0x10);
  }
  expect(found).toEqual([0x01, 0x05, 0x10]);
  const extended: number[] = [];
  for (let at = 0x100; at !== 0; at = accel.readConfig(at) >>> 20) {
    extended.push(accel.readConfig(at) & 0xffff);
  }
  expect(extended).toEqual([0x0001, 0x0003, 0x0019]);
  for (const name of [
    'PM 3',
    'MSI (',
    'PCI Express 2',
    'AER',
    'Serial Number',
    'Secondary PCI E',
  ]) {
    expect(rows('## 1. Identity and configuration space').join()).toContain(name);
  }
});
