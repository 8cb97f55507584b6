import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { inflateSync } from 'node:zlib';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { BoxNode } from '#agent/daemon/box-node';
import type { Logger } from '#agent/daemon/logger';
import { RealClock } from '#base/clock';
import { printed } from '#testkit/printed';
import { boxScreenshot } from './commands/box-screenshot.ts';
import { type ControlServer, startControlServer } from './control-server.ts';
import { takeScreenshot } from './take-screenshot.ts';

const state = mkdtempSync(path.join(os.tmpdir(), 'dxpu-screenshot-'));
afterAll(() => rmSync(state, { recursive: true, force: true }));

const quiet = (): void => {};
const log: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet };
const file = path.join(state, 'screen.png');

let server: ControlServer | undefined;
afterEach(() => {
  server?.close();
  rmSync(file, { force: true });
});

async function serve(node: Parameters<typeof takeScreenshot>[0]): Promise<void> {
  server = await startControlServer(path.join(state, 'box-b1.sock'), {
    screenshot: (params) => takeScreenshot(node, params),
  });
}

/** Two pixels beside each other. */
const picture = { width: 2, height: 1, rgba: Uint8Array.of(1, 2, 3, 255, 4, 5, 6, 255) };

describe('dxpu box screenshot', () => {
  it('writes what the box shows as PNG', async () => {
    const asked: number[] = [];
    await serve({
      screenshot: (slot) => {
        asked.push(slot);
        return picture;
      },
    });
    const said = await printed(() => boxScreenshot(3, file, { state, output: 'table' }));
    expect(said).toEqual({
      stdout: `box-b1 slot 3: 2 x 1 pixels in ${file}\n`,
      stderr: '',
      thrown: undefined,
    });
    expect(asked).toEqual([3]);
    const png = readFileSync(file);
    // IHDR is at 8, its width at 16; IDAT follows with its length at 33.
    expect([png.readUInt32BE(16), png.readUInt32BE(20)]).toEqual([2, 1]);
    expect([...inflateSync(png.subarray(41, 41 + png.readUInt32BE(33)))]).toEqual([
      0,
      ...picture.rgba,
    ]);
  });

  it('says so as data', async () => {
    await serve({ screenshot: () => picture });
    const { stdout } = await printed(() => boxScreenshot(0, file, { state, output: 'json' }));
    expect(JSON.parse(stdout)).toEqual({ process: 'box-b1', slot: 0, width: 2, height: 1, file });
  });

  it('leaves no file when there is nothing to show', async () => {
    const node = new BoxNode({
      id: 'b1',
      devices: [
        { slot: 0, kind: 'accel', options: { uuid: '00000000-0000-4000-8000-000000000000' } },
        { slot: 1, kind: 'virtio-gpu', options: { uuid: '00000000-0000-4000-8000-000000000001' } },
        {
          slot: 2,
          kind: 'bochs-display',
          options: { uuid: '00000000-0000-4000-8000-000000000002' },
        },
        {
          slot: 3,
          kind: 'vfio-user',
          options: {
            path: '/nowhere/device.sock',
            uuid: '00000000-0000-4000-8000-000000000003',
          },
        },
      ],
      clock: new RealClock(),
      log,
    });
    await serve(node);
    for (const [slot, code, message] of [
      [0, 'invalid_argument', 'slot 0 holds no display (accel)'],
      [1, 'failed_precondition', 'the display in slot 1 shows nothing'],
      [2, 'failed_precondition', 'the display in slot 2 shows nothing'],
      // It may well be one: "slot 3 holds no display" was not true.
      [3, 'invalid_argument', "the device in slot 3 is another process's (vfio-user): if it is"],
      [9, 'not_found', 'this box has no slot 9; it has 0, 1, 2, 3'],
    ] as const) {
      const { thrown, stdout } = await printed(() =>
        boxScreenshot(slot, file, { state, output: 'table' }),
      );
      expect(thrown).toMatchObject({ code, message: expect.stringContaining(message) });
      expect(stdout).toBe('');
    }
    expect(() => readFileSync(file)).toThrow(/ENOENT/);
    node.stop('the test is over');
  });

  it('finds out that the file cannot be written before it asks', async () => {
    await serve({
      screenshot: () => {
        throw new Error('asked');
      },
    });
    const target = path.join(state, 'no-folder', 'screen.png');
    await expect(boxScreenshot(0, target, { state, output: 'table' })).rejects.toThrow(
      `cannot write ${target}`,
    );
  });
});
