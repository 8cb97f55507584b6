// Entry of `npm start`, `npm test`, `npm run bench`, `npm run soak` and
// `npm run build`. Runs before anything is installed: Node built-ins only.

import * as fs from 'node:fs';
import * as path from 'node:path';
import { check } from './check.mjs';
import { build, buildBench, Failure, install, root } from './prepare.mjs';
import { dieBy, run } from './run.mjs';

const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

/**
 * Hands over to a Node program: its exit status becomes ours.
 * @param {readonly string[]} args
 */
async function become(args) {
  const { status, signal } = await run(process.execPath, ['--enable-source-maps', ...args], {
    cwd: root,
  });
  if (signal !== null) dieBy(signal);
  process.exitCode = status;
}

/**
 * Runs bench/NAME.ts or soak/NAME.ts.
 * @param {string} folder
 * @param {readonly string[]} args
 */
async function runNamed(folder, [name, ...args]) {
  const names = fs
    .readdirSync(path.join(root, folder))
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => file.slice(0, -'.ts'.length))
    .sort();
  if (name === undefined || !names.includes(name)) {
    const problem = name === undefined ? 'which one?' : `there is no ${folder}/${name}.ts.`;
    const list = names.length === 0 ? '  (none yet)' : names.map((n) => `  ${n}`).join('\n');
    throw new Failure(
      `${problem} Usage: npm run ${folder} -- NAME [ARGS]. Those that exist:\n${list}`,
      2,
    );
  }
  await install();
  await build();
  await buildBench();
  await become([`dist-bench/${folder}/${name}.js`, ...args]);
}

/** @type {Record<string, (args: string[]) => Promise<void>>} */
const commands = {
  async start(args) {
    await install();
    await build();
    if (!fs.existsSync(path.join(root, 'dist/cli/main.js'))) {
      throw new Failure('there is no src/cli/main.ts to start');
    }
    await become(['dist/cli/main.js', 'start', ...args]);
  },
  async test(args) {
    await install();
    process.exitCode = await check(args);
  },
  async build() {
    await install();
    await build();
  },
  bench: (args) => runNamed('bench', args),
  soak: (args) => runNamed('soak', args),
};

try {
  if (major < 20 || (major === 20 && minor < 19)) {
    throw new Failure(`Node 20.19 or newer is needed, this is ${process.versions.node}`);
  }
  const [name = '', ...args] = process.argv.slice(2);
  const command = commands[name];
  if (command === undefined) {
    throw new Failure(`usage: bootstrap.mjs ${Object.keys(commands).join('|')} [ARGS]`, 2);
  }
  await command(args);
} catch (error) {
  if (!(error instanceof Failure)) throw error;
  process.stderr.write(`dxpu: ${error.message}\n`);
  process.exitCode = error.status;
}
