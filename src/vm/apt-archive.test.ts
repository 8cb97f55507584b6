import { mkdtempSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { AptArchive } from './apt-archive.ts';
import { runChild } from './child-run.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-apt-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(folder, { recursive: true });
});

const hasApt = await runChild('apt-get', ['--version'], { deadlineMs: 10_000 }).then(
  () => true,
  () => false,
);

describe('packages by apt', () => {
  it('say so where there is no apt, and what to do', async () => {
    vi.stubEnv('PATH', folder);
    const opening = AptArchive.open({ folder, suites: ['trixie'] });
    await expect(opening).rejects.toMatchObject({ code: 'unavailable' });
    await expect(opening).rejects.toThrow(
      /they come by apt-get: cannot run apt-get: .*\nrun it on Debian, or give your own with --qemu/,
    );
  });

  it.skipIf(!hasApt)('say which mirror does not answer (skipped without apt-get)', async () => {
    const mirror = `file:${folder}/nothing`;
    const opening = AptArchive.open({ folder, suites: ['trixie'], mirror });
    await expect(opening).rejects.toMatchObject({ code: 'unavailable' });
    await expect(opening).rejects.toThrow(
      new RegExp(`cannot fetch the lists of trixie from ${mirror}: [^]*name another mirror`),
    );
  });
});

describe('a program that is run', () => {
  it('is ended at its deadline, and that is said', async () => {
    const late = runChild('sleep', ['60'], { deadlineMs: 50 });
    await expect(late).rejects.toMatchObject({ code: 'deadline_exceeded' });
    await expect(late).rejects.toThrow('sleep took longer than 0.05 s and was ended');
  });

  it('is told with its last words where it fails', async () => {
    const failing = runChild('sh', ['-c', 'echo one; echo two >&2; exit 3'], {
      deadlineMs: 10_000,
    });
    await expect(failing).rejects.toThrow('sh ended with status 3; its last words:\ntwo');
  });
});
