// Brings the checkout into a state that can run: packages installed as the lock
// file says, dist built from src. Both are skipped when nothing changed, both
// are safe when several commands run in one checkout at once.

import { createHash } from 'node:crypto';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { cleanUps, npm, run, stopped } from './run.mjs';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const at = (/** @type {string[]} */ ...parts) => path.join(root, ...parts);

/** A failure that the user can act on: its message is all that is shown. */
export class Failure extends Error {
  /** @param {string} message @param {number} [status] */
  constructor(message, status = 1) {
    super(message);
    this.status = status;
  }
}

/** @param {string} line */
const progress = (line) => process.stderr.write(`dxpu: ${line}\n`);

/** @param {string} file */
function read(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}

/**
 * Runs `work` while no other process of this checkout is in here.
 * @template T
 * @param {() => Promise<T>} work
 */
async function exclusively(work) {
  const lock = at('.dxpu', 'prepare.lock');
  const mine = `${lock}.${process.pid}`;
  fs.mkdirSync(path.dirname(lock), { recursive: true });
  fs.writeFileSync(mine, String(process.pid));
  const release = () => {
    if (read(lock) === String(process.pid)) fs.rmSync(lock, { force: true });
    fs.rmSync(mine, { force: true });
  };
  cleanUps.add(release);
  try {
    for (let said = false; ; ) {
      try {
        fs.linkSync(mine, lock); // Atomic, and never seen empty.
        break;
      } catch (error) {
        if (/** @type {NodeJS.ErrnoException} */ (error).code !== 'EEXIST') throw error;
      }
      const holder = read(lock);
      if (holder !== undefined && !isAlive(Number(holder))) {
        fs.rmSync(lock, { force: true });
        continue;
      }
      if (!said) progress(`waiting for process ${holder}, which installs or builds here`);
      said = true;
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    return await work();
  } finally {
    release();
    cleanUps.delete(release);
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code === 'EPERM';
  }
}

/** Installs packages, unless node_modules is what the lock file asks for. */
export async function install() {
  const lockText = read(at('package-lock.json'));
  if (lockText === undefined) throw new Failure('package-lock.json is missing');
  const stamp = at('node_modules', '.dxpu-lock');
  const wanted = `${createHash('sha256').update(lockText).digest('hex')}\n`;
  if (read(stamp) === wanted) return;
  await exclusively(async () => {
    if (read(stamp) === wanted) return;
    if (!matchesInstalled(lockText)) {
      await provideCompiler();
      progress('installing packages');
      // Compilers and checkers are development packages: needed whatever
      // NODE_ENV says.
      const args = ['ci', '--no-audit', '--no-fund', '--include=dev', '--loglevel=error'];
      // What is compiled there is compiled on all cores.
      const env = { ...process.env, JOBS: process.env.JOBS ?? 'max' };
      const { status } = await npm(args, { cwd: root, toStderr: true, env });
      if (stopped() || status !== 0) {
        throw new Failure(`npm ci failed, see above${compilerHint()}`, status || 1);
      }
    }
    fs.writeFileSync(stamp, wanted);
  });
}

// A package with native code is compiled where no build of it is offered for this machine.
const COMPILER = { make: 'make', 'g++': 'g++', python3: 'python3' };

/** @returns {string[]} Debian packages of what is not there */
function missingTools() {
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  return Object.entries(COMPILER)
    .filter(([tool]) => !folders.some((folder) => fs.existsSync(path.join(folder, tool))))
    .map(([, name]) => name);
}

function compilerHint() {
  const missing = missingTools();
  return missing.length === 0
    ? ''
    : `. A package had to be compiled, and there is no ${missing.join(', no ')}: install that first`;
}

/** Installs a compiler where there is none, and where that is ours to do: as root, with apt. */
async function provideCompiler() {
  const missing = missingTools();
  const ours = process.getuid?.() === 0 && fs.existsSync('/usr/bin/apt-get');
  if (missing.length === 0 || !ours) return;
  progress(`installing Debian packages: ${missing.join(' ')}`);
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  for (const args of [['update'], ['install', '-y', '--no-install-recommends', ...missing]]) {
    // What fails here shows in what follows, with a hint.
    await run('apt-get', ['-qq', ...args], { cwd: root, toStderr: true, env });
  }
}

/**
 * Whether npm's own record of node_modules equals the lock file, as after an
 * `npm install NAME`: wiping it then would pull it from under running commands.
 * @param {string} lockText
 */
function matchesInstalled(lockText) {
  const installedText = read(at('node_modules', '.package-lock.json'));
  if (installedText === undefined) return false;
  const { '': _self, ...wanted } = JSON.parse(lockText).packages;
  const installed = JSON.parse(installedText).packages;
  return (
    Object.keys(installed).every((name) => name in wanted) &&
    Object.entries(wanted).every(([name, entry]) => {
      const found = installed[name];
      if (found === undefined) return entry.optional === true;
      return found.version === entry.version && found.integrity === entry.integrity;
    })
  );
}

/**
 * @param {string} folder relative to the root
 * @returns {string[]} paths relative to the root, sorted
 */
function filesBelow(folder) {
  if (!fs.existsSync(at(folder))) return [];
  return fs
    .readdirSync(at(folder), { withFileTypes: true })
    .flatMap((entry) => {
      const name = `${folder}/${entry.name}`;
      return entry.isDirectory() ? filesBelow(name) : [name];
    })
    .sort();
}

/** @param {readonly string[]} files relative to the root */
function hashOf(files) {
  const hash = createHash('sha256');
  for (const file of files) {
    const text = read(at(file));
    hash.update(`${file}\0${text === undefined ? -1 : Buffer.byteLength(text)}\0${text ?? ''}`);
  }
  return hash.digest('hex');
}

/**
 * @param {string[]} folders
 * @returns {string[]}
 */
const sourcesIn = (...folders) =>
  folders.flatMap(filesBelow).filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'));

const COMMON = ['package.json', 'package-lock.json', 'tsconfig.json'];

/** Builds dist from src, unless it is of this very src. */
export async function build() {
  const made = [...COMMON, 'tsconfig.build.json', 'scripts/prepare.mjs', 'scripts/bundle.mjs'];
  await compile(
    'dist',
    'tsconfig.build.json',
    () => hashOf([...made, ...sourcesIn('src')]),
    async (fresh) => {
      const { bundleCli } = await import('./bundle.mjs');
      await bundleCli(path.join(fresh, 'cli'));
      fs.chmodSync(path.join(fresh, 'cli', 'main.js'), 0o755);
    },
  );
}

/** Builds dist-bench from bench and soak. Needs dist. */
export async function buildBench() {
  await compile('dist-bench', 'tsconfig.bench.json', () => {
    const own = hashOf([...COMMON, 'tsconfig.bench.json', ...sourcesIn('bench', 'soak')]);
    return `${own}-${read(at('dist', '.built-from'))}`;
  });
}

/**
 * Compiles into a temporary folder that takes the place of `target` once it is
 * complete: a half-made build is never run.
 * @param {string} target
 * @param {string} project
 * @param {() => string} fingerprint of all that goes in
 * @param {(fresh: string) => Promise<void>} finish what is done with the compiled files in their folder
 */
async function compile(target, project, fingerprint, finish = async () => {}) {
  const stamp = at(target, '.built-from');
  if (read(stamp) === fingerprint()) return;
  await exclusively(async () => {
    // Taken before compiling: an edit meanwhile means another build next time.
    const wanted = fingerprint();
    if (read(stamp) === wanted) return;
    progress(`building ${target}`);
    const [fresh, old] = [at(`${target}.tmp`), at(`${target}.old`)];
    for (const folder of [fresh, old]) fs.rmSync(folder, { recursive: true, force: true });
    const tsc = at('node_modules', 'typescript', 'bin', 'tsc');
    // Types are checked by themselves, `npm test` does it.
    const words = [tsc, '-p', project, '--outDir', fresh, '--noCheck'];
    const { status } = await run(process.execPath, words, { cwd: root, toStderr: true });
    try {
      if (status !== 0 || stopped()) throw new Failure(`building ${target} failed, see above`);
      await finish(fresh);
    } catch (error) {
      fs.rmSync(fresh, { recursive: true, force: true });
      if (error instanceof Failure) throw error;
      throw new Failure(
        `building ${target} failed: ${error instanceof Error ? error.message : error}`,
      );
    }
    fs.writeFileSync(path.join(fresh, '.built-from'), wanted);
    if (fs.existsSync(at(target))) fs.renameSync(at(target), old);
    fs.renameSync(fresh, at(target));
    fs.rmSync(old, { recursive: true, force: true });
  });
}
