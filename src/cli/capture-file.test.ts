import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { CaptureFile } from './capture-file.ts';
import { encodeHeader, encodePacket } from './pcapng.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-capture-file-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const header = encodeHeader('if', 'app');
const packet = encodePacket({
  timeNs: 1n,
  slot: 0,
  direction: 'up',
  tlp: Buffer.from('05000001ca9a5c0ff74807a4', 'hex'),
});

describe('the file of a capture', () => {
  it('holds what was appended', async () => {
    const name = path.join(folder, 'a');
    const file = await CaptureFile.open(name);
    await file.append(header, 2);
    await file.append(Buffer.concat([packet, packet]), 2);
    await file.close();
    expect(file.blocks).toBe(4);
    expect(readFileSync(name)).toEqual(Buffer.concat([header, packet, packet]));
  });

  it.skipIf(!existsSync('/dev/full'))(
    'that has no space left is an error (regression: success; skipped: there is no /dev/full)',
    async () => {
      const file = await CaptureFile.open('/dev/full');
      await expect(file.append(header, 2)).rejects.toMatchObject({
        code: 'resource_exhausted',
        message: 'cannot write /dev/full: no space left; it holds 0 whole TLPs',
      });
    },
  );

  it('that cannot be made says why', async () => {
    const name = path.join(folder, 'none', 'x');
    await expect(CaptureFile.open(name)).rejects.toThrow(
      `cannot write ${name}: there is no such folder`,
    );
    await expect(CaptureFile.open(folder)).rejects.toThrow('it is a folder');
  });
});
