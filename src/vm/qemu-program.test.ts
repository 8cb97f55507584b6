import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isEnough, qemuProgram } from './qemu-program.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-qemu-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A program that says of itself what QEMU would. */
function saying(version: string, devices: string): string {
  const file = path.join(folder, 'qemu');
  writeFileSync(
    file,
    `#!/bin/sh\ncase "$*" in *--version*) echo '${version}';; *) echo '${devices}';; esac\n`,
  );
  chmodSync(file, 0o755);
  return file;
}

const chosen = (own: string) => qemuProgram(own, { images: folder });
const CLIENT = 'name "vfio-user-pci", bus PCI, desc "VFIO over socket PCI device assignment"';

describe("the user's QEMU", () => {
  it('is taken as it is where it has the client', async () => {
    const own = saying('QEMU emulator version 10.1.0 (Debian 1:10.1.0+ds-5)', CLIENT);
    expect(await chosen(own)).toEqual({ program: own, args: [], version: '10.1.0' });
  });

  it.each([
    ['QEMU emulator version 10.0.9', CLIENT, 'it is QEMU 10.0.9, without a vfio-user client'],
    ['QEMU emulator version 10.1.0', 'name "edu"', 'was built without vfio-user-pci'],
    ['GNU bash', '', 'it is no QEMU'],
  ])('is refused where it is %s', async (version, devices, reason) => {
    const own = saying(version, devices);
    await expect(chosen(own)).rejects.toThrow(`--qemu ${own}: `);
    await expect(chosen(own)).rejects.toThrow(reason);
  });

  it('is named where there is none', async () => {
    await expect(chosen('/nowhere/qemu')).rejects.toThrow('--qemu /nowhere/qemu: cannot run');
  });
});

describe('a version of QEMU', () => {
  it.each([
    ['10.1.0', true],
    ['11.0', true],
    ['1:11.1.3+ds-1~bpo13+1', true],
    ['10.0.50', false],
    ['1:7.2+dfsg-7+deb12u16', false],
    ['9.2.1', false],
  ])('%s', (version, enough) => {
    expect(isEnough(version)).toBe(enough);
  });
});
