import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const CONDITIONS = ['dxpu-source', 'module', 'node', 'default'];

export interface Bundle {
  readonly file: string;
  remove(): void;
}

/**
 * A program of this folder and all it imports, from the sources, in one file: it starts in less than
 * half the time. In a folder of its own two levels below the root, as files of `dist` are.
 */
export async function bundleOf(name: string): Promise<Bundle> {
  const parent = path.join(ROOT, '.dxpu');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(path.join(parent, 'bundle-'));
  await build({
    configFile: false,
    logLevel: 'error',
    root: ROOT,
    resolve: { conditions: CONDITIONS },
    ssr: {
      noExternal: true,
      external: ['better-sqlite3'],
      resolve: { conditions: CONDITIONS },
    },
    build: {
      ssr: path.join(ROOT, 'test/manager', name),
      outDir: folder,
      emptyOutDir: false,
      copyPublicDir: false,
      target: 'node20',
      minify: false,
      rolldownOptions: { output: { entryFileNames: 'program.mjs' } },
    },
  });
  return {
    file: path.join(folder, 'program.mjs'),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
