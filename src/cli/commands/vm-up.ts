/** `dxpu vm up`: a VM as a host of the pool of a state folder, with all it takes. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';
import type { GuestProgram } from '#vm/guest-initramfs';
import { fileProblem } from '../file-problem.ts';
import { type OutputFormat, printData, printLine, printNote, UsageError } from '../output.ts';
import { vmHostYaml } from '../pool-config-text.ts';
import { poolManager, withPool } from '../pool-connection.ts';
import { poolProcesses, readSizes } from '../pool-files.ts';
import { configFile, logFile, poolFolder } from '../pool-folder.ts';
import { lockPool } from '../pool-lock.ts';
import { hostHasPaths } from '../pool-ready.ts';
import { USUAL_SIZES } from '../pool-words.ts';
import { shellWords } from '../shell-words.ts';
import { makeStateFolder, stateFolder } from '../state-folder.ts';
import { showConsole } from '../vm-console.ts';
import {
  imagesFolder,
  readRecord,
  type VmFiles,
  vmFiles,
  vmProxy,
  type VmRecord,
} from '../vm-folder.ts';
import { startVm, vmPid, vmState } from '../vm-machine.ts';
import { type Started, startedTable, startOne, startPool } from './up.ts';

export interface VmUpOptions {
  readonly state?: string;
  readonly output: OutputFormat;
  readonly host: string;
  readonly slots: number;
  /** Bytes. */
  readonly memory: number;
  readonly cpus: number;
  /** Bytes. */
  readonly window: number;
  /** Bytes. */
  readonly window32: number;
  readonly kvm?: boolean;
  readonly qemu?: string;
  readonly kernel?: string;
  readonly initrd?: string;
  readonly append?: string;
  readonly add?: readonly string[];
  readonly images?: string;
  readonly mirror?: string;
  readonly detach?: boolean;
  /** Those of the options that were named, and do not just have their usual value. */
  readonly given?: readonly string[];
}

const MIB = 2 ** 20;
const READY_WITHIN_MS = 10_000;
/** Options that matter to a VM as it starts, and whose values nobody keeps. */
const OF_THE_START = ['window', 'window32', 'kvm', 'qemu', 'kernel', 'initrd', 'append', 'add'];

export async function vmUp(options: VmUpOptions): Promise<void> {
  checkOptions(options);
  const state = stateFolder(options.state);
  const files = vmFiles(state, options.host);
  makeStateFolder(state);
  const lock = await lockPool(state);
  let started: Started[];
  let vm: Vm;
  try {
    refuseSoftHost(state, options.host);
    const isRunning = (await vmState(files)) !== undefined;
    vm = isRunning ? runningVm(files, options) : await prepareVm(state, files, options);
    const { processes } = await startPool(state, {});
    const qemu = {
      name: `qemu-${files.id}`,
      started: !isRunning,
      pid: await vm.start(),
      log: files.qemuLog,
    };
    started = [...processes, qemu, await startProxy(state, files, vm.record)];
  } finally {
    lock.close();
  }
  await waitForPaths(state, options);
  await tell(files, vm.record, started, options);
}

/** Until a GPU node can be bound; a pool in which that takes long is no fault of the VM. */
async function waitForPaths(state: string, { host, output }: VmUpOptions): Promise<void> {
  const isReady = await withPool({ output, state }, (pool) =>
    hostHasPaths(pool, host, READY_WITHIN_MS),
  );
  if (!isReady) {
    printNote(
      `host ${host} does not reach all boxes yet: dxpu status --process host-${host} says why`,
    );
  }
}

interface Vm {
  readonly record: VmRecord;
  /** Starts its QEMU unless it runs; its process number. */
  readonly start: () => Promise<number>;
}

function runningVm(files: VmFiles, options: VmUpOptions): Vm {
  const record = readRecord(files);
  if (record !== undefined) {
    refuseOtherVm(files, record, options);
    return { record, start: async () => vmPid(files) ?? 0 };
  }
  throw new DxpuError(
    'failed_precondition',
    `a VM runs in ${files.folder} without its record: end it with dxpu vm down --host ${files.id}`,
  );
}

/** What a VM was started with stays so: sizes it does not have are refused, and of the rest it is told. */
function refuseOtherVm({ id }: VmFiles, record: VmRecord, options: VmUpOptions): void {
  const given = options.given ?? [];
  const end = `end it first with dxpu vm down --host ${id}`;
  const has = { slots: record.ports.length, memory: record.memoryBytes, cpus: record.cpus };
  for (const word of ['slots', 'memory', 'cpus'] as const) {
    if (!given.includes(word) || options[word] === has[word]) continue;
    throw new DxpuError(
      'failed_precondition',
      `--${word} is ${options[word]}, the VM of ${id} runs with ${has[word]}: leave it out, or ${end}`,
    );
  }
  const late = given.filter((word) => OF_THE_START.includes(word)).map((word) => `--${word}`);
  if (late.length > 0) {
    printNote(
      `the VM of ${id} runs as it was started, ${late.join(', ')} aside: to change that, ${end}`,
    );
  }
}

function checkOptions({ kernel, initrd, add, ...options }: VmUpOptions): void {
  if (kernel !== undefined && initrd === undefined) {
    throw new UsageError(
      '--kernel needs --initrd: the drivers of the usual one are of its own kernel',
    );
  }
  if (initrd !== undefined && add !== undefined) {
    throw new UsageError('--add puts files into the usual first file system, not into --initrd');
  }
  for (const size of ['memory', 'window', 'window32'] as const) {
    const bytes = options[size];
    if (bytes >= MIB && bytes % MIB === 0) continue;
    throw new UsageError(
      `--${size} is ${bytes} bytes: it must be a multiple of 1MiB, as in 1024MiB`,
    );
  }
}

/** Fetches and writes what the VM is started from. */
async function prepareVm(state: string, files: VmFiles, options: VmUpOptions): Promise<Vm> {
  // What is named wrongly shows before anything is fetched.
  const added = (options.add ?? []).map(programOf);
  const kernel = options.kernel === undefined ? undefined : fileThere(options.kernel);
  const initrd = options.initrd === undefined ? undefined : fileThere(options.initrd);
  // Slow to load, and needed here alone.
  const [{ qemuProgram }, { guestImage }, { guestInitramfs }, { qemuArguments, slotPorts }] =
    await Promise.all([
      import('#vm/qemu-program'),
      import('#vm/guest-image'),
      import('#vm/guest-initramfs'),
      import('#vm/qemu-command'),
    ]);
  const fetching = {
    images: imagesFolder(state, options.images),
    mirror: options.mirror,
    onNote: printNote,
  };
  const qemu = await qemuProgram(options.qemu, fetching);
  // A kernel of the user's comes with a file system.
  const image = kernel === undefined ? await guestImage(fetching) : undefined;
  mkdirSync(files.folder, { recursive: true, mode: 0o700 });
  if (image !== undefined && initrd === undefined) {
    writeFileSync(files.initrd, guestInitramfs(image, added), { mode: 0o600 });
  }
  const ports = slotPorts(options.slots, {
    memoryBytes: options.window32,
    prefetchableBytes: options.window,
  });
  const vm = {
    kernel: kernel ?? image?.kernel ?? '',
    initrd: initrd ?? files.initrd,
    append: options.append?.split(' ') ?? [],
    memoryMib: Math.floor(options.memory / MIB),
    cpus: options.cpus,
    ports,
    qmp: [files.hostQmp, files.toolQmp],
    console: files.console,
    consoleLog: files.consoleLog,
    pidFile: files.pidFile,
    accelerator: options.kvm === true ? 'kvm' : 'tcg',
  } as const;
  const record: VmRecord = {
    qemu: qemu.version,
    kernel: image?.kernelVersion ?? vm.kernel,
    initrd: vm.initrd,
    memoryBytes: options.memory,
    cpus: options.cpus,
    ports: ports.map(({ id }) => id),
  };
  const start = async (): Promise<number> => {
    // Before it runs: whoever finds it running finds what it was started with.
    writeFileSync(files.record, `${JSON.stringify(record)}\n`, { mode: 0o600 });
    return await startVm(files, qemu, qemuArguments(vm));
  };
  return { record, start };
}

function fileThere(file: string): string {
  if (existsSync(file)) return path.resolve(file);
  throw new DxpuError('not_found', `${shortPath(file)} is not there: name a file that is`);
}

function programOf(file: string): GuestProgram {
  try {
    return { name: path.basename(file), bytes: readFileSync(file) };
  } catch (error) {
    throw fileProblem('read', file, error);
  }
}

/** Hosts that `dxpu up` made have no VM. */
function refuseSoftHost(state: string, id: string): void {
  if (
    !poolProcesses(state, readSizes(state) ?? USUAL_SIZES).some(({ name }) => name === `host-${id}`)
  )
    return;
  throw new DxpuError(
    'already_exists',
    `${id} is a host of this pool without a VM: choose another name with --host`,
    { details: { host: id } },
  );
}

/** The host proxy of the VM, as a process of the pool. */
async function startProxy(state: string, files: VmFiles, record: VmRecord): Promise<Started> {
  const { id } = files;
  const folder = poolFolder(state);
  const proxy = vmProxy(state, id);
  const { name } = proxy;
  if (!existsSync(path.join(folder, `${name}.pem`))) {
    const { issueFiles } = await import('#identity/certificates');
    await issueFiles(folder, { kind: 'host', id }, { nowMs: Date.now() });
  }
  const text = vmHostYaml(id, files.hostQmp, record.ports, poolManager(state));
  writeFileSync(configFile(state, name), text, { mode: 0o600 });
  try {
    return await startOne(state, proxy);
  } catch (thrown) {
    const error = DxpuError.from(thrown);
    throw new DxpuError(
      error.code,
      `${error.message}\nthe VM runs, with nothing in its slots; the log of its proxy is ` +
        `${logFile(state, name)}; dxpu vm up tries again, dxpu vm down ends the VM`,
      { details: error.details, cause: error },
    );
  }
}

async function tell(
  files: VmFiles,
  record: VmRecord,
  processes: readonly Started[],
  options: VmUpOptions,
): Promise<void> {
  const { id } = files;
  if (options.output !== 'table') {
    const { folder, console, consoleLog } = files;
    await printData(
      { host: id, folder, console, consoleLog, ...record, processes },
      options.output,
    );
    return;
  }
  printLine(startedTable(processes));
  const dxpu = shellWords(options.state);
  printLine(`
host ${id}: ${record.ports.length} slots, QEMU ${record.qemu}, Linux ${record.kernel}
To go on, in another terminal:
  ${dxpu(`bind --gpus 1 --host ${id} --wait`)}
  ${dxpu(`vm console --host ${id}`)}
  ${dxpu(`vm down --host ${id}`)}`);
  if (options.detach !== true && process.stdin.isTTY) await showConsole(files);
}
