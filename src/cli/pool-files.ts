/** Makes the files of a pool on this machine, once; `pool-folder.ts` says which there are. */
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import { DxpuError } from '#base/errors';
import { errnoReason, makeFolder } from '#base/make-folder';
import { isIdentityName } from '#identity/identity';
import { ConfigFile } from './config-file.ts';
import * as schema from './config-schema.ts';
import { boxYaml, clientYaml, hostYaml, managerYaml, sizesYaml } from './pool-config-text.ts';
import { clientFile, configFile, poolFolder, sizesFile, storeFolder } from './pool-folder.ts';
import { USUAL_SIZES } from './pool-words.ts';
import { type KnownProcess, type ProcessKind, processOf } from './state-folder.ts';

export type PoolSizes = Readonly<Record<keyof typeof USUAL_SIZES, number>>;

/** Manager, boxes, hosts: the order in which they are started. */
export function poolProcesses(
  state: string,
  sizes: Pick<PoolSizes, 'boxes' | 'hosts'>,
): KnownProcess[] {
  const of = (kind: ProcessKind, ids: readonly string[]): KnownProcess[] =>
    ids.map((id) => processOf(state, kind, id));
  return [
    ...of('manager', [MANAGER_ID]),
    ...of('box', numbered('b', sizes.boxes)),
    ...of('host', numbered('h', sizes.hosts)),
  ];
}

const MANAGER_ID = 'm1';

const numbered = (letter: string, count: number): string[] =>
  Array.from({ length: count }, (_, index) => `${letter}${index + 1}`);

const sizesSchema = schema.fields({
  boxes: schema.whole(1, 64),
  gpus: schema.whole(1, 64),
  hosts: schema.whole(1, 64),
  slots: schema.whole(1, 31),
});

/** Of the pool in a state folder; `undefined` when there is none. */
export function readSizes(state: string): PoolSizes | undefined {
  const file = sizesFile(state);
  return existsSync(file) ? new ConfigFile(file).parse(sizesSchema) : undefined;
}

/**
 * The pool of the state folder: as it is, or made new. Fails with `failed_precondition` when one is
 * there and a size asked for is another. Ports are chosen once and kept.
 */
export async function preparePool(
  state: string,
  asked: Partial<PoolSizes>,
): Promise<{ sizes: PoolSizes; isNew: boolean }> {
  const known = readSizes(state);
  if (known !== undefined) {
    refuseOtherSizes(state, known, asked);
    return { sizes: known, isNew: false };
  }
  if (existsSync(storeFolder(state))) {
    throw new DxpuError(
      'failed_precondition',
      `${poolFolder(state)} has a store and no pool.yaml: bring that file back, or choose another ` +
        'folder with --state',
    );
  }
  const sizes: PoolSizes = { ...USUAL_SIZES, ...asked };
  // What an attempt that was cut short has left.
  rmSync(poolFolder(state), { recursive: true, force: true });
  await writePool(state, sizes);
  return { sizes, isNew: true };
}

function refuseOtherSizes(state: string, known: PoolSizes, asked: Partial<PoolSizes>): void {
  for (const [word, wanted] of Object.entries(asked)) {
    const is = known[word as keyof PoolSizes];
    if (is === wanted) continue;
    throw new DxpuError(
      'failed_precondition',
      `--${word} is ${wanted}, the pool in ${state} was made with ${is}: leave the sizes out to ` +
        'start it as it is, choose another folder with --state, or remove it with dxpu down --purge',
      { details: { folder: state, sizes: known } },
    );
  }
}

async function writePool(state: string, sizes: PoolSizes): Promise<void> {
  // Slow to load, and needed here alone.
  const { initAuthorityFiles, issueFiles } = await import('#identity/certificates');
  const folder = poolFolder(state);
  makeFolder(folder);
  const boxes = numbered('b', sizes.boxes);
  const hosts = numbered('h', sizes.hosts);
  const options = { nowMs: Date.now() };
  await initAuthorityFiles(folder, 'dxpu pool', options);
  const user = userName();
  await Promise.all([
    issueFiles(folder, { kind: 'manager', id: MANAGER_ID }, options),
    issueFiles(folder, { kind: 'user', id: user }, options),
    ...boxes.map((id) => issueFiles(folder, { kind: 'box', id }, options)),
    ...hosts.map((id) => issueFiles(folder, { kind: 'host', id }, options)),
  ]);
  const [managerPort = 0, ...boxPorts] = await freePorts(1 + boxes.length);
  try {
    mkdirSync(folder, { recursive: true });
    const write = (file: string, text: string): void => writeFileSync(file, text, { mode: 0o600 });
    const of = (name: string): string => configFile(state, name);
    write(of(`manager-${MANAGER_ID}`), managerYaml(MANAGER_ID, managerPort));
    for (const [index, id] of boxes.entries()) {
      write(of(`box-${id}`), boxYaml(id, index, sizes.gpus, boxPorts[index] ?? 0, managerPort));
    }
    for (const id of hosts) write(of(`host-${id}`), hostYaml(id, sizes.slots, managerPort));
    write(clientFile(state), clientYaml(user, managerPort));
    // Last, and whole: with it the pool is there.
    const file = sizesFile(state);
    write(`${file}.tmp`, sizesYaml(sizes));
    renameSync(`${file}.tmp`, file);
  } catch (error) {
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot write the pool's files in ${folder}: ${errnoReason(error)}; choose another folder ` +
        'with --state',
      { details: { folder }, cause: error },
    );
  }
}

/** Who the log says it was. */
function userName(): string {
  try {
    const { username } = os.userInfo();
    if (isIdentityName(username)) return username;
  } catch {
    // A user without an entry in the system's list.
  }
  return 'operator';
}

/** Ports of the loopback address that nobody has at the moment, each another. */
async function freePorts(count: number): Promise<number[]> {
  const probes = await Promise.all(Array.from({ length: count }, () => listening()));
  const ports = probes.map((probe) => (probe.address() as net.AddressInfo).port);
  await Promise.all(probes.map((probe) => new Promise((resolve) => probe.close(resolve))));
  return ports;
}

function listening(): Promise<net.Server> {
  return new Promise((resolve, reject) => {
    const probe = net.createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => resolve(probe));
  });
}
