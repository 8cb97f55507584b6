import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from '../../scripts/bundle.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

export interface Programs {
  /** `dxpu` itself. */
  readonly dxpu: string;
  /** `crash-manager.mjs`. */
  readonly manager: string;
  remove(): void;
}

/** Both programs from the sources, in a folder of their own. */
export async function bundlePrograms(): Promise<Programs> {
  const parent = path.join(ROOT, '.dxpu');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(path.join(parent, 'bundle-'));
  const programs = {
    dxpu: path.join(ROOT, 'src/cli/main.ts'),
    manager: path.join(ROOT, 'test/manager/crash-manager.mjs'),
  };
  await bundle(programs, folder);
  return {
    dxpu: path.join(folder, 'dxpu.js'),
    manager: path.join(folder, 'manager.js'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
