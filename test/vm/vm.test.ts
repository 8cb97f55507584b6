/**
 * A stock Linux in a stock QEMU gets GPU nodes of the pool, uses them with its own drivers, and gives them back.
 * One VM for all; each part builds on the one before.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { functionText } from '#testkit/vm/guest-function';
import { lookFor } from '#testkit/vm/look-for';
import { difference, drawnPicture } from '#testkit/vm/picture';
import { TestVm } from '#testkit/vm/test-vm';
import { bdfOf, type Held, said, VmFaults } from '#testkit/vm/vm-faults';
import { vmNeeds } from '#testkit/vm/vm-needs';
import { VmPool } from '#testkit/vm/vm-pool';
import {
  type BindingRecord,
  type Display,
  found,
  type Kind,
  SIZES,
} from '#testkit/vm/vm-pool-parts';
import { CONSOLE_READY } from '#vm/guest-scripts';
import { buildDist } from '../e2e/processes.ts';
import { faultParts } from './faults.ts';
import { isolationParts } from './isolation.ts';
import { remoteDeviceParts } from './remote-device.ts';

const needs = await vmNeeds();
const reason = typeof needs === 'string' ? ` (skipped: ${needs})` : '';

const WATCHDOG_MS = 400_000;
const SLOTS = 4;
const LOOK_MS = 300;
/** Bound and unbound at the same time, one batch after the other: 8 rounds, after 2 of single ones. */
const BATCHES: readonly (readonly Kind[])[] = [
  ['accel', 'second-accel', 'other-accel', 'virtio-gpu'],
  ['other-accel', 'bochs-display', 'accel', 'second-accel'],
];
const golden = (kind: Kind): string =>
  readFileSync(new URL(`./golden/${kind}.txt`, import.meta.url), 'utf8');

describe.skipIf(typeof needs === 'string')(`a VM as a host of the pool${reason}`, () => {
  let pool: VmPool;
  let heldBefore: Held;
  const bound = new Map<Kind, BindingRecord>();

  beforeAll(async () => {
    await buildDist();
    if (typeof needs !== 'string') {
      pool = await VmPool.start(needs, { slots: SLOTS, watchdogMs: WATCHDOG_MS });
    }
  });
  afterAll(async () => pool?.end());

  const boundBdf = (kind: Kind): string => bdfOf(found(bound, kind));

  const functions = async (): Promise<string[]> => {
    const list = await pool.vm.shell('ls /sys/bus/pci/devices');
    return list.split('\n').filter((name) => /^0000:0[1-9]/.test(name));
  };

  /** Of the framebuffer that the driver of a function has made. */
  const framebuffer = async (kind: Kind): Promise<string> => {
    const places = `/sys/bus/pci/devices/${boundBdf(kind)}/graphics/fb*`;
    await pool.vm.until(`ls -d ${places}`);
    return `/dev/${(await pool.vm.shell(`basename ${places}`)).trim()}`;
  };

  const draws = async (kind: Display, seed: number): Promise<void> => {
    const drawn = await said(pool.vm, `fbdraw ${await framebuffer(kind)} ${seed}`);
    // The mode that the display's EDID prefers.
    const { width, height } = SIZES[kind];
    expect(drawn).toEqual({ width, height });
    const expected = drawnPicture(width, height, seed);
    let last: string | undefined;
    await lookFor(
      async () => {
        try {
          last = difference(await pool.screenshot(kind), expected);
        } catch (error) {
          last = String(error); // A display shows nothing before its driver has set a mode.
        }
        return last === undefined ? true : undefined;
      },
      () => `the picture of ${kind}: ${last}`,
      40_000,
      // Each look makes a PNG in the box, which has pixels to take meanwhile.
      LOOK_MS,
    );
  };

  const multiplies = async (): Promise<void> => {
    expect(await said(pool.vm, `sgemm -n 100 -d ${boundBdf('accel')}`)).toMatchObject({
      bdf: boundBdf('accel'),
      size: 256,
      runs: 100,
      equal: 100,
      interrupts: 100,
    });
  };

  it('boots a stock guest that takes commands', async () => {
    const { vm } = pool;
    expect(await vm.run('echo out; echo err >&2; exit 3')).toEqual({
      status: 3,
      text: 'out\nerr\n',
    });
    // A line break at the end, or none, is as it was printed; so is what looks like an answer.
    expect(await vm.shell('printf "1 0 5\\nfive"')).toBe('1 0 5\nfive');
    expect(vm.console).toContain(CONSOLE_READY);
    const slots = await vm.shell('ls /sys/bus/pci/slots');
    expect(slots.trim().split('\n')).toEqual(['1', '2', '3', '4']);
    expect(await vm.run('sgemm')).toEqual({
      status: 1,
      text: 'there is no accelerator (ddb0:0001)\n',
    });
    await expect(vm.until('false', 300)).rejects.toThrow('not within 300 ms');
  });

  it('has empty slots at first', async () => {
    expect(await functions()).toEqual([]);
    expect(await pool.bindings()).toEqual([]);
  });

  it.each(['virtio-gpu', 'accel', 'bochs-display'] as const)(
    'finds %s in the next slot by hot-plug, as the golden text has it, and uses it',
    async (kind) => {
      const slot = bound.size;
      const binding = await pool.bind(kind);
      bound.set(kind, binding);
      expect(binding).toMatchObject({ state: 'attached', hostSlot: slot });
      const bdf = boundBdf(kind);
      expect(await functions()).toContain(bdf);
      expect(await functionText(pool.vm, bdf)).toBe(golden(kind));
      // Slots of QEMU's root ports are numbered from 1 (`slotPorts`).
      const log = await pool.vm.shell('dmesg');
      expect(log).toMatch(new RegExp(`pciehp: Slot\\(${slot + 1}\\): Card present`));
      for (const { index, address, sizeBytes } of binding.attachment?.bars ?? []) {
        const begin = address.toString(16).padStart(8, '0');
        const end = (address + sizeBytes - 1).toString(16).padStart(8, '0');
        expect(log).toMatch(
          new RegExp(`${bdf}: BAR ${index} \\[mem 0x${begin}-0x${end}[^\\]]*\\]: assigned`),
        );
      }
      if (kind === 'accel') {
        await multiplies();
        return;
      }
      await pool.vm.shell('ls /dev/dri/card0');
      await draws(kind, 7);
      await draws(kind, 200);
    },
  );

  it('has drivers of its own kernel, none of ours', async () => {
    const driver = async (kind: Kind): Promise<string> =>
      (
        await pool.vm.shell(`basename $(readlink /sys/bus/pci/devices/${boundBdf(kind)}/driver)`)
      ).trim();
    expect(await driver('virtio-gpu')).toBe('virtio-pci');
    expect(await driver('bochs-display')).toBe('bochs-drm');
    expect(await driver('accel')).toBe('vfio-pci');
  });

  it('gives them back when it is asked, and its slots are empty', async () => {
    await pool.unbind(...[...bound.values()].map(({ id }) => id));
    expect(await functions()).toEqual([]);
    expect(await pool.bindings()).toEqual([]);
    bound.clear();
    heldBefore = new VmFaults(pool).held();
  });

  it('gets them again in the other order', async () => {
    for (const kind of ['bochs-display', 'virtio-gpu'] as const) {
      const slot = bound.size;
      const binding = await pool.bind(kind);
      bound.set(kind, binding);
      expect(binding).toMatchObject({ state: 'attached', hostSlot: slot });
      expect(await functionText(pool.vm, boundBdf(kind))).toBe(golden(kind));
      await draws(kind, 33);
    }
  });

  it('gives those back, too; of 10 rounds nothing is left: no file, mapping, process or socket', async () => {
    await pool.unbind(...[...bound.values()].map(({ id }) => id));
    bound.clear();
    const faults = new VmFaults(pool);
    for (const kinds of BATCHES) await faults.bindAndUnbind(kinds, heldBefore);
    await faults.assertNothingLeft(heldBefore);
  });

  remoteDeviceParts(
    () => pool,
    () => golden('accel'),
  );
  isolationParts(
    () => pool,
    async () => {
      const options = { slots: 1, watchdogMs: WATCHDOG_MS };
      if (typeof needs !== 'string') await pool.addVm('vm2', needs, options);
    },
  );
  faultParts(() => pool);
});

it.skipIf(typeof needs === 'string')(
  `a VM for tests is ended by its watchdog, and nothing is left of it${reason}`,
  async () => {
    if (typeof needs === 'string') return;
    const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-watchdog-'));
    vi.stubEnv('TMPDIR', folder);
    try {
      const starting = TestVm.start(needs, { slots: 2, watchdogMs: 1 });
      await expect(starting).rejects.toThrow('the VM has ended');
      expect(readdirSync(folder)).toEqual([]);
    } finally {
      vi.unstubAllEnvs();
      rmSync(folder, { recursive: true });
    }
  },
);
