// Makes the command line a few files in place of some thousand: it starts in half the time.
// Packages are in them, apart from those with native code; their licences are beside them.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const CONDITIONS = ['dxpu-source', 'module', 'node', 'default'];

/**
 * Bundles programs with all they import, but what has native code, into files of `folder` itself: what
 * looks for a neighbour by `import.meta.url` finds it there.
 * @param {Record<string, string>} programs names, each with its source; `NAME.js` is made of it
 * @param {string} folder two levels below the root, as `src/cli` is
 * @returns {Promise<string[]>} the modules that went in
 */
export async function bundle(programs, folder) {
  const { build } = await import('vite');
  const { output } = /** @type {import('vite').Rolldown.RolldownOutput} */ (
    await build({
      configFile: false,
      logLevel: 'error',
      root,
      resolve: { conditions: CONDITIONS },
      ssr: {
        noExternal: true,
        external: ['better-sqlite3', '@resvg/resvg-js', 'koffi'],
        resolve: { conditions: CONDITIONS },
      },
      build: {
        ssr: true,
        outDir: folder,
        emptyOutDir: false,
        copyPublicDir: false,
        target: 'node20',
        minify: false,
        rolldownOptions: {
          input: programs,
          output: { entryFileNames: '[name].js', chunkFileNames: 'chunk-[name]-[hash].js' },
        },
      },
    })
  );
  return output.flatMap((one) => (one.type === 'chunk' ? one.moduleIds : []));
}

/**
 * Bundles `src/cli/main.ts` and the workers beside it.
 * @param {string} folder `cli` of a build, whose files of the same names are replaced
 */
export async function bundleCli(folder) {
  const cli = path.join(root, 'src', 'cli');
  const names = fs
    .readdirSync(cli)
    .filter((name) => name === 'main.ts' || name.endsWith('-worker.ts'))
    .map((name) => path.basename(name, '.ts'));
  const sources = names.map((name) => [name, path.join(cli, `${name}.ts`)]);
  const modules = await bundle(Object.fromEntries(sources), folder);
  fs.writeFileSync(path.join(folder, 'LICENSES.txt'), licencesOf(modules));
  // They are of the files that were replaced.
  for (const name of names) fs.rmSync(path.join(folder, `${name}.js.map`), { force: true });
}

/**
 * What the packages of `modules` ask to be passed on with them.
 * @param {readonly string[]} modules
 */
function licencesOf(modules) {
  const folders = new Set(
    modules.flatMap((id) => /^(.*\/node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(id)?.[1] ?? []),
  );
  const texts = [...folders].sort().map((folder) => {
    const about = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
    const files = fs.readdirSync(folder).filter((name) => /^(licen[cs]e|notice)/i.test(name));
    const words = files.map((name) => fs.readFileSync(path.join(folder, name), 'utf8').trim());
    return [`${about.name} ${about.version} (${about.license})`, ...words].join('\n\n');
  });
  return `${texts.join(`\n\n${'-'.repeat(72)}\n\n`)}\n`;
}
