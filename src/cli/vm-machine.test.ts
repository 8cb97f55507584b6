import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { QemuProgram } from '#vm/qemu-program';
import { down } from './commands/down.ts';
import { vmConsole } from './commands/vm-console.ts';
import { vmDown } from './commands/vm-down.ts';
import { vmUp } from './commands/vm-up.ts';
import { preparePool, readSizes } from './pool-files.ts';
import { isRunning } from './state-folder.ts';
import { imagesFolder, knownVms, readRecord, type VmFiles, vmFiles } from './vm-folder.ts';
import { endVm, startVm, vmPid, vmState } from './vm-machine.ts';
import { USUAL_VM, USUAL_WINDOWS } from './vm-words.ts';

let state = '';
let files: VmFiles;
beforeEach(() => {
  state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-vms-'));
  files = vmFiles(state, 'vm1');
  mkdirSync(files.folder, { recursive: true });
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await endVm(files);
  rmSync(state, { recursive: true });
});

/** Stands for QEMU: writes its number, answers at the tool's socket; `quit` ends it, where it may. */
const FAKE = `
const net = require('node:net'), fs = require('node:fs');
const [socket, pidFile, how] = process.argv.slice(1);
if (how === 'broken') { console.error('qemu: -device what: no such device'); process.exit(1); }
fs.writeFileSync(pidFile, String(process.pid));
net.createServer((client) => {
  client.write('{"QMP": {}}\\n');
  client.on('error', () => {});
  client.on('data', (line) => {
    const { execute, id } = JSON.parse(line);
    client.write(JSON.stringify({ return: { status: 'running' }, id }) + '\\n');
    if (execute === 'quit') process.exit(0);
  });
}).listen(socket);
`;
const FAKE_QEMU: QemuProgram = { program: process.execPath, args: ['-e', FAKE], version: '11.0' };
const start = (how: 'works' | 'broken'): Promise<number> =>
  startVm(files, FAKE_QEMU, [files.toolQmp, files.pidFile, how]);

describe('QEMU of a VM', () => {
  it('goes on by itself once it takes commands, and ends when it is asked', async () => {
    expect(await vmState(files)).toBeUndefined();
    const pid = await start('works');
    expect(isRunning(pid)).toBe(true);
    expect(vmPid(files)).toBe(pid);
    expect(await vmState(files)).toBe('running');
    expect(await endVm(files)).toBe('ended');
    expect(isRunning(pid)).toBe(false);
    expect(await vmState(files)).toBeUndefined();
    expect(await endVm(files)).toBe('was not running');
  });

  it('that cannot start is told with its last words', async () => {
    await expect(start('broken')).rejects.toThrow(
      'QEMU ended with status 1; its last words:\nqemu: -device what: no such device',
    );
  });

  it('is not taken for another process that has its number by now', async () => {
    writeFileSync(files.pidFile, String(process.pid));
    expect(vmPid(files)).toBeUndefined();
    expect(await endVm(files)).toBe('was not running');
  });
});

/** With files that are not there: it fails before anything is started. */
const upWithout = (
  sizes: {
    memory?: number;
    window?: number;
    window32?: number;
    given?: string[];
    host?: string;
  } = {},
) =>
  vmUp({
    ...USUAL_VM,
    state,
    output: 'json',
    memory: USUAL_VM.memoryBytes,
    window: USUAL_WINDOWS.prefetchableBytes,
    window32: USUAL_WINDOWS.memoryBytes,
    qemu: '/nowhere/qemu',
    kernel: '/nowhere/kernel',
    initrd: '/nowhere/initrd',
    ...sizes,
  });

describe('a VM that runs without a record that can be read', () => {
  // It had its sockets removed, and a second QEMU in its place.
  it('is not started once more', async () => {
    const pid = await start('works');
    await expect(upWithout()).rejects.toThrow('end it with dxpu vm down --host vm1');
    expect(vmPid(files)).toBe(pid);
    expect(await vmState(files)).toBe('running');
  });

  // What the messages say to do was refused, with the same message.
  it.each([
    ['none', undefined],
    ['a damaged one', '{'],
  ])('is ended by dxpu vm down where there is %s', async (_what, text) => {
    const pid = await start('works');
    if (text !== undefined) writeFileSync(files.record, text);
    const printed = vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    await vmDown({ state, host: 'vm1', output: 'json' }).finally(() => printed.mockRestore());
    expect(isRunning(pid)).toBe(false);
  });
});

// They were left aside without a word: `--slots 8` on a VM of four ended with status 0.
describe('a VM that runs', () => {
  it.each([
    [
      'slots',
      '--slots is 4, the VM of vm1 runs with 1: leave it out, or end it first with dxpu vm down',
    ],
    ['memory', '--memory is 1073741824, the VM of vm1 runs with 1048576'],
    ['cpus', '--cpus is 1, the VM of vm1 runs with 2'],
  ])('is not taken for one of other %s, where they are named', async (word, message) => {
    await start('works');
    writeFileSync(files.record, '{"ports": ["rp0"], "memoryBytes": 1048576, "cpus": 2}');
    await expect(upWithout({ given: [word] })).rejects.toThrow(message);
  });
});

describe('a pool whose VM runs', () => {
  // The VM went on with a host proxy whose certificate no later pool knew.
  it('is not purged, and is told of it when it is ended', async () => {
    await preparePool(state, { boxes: 1, gpus: 1, hosts: 1, slots: 1 });
    await start('works');
    writeFileSync(files.record, '{"ports": ["rp0"]}');
    const ending = { state, output: 'table' } as const;
    await expect(down({ ...ending, purge: true })).rejects.toThrow(
      'VMs of this pool run: vm1; end them first with dxpu vm down --host vm1',
    );
    expect(readSizes(state)).toBeDefined();
    vi.spyOn(process.stdout, 'write').mockReturnValue(true);
    const noted = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
    await down(ending);
    const notes = noted.mock.calls.flat().join('');
    vi.restoreAllMocks();
    expect(notes).toContain('the VM of vm1 goes on: dxpu vm down --host vm1 ends it');
  });
});

describe('VMs of a state folder', () => {
  // QEMU was fetched before.
  it('are refused files that are not there before anything is fetched for them', async () => {
    await expect(upWithout()).rejects.toThrow('/nowhere/kernel is not there');
  });

  // `--memory 1024` is 1024 bytes: QEMU was fetched, and then asked for no memory at all.
  it.each([
    ['--memory', { memory: 1024 }, 1024],
    ['--memory', { memory: 1.5 * 2 ** 20 }, 1572864],
    ['--window', { window: 4096 }, 4096],
    ['--window32', { window32: 2 ** 20 + 1 }, 1048577],
  ])('have sizes in MiB: a %s of %j is wrong usage', async (option, sizes, bytes) => {
    await expect(upWithout(sizes)).rejects.toThrow(
      `${option} is ${bytes} bytes: it must be a multiple of 1MiB, as in 1024MiB`,
    );
  });

  it('are not there before they are started', async () => {
    await expect(vmDown({ state, host: 'vm2', output: 'json' })).rejects.toMatchObject({
      code: 'not_found',
    });
  });

  // It was refused after packages were fetched for it, and left a folder as of a VM.
  it('are refused names of hosts without one, first of all', async () => {
    await preparePool(state, { boxes: 1, gpus: 1, hosts: 1, slots: 1 });
    await expect(upWithout({ host: 'h1' })).rejects.toThrow(
      'h1 is a host of this pool without a VM',
    );
  });

  // It named a file to look at that was not there either.
  it('have no console before they are started', async () => {
    await expect(vmConsole({ state, host: 'vm2' })).rejects.toMatchObject({ code: 'not_found' });
  });

  it('are those with a record; the images beside them are none', () => {
    mkdirSync(path.join(state, 'vm', 'images', 'qemu'), { recursive: true });
    expect(knownVms(state)).toEqual([]);
    writeFileSync(files.record, '{"ports": ["rp0"]}');
    expect(knownVms(state)).toEqual([files]);
    expect(readRecord(files)).toEqual({ ports: ['rp0'] });
    expect(() => vmFiles(state, 'images')).toThrow('a VM cannot be called images');
  });

  it('say what to do about a damaged record', () => {
    writeFileSync(files.record, '{');
    expect(() => readRecord(files)).toThrow('end the VM with dxpu vm down --host vm1');
  });

  it('must not lie so deep that their sockets cannot be', () => {
    expect(() => vmFiles(`/${'x'.repeat(100)}`, 'vm1')).toThrow('choose a shorter folder');
  });

  it('have their images beside them, where $DXPU_VM_IMAGES says, or an option', () => {
    vi.stubEnv('DXPU_VM_IMAGES', '');
    expect(imagesFolder(state, undefined)).toBe(path.join(state, 'vm', 'images'));
    vi.stubEnv('DXPU_VM_IMAGES', '/from/variable');
    expect(imagesFolder(state, undefined)).toBe('/from/variable');
    expect(imagesFolder(state, '/from/option')).toBe('/from/option');
  });

  it('keep what QEMU says', async () => {
    await start('broken').catch(() => {});
    expect(readFileSync(files.qemuLog, 'utf8')).toContain('no such device');
  });
});
