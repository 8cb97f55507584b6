// The contract in proto/: `npm run proto` makes src/proto/generated of it,
// `npm run contract` checks its style and that what is committed was made of it.
// Works offline: generator and linter are packages.

import { spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { root } from './prepare.mjs';

const PROTO = path.join(root, 'proto');
// Where buf.gen.yaml says, from PROTO.
const GENERATED = '../src/proto/generated';

/** @param {readonly string[]} args */
function buf(...args) {
  const bin = path.join(root, 'node_modules', '.bin');
  const env = { ...process.env, PATH: `${bin}${path.delimiter}${process.env.PATH}` };
  const { status, error } = spawnSync('buf', args, { cwd: PROTO, env, stdio: 'inherit' });
  if (error !== undefined) throw error;
  return status === 0;
}

/** @param {string} folder */
function contents(folder) {
  const files = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  return new Map(
    files
      .filter((file) => file.isFile())
      .map((file) => path.join(file.parentPath, file.name))
      .map((file) => [path.relative(folder, file), fs.readFileSync(file, 'utf8')]),
  );
}

/** Whether src/proto/generated is what the contract says. */
function isUpToDate() {
  const temporary = fs.mkdtempSync(path.join(os.tmpdir(), 'dxpu-proto-'));
  try {
    // The folder of the output is a level below what is prepended to it.
    const base = path.join(temporary, 'proto');
    fs.mkdirSync(base);
    if (!buf('generate', '--output', base)) return false;
    const made = contents(path.join(base, GENERATED));
    const committed = contents(path.join(PROTO, GENERATED));
    const differing = [...new Set([...made.keys(), ...committed.keys()])]
      .filter((name) => made.get(name) !== committed.get(name))
      .sort();
    for (const name of differing) {
      process.stderr.write(
        `src/proto/generated/${name}: not what proto/ says: run npm run proto and commit it\n`,
      );
    }
    return differing.length === 0;
  } finally {
    fs.rmSync(temporary, { recursive: true, force: true });
  }
}

const [task] = process.argv.slice(2);
if (task === 'generate') process.exitCode = buf('generate') ? 0 : 1;
else if (task === 'check') process.exitCode = buf('lint') && isUpToDate() ? 0 : 1;
else throw new Error(`generate or check, not ${task}`);
