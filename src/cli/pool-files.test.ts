import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { readBoxConfig } from './box-config.ts';
import { readHostConfig } from './host-config.ts';
import { poolProcesses, preparePool, readSizes } from './pool-files.ts';
import { clientFile, configFile, poolFolder, sizesFile, storeFolder } from './pool-folder.ts';

const root = mkdtempSync(path.join(os.tmpdir(), 'dxpu-pool-files-'));
afterAll(() => rmSync(root, { recursive: true, force: true }));
let folders = 0;
const newState = (): string => path.join(root, String(folders++));

const SMALL = { boxes: 2, gpus: 1, hosts: 1, slots: 2 };

describe('preparePool', () => {
  it('makes all files once, readable by this user alone, and keeps them', async () => {
    const state = newState();
    expect(await preparePool(state, SMALL)).toEqual({ sizes: SMALL, isNew: true });
    const names = poolProcesses(state, SMALL).map(({ name }) => name);
    expect(names).toEqual(['manager-m1', 'box-b1', 'box-b2', 'host-h1']);
    const files = [...names.map((name) => configFile(state, name)), clientFile(state)];
    const before = files.map((file) => readFileSync(file, 'utf8'));
    for (const file of files) expect(statSync(file).mode & 0o077, file).toBe(0);
    const ports = before.join('\n').match(/127\.0\.0\.1:\d+/g) ?? [];
    // One of the manager, one of each box.
    expect(new Set(ports).size).toBe(3);

    // Nothing asked for: as it is.
    expect(await preparePool(state, {})).toEqual({ sizes: SMALL, isNew: false });
    expect(files.map((file) => readFileSync(file, 'utf8'))).toEqual(before);
  });

  it('takes the usual sizes where none are given', async () => {
    const { sizes } = await preparePool(newState(), { hosts: 1 });
    expect(sizes).toEqual({ boxes: 2, gpus: 4, hosts: 1, slots: 4 });
  });

  it('refuses other sizes than before, and names both', async () => {
    const state = newState();
    await preparePool(state, SMALL);
    await expect(preparePool(state, { gpus: 1, boxes: 3 })).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringContaining(`--boxes is 3, the pool in ${state} was made with 2`),
    });
  });

  it('begins anew what was cut short, but never where a manager has left a store', async () => {
    const state = newState();
    mkdirSync(poolFolder(state), { recursive: true });
    await preparePool(state, SMALL);
    rmSync(sizesFile(state));
    // It may have been made with a port that is taken since.
    expect(await preparePool(state, SMALL)).toMatchObject({ isNew: true });
    rmSync(sizesFile(state));
    mkdirSync(storeFolder(state), { recursive: true });
    await expect(preparePool(state, SMALL)).rejects.toThrow(/has a store and no pool\.yaml/);
    expect(existsSync(configFile(state, 'box-b1'))).toBe(true);
  });

  it('reads the sizes back', async () => {
    const state = newState();
    expect(readSizes(state)).toBeUndefined();
    await preparePool(state, SMALL);
    expect(readSizes(state)).toEqual(SMALL);
  });
});

describe('the configurations', () => {
  it('are what the processes read, for the smallest and the largest pool', async () => {
    for (const sizes of [SMALL, { boxes: 2, gpus: 64, hosts: 1, slots: 31 }]) {
      const state = newState();
      await preparePool(state, sizes);
      const [pcie, nvswitch] = ['b1', 'b2'].map((id) =>
        readBoxConfig(configFile(state, `box-${id}`)),
      );
      expect(pcie).toMatchObject({ id: 'b1', kind: 'pcie' });
      expect(pcie?.devices.map(({ nvlinkGroup }) => nvlinkGroup)).toEqual(
        Array(sizes.gpus).fill(''),
      );
      // Every second box: all GPU nodes in one group.
      expect(nvswitch?.kind).toBe('nvswitch');
      expect(new Set(nvswitch?.devices.map(({ nvlinkGroup }) => nvlinkGroup))).toEqual(
        new Set(['nv0']),
      );
      const host = readHostConfig(configFile(state, 'host-h1'));
      expect(host.slots).toHaveLength(sizes.slots);
      expect(host.manager?.address).toEqual(pcie?.manager?.address);
      expect(
        new Set([pcie, nvswitch].flatMap((box) => box?.listen.map(({ port }) => port))).size,
      ).toBe(2);
    }
  });
});
