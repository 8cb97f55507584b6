/** A QEMU that is a vfio-user client: the user's, the system's if it is new enough, or Debian's. */
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { AptArchive } from './apt-archive.ts';
import { runChild } from './child-run.ts';
import { DEBIAN_SUITE, type FetchOptions } from './guest-image.ts';
import { imagePart } from './image-parts.ts';

export interface QemuProgram {
  readonly program: string;
  /** Stand before all others. */
  readonly args: readonly string[];
  readonly version: string;
}

/** Older ones have no `vfio-user-pci`. */
const LEAST_VERSION = [10, 1] as const;
const SYSTEMS = 'qemu-system-x86_64';
const PACKAGES = ['qemu-system-x86', 'seabios', 'ipxe-qemu'];
const BACKPORTS = `${DEBIAN_SUITE}-backports`;
const ASKED_WITHIN_MS = 30_000;
const LIBRARIES = 'usr/lib/x86_64-linux-gnu';

/**
 * `own` is a program of the user's. Fails with `failed_precondition` where that one cannot be used, with
 * `unavailable` where one has to be fetched and cannot.
 */
export async function qemuProgram(
  own: string | undefined,
  options: FetchOptions,
): Promise<QemuProgram> {
  if (own !== undefined) return await usersProgram(own);
  const installed = await usable(SYSTEMS, []);
  if (typeof installed === 'object') return installed;
  return await debiansProgram(options);
}

async function usersProgram(program: string): Promise<QemuProgram> {
  const found = await usable(program, []);
  if (typeof found === 'object') return found;
  throw new DxpuError(
    'failed_precondition',
    `--qemu ${program}: ${found}; name a qemu-system-x86_64 of version ${LEAST_VERSION.join('.')} ` +
      "or newer, or leave the option out to have Debian's",
  );
}

/** The program, or what keeps it from being used. */
async function usable(program: string, args: readonly string[]): Promise<QemuProgram | string> {
  let text: string;
  let devices: string;
  try {
    text = await said(program, [...args, '--version']);
    devices = await said(program, [...args, '-device', 'help']);
  } catch (error) {
    return DxpuError.from(error).message;
  }
  const version = /version (\d+\.\d+[.\d]*)/.exec(text)?.[1];
  if (version === undefined) return 'it is no QEMU: it does not tell its version';
  if (!isEnough(version)) return `it is QEMU ${version}, without a vfio-user client`;
  if (!devices.includes('"vfio-user-pci"'))
    return `QEMU ${version} was built without vfio-user-pci`;
  return { program, args, version };
}

async function said(program: string, args: readonly string[]): Promise<string> {
  return (await runChild(program, args, { deadlineMs: ASKED_WITHIN_MS })).toString();
}

/** Of a version of QEMU or of its package, `1:11.1.3+ds-1~bpo13+1`. */
export function isEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^\d+:/, '').split('.').map(Number.parseFloat);
  const [leastMajor, leastMinor] = LEAST_VERSION;
  return major > leastMajor || (major === leastMajor && minor >= leastMinor);
}

async function debiansProgram(options: FetchOptions): Promise<QemuProgram> {
  const { folder, label } = await imagePart(options.images, 'qemu', async (part) => {
    options.onNote?.(`fetching QEMU from Debian's ${BACKPORTS}, about 60 MB`);
    return await fetchQemu(part, options.mirror);
  });
  const root = path.join(folder, 'root');
  const inRoot = (name: string): string => path.join(root, name);
  return {
    // By the loader and the libraries it comes with: the system's may be older.
    program: inRoot('usr/lib64/ld-linux-x86-64.so.2'),
    args: [
      '--library-path',
      [LIBRARIES, `${LIBRARIES}/pulseaudio`].map(inRoot).join(':'),
      inRoot('usr/bin/qemu-system-x86_64'),
      ...['usr/share/qemu', 'usr/share/seabios', 'usr/lib/ipxe/qemu'].flatMap((data) => [
        '-L',
        inRoot(data),
      ]),
    ],
    version: label.version,
  };
}

async function fetchQemu(part: string, mirror: string | undefined): Promise<{ version: string }> {
  const folder = path.join(part, 'apt');
  const archive = await AptArchive.open({ folder, suites: [DEBIAN_SUITE, BACKPORTS], mirror });
  const version = await archive.version('qemu-system-x86', BACKPORTS);
  if (version === undefined || !isEnough(version)) {
    throw new DxpuError(
      'unavailable',
      `${BACKPORTS} of Debian has ${version === undefined ? 'no QEMU' : `QEMU ${version}`}, and ` +
        `${LEAST_VERSION.join('.')} is needed: name a mirror with a newer one with --mirror, or your ` +
        'own QEMU with --qemu',
    );
  }
  await archive.unpack(path.join(part, 'root'), PACKAGES, { suite: BACKPORTS, withNeeds: true });
  archive.remove();
  return { version };
}
