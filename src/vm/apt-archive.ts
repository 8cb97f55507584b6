/**
 * Debian packages by apt, beside the system's own: lists, packages and state are in a folder of ours, nothing
 * is installed, and no rights but the user's are needed. Packages are verified as apt verifies them, with the
 * machine's keys; the mirror is the one the machine uses.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { runChild } from './child-run.ts';

interface AptArchiveOptions {
  /** For lists and packages. */
  readonly folder: string;
  /** Names of Debian's suites, the usual one first. */
  readonly suites: readonly string[];
  /** URL of a Debian mirror; without it the machine's. */
  readonly mirror?: string | undefined;
}

const KEYRING = '/usr/share/keyrings/debian-archive-keyring.gpg';
const ARCHITECTURE = 'amd64';
const LISTS_WITHIN_MS = 120_000;
const PACKAGES_WITHIN_MS = 480_000;
const ASKED_WITHIN_MS = 30_000;
const UNPACKED_WITHIN_MS = 120_000;

/** What to do where packages cannot be had. */
const OTHERWISE = 'or give your own with --qemu, --kernel and --initrd';

export class AptArchive {
  readonly #folder: string;
  readonly #options: readonly string[];

  private constructor(folder: string, options: readonly string[]) {
    this.#folder = folder;
    this.#options = options;
  }

  /** Fetches the lists of the suites. Fails with `unavailable` where apt, a mirror or the suites are missing. */
  static async open(options: AptArchiveOptions): Promise<AptArchive> {
    const { folder, suites } = options;
    const mirror = options.mirror ?? (await machinesMirror());
    for (const name of ['lists/partial', 'archives/partial', 'etc']) {
      mkdirSync(path.join(folder, name), { recursive: true, mode: 0o700 });
    }
    // Nothing is installed, as far as it knows: what a package needs comes with it.
    writeFileSync(path.join(folder, 'status'), '');
    const key = existsSync(KEYRING) ? `[signed-by=${KEYRING}] ` : '';
    const sources = suites.map((suite) => `deb ${key}${mirror} ${suite} main\n`);
    writeFileSync(path.join(folder, 'etc', 'sources.list'), sources.join(''));
    const archive = new AptArchive(folder, aptOptions(folder));
    try {
      await archive.#apt('apt-get', ['update', '-q'], LISTS_WITHIN_MS);
    } catch (error) {
      throw unavailable(
        `cannot fetch the lists of ${suites.join(' and ')} from ${mirror}`,
        error,
        `name another mirror of Debian with --mirror, ${OTHERWISE}`,
      );
    }
    return archive;
  }

  /** The version of a package that would be taken, from `suite` first of all if given; `undefined` for none. */
  async version(name: string, suite?: string): Promise<string | undefined> {
    const text = await this.#ask([...target(suite), 'policy', name]);
    const version = /Candidate: (\S+)/.exec(text)?.[1];
    return version === '(none)' ? undefined : version;
  }

  /** Names of the packages that one of the usual suite needs directly. */
  async needs(name: string): Promise<string[]> {
    const text = await this.#ask(['depends', name]);
    return [...text.matchAll(/^\s*Depends: (\S+)/gm)].map(([, needed = '']) => needed);
  }

  /** Fetches packages, by themselves or with all they need, and unpacks them into a new folder `root`. */
  async unpack(
    root: string,
    names: readonly string[],
    how: { readonly suite?: string; readonly withNeeds: boolean },
  ): Promise<void> {
    const archives = path.join(this.#folder, 'archives');
    const words = how.withNeeds ? ['--download-only', '-y', 'install'] : ['download'];
    try {
      await this.#apt(
        'apt-get',
        ['-q', ...target(how.suite), ...words, ...names],
        PACKAGES_WITHIN_MS,
        archives,
      );
    } catch (error) {
      throw unavailable(`cannot fetch ${names.join(', ')}`, error, `try again, ${OTHERWISE}`);
    }
    mkdirSync(root);
    for (const file of readdirSync(archives)) {
      if (!file.endsWith('.deb')) continue;
      await runChild('dpkg-deb', ['-x', path.join(archives, file), root], {
        deadlineMs: UNPACKED_WITHIN_MS,
      });
    }
  }

  /** Removes lists and packages. */
  remove(): void {
    rmSync(this.#folder, { recursive: true });
  }

  async #ask(args: readonly string[]): Promise<string> {
    return (await this.#apt('apt-cache', args, ASKED_WITHIN_MS)).toString();
  }

  #apt(program: string, args: readonly string[], deadlineMs: number, cwd?: string) {
    const folder = cwd ?? this.#folder;
    return runChild(program, [...this.#options, ...args], { folder, deadlineMs });
  }
}

function aptOptions(folder: string): string[] {
  const settings = {
    'Dir::Etc::sourcelist': path.join(folder, 'etc', 'sources.list'),
    'Dir::Etc::sourceparts': '-',
    'Dir::Etc::preferences': '-',
    'Dir::Etc::preferencesparts': '-',
    'Dir::State': folder,
    'Dir::State::lists': path.join(folder, 'lists'),
    'Dir::State::status': path.join(folder, 'status'),
    'Dir::Cache': folder,
    'Dir::Cache::archives': path.join(folder, 'archives'),
    'APT::Architecture': ARCHITECTURE,
    'APT::Architectures': ARCHITECTURE,
    'APT::Install-Recommends': 'false',
    'APT::Update::Error-Mode': 'any',
    // The folder is this user's alone, and what is in it is verified.
    'APT::Sandbox::User': '',
    'Acquire::Languages': 'none',
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`]);
}

const target = (suite: string | undefined): string[] => (suite === undefined ? [] : ['-t', suite]);

/** Of Debian, in the machine's own list of sources. */
async function machinesMirror(): Promise<string> {
  let text: string;
  try {
    const format = '$(ORIGIN)|$(LABEL)|$(SITE)|$(REPO_URI)';
    text = (
      await runChild('apt-get', ['indextargets', '--format', format, 'Created-By: Packages'], {
        deadlineMs: ASKED_WITHIN_MS,
      })
    ).toString();
  } catch (error) {
    throw unavailable(
      'no packages to be had: they come by apt-get',
      error,
      `run it on Debian, ${OTHERWISE}`,
    );
  }
  const rows = text.split('\n').map((row) => row.split('|'));
  const own =
    rows.find(([origin, label]) => origin === 'Debian' && label === 'Debian') ??
    // Before the first `apt-get update` nothing is known of them but their addresses.
    rows.find(([, , site]) => /\/debian\/?$/.test(site ?? ''));
  const site = own?.[2];
  if (site !== undefined && site !== '') return site;
  throw new DxpuError(
    'unavailable',
    `this machine's apt knows no mirror of Debian: name one with --mirror, ${OTHERWISE}`,
  );
}

function unavailable(what: string, cause: unknown, wayOut: string): DxpuError {
  const { message, details } = DxpuError.from(cause);
  return new DxpuError('unavailable', `${what}: ${message}\n${wayOut}`, { details, cause });
}
