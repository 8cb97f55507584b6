import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { readManagerConfig } from './manager-config.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-config-'));
const file = path.join(folder, 'manager.yaml');
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const MANAGER = `manager: m1
certificates: { ca: ca.pem, cert: m.pem, key: m-key.pem }
listen: ["127.0.0.1:7400", "[::1]:7400"]
`;

function complaint(text: string): string {
  writeFileSync(file, text);
  try {
    readManagerConfig(file);
  } catch (error) {
    expect(error).toBeInstanceOf(DxpuError);
    return (error as DxpuError).message.replaceAll(`${file}:`, '');
  }
  throw new Error('nothing was wrong');
}

it('is read with paths from the folder of the file, and times in ms', () => {
  writeFileSync(
    file,
    `${MANAGER}timeouts: { reserved: 2s, keepRequests: 3600s, firstRetry: 50ms }\n`,
  );
  expect(readManagerConfig(file)).toEqual({
    id: 'm1',
    credentialFiles: {
      ca: path.join(folder, 'ca.pem'),
      cert: path.join(folder, 'm.pem'),
      key: path.join(folder, 'm-key.pem'),
    },
    listen: [
      { host: '127.0.0.1', port: 7400 },
      { host: '::1', port: 7400 },
    ],
    store: path.join(folder, 'store'),
    timeouts: { reservedMs: 2000, keepRequestsMs: 3_600_000, firstRetryMs: 50 },
  });
});

it.each([
  ['no address', MANAGER.replace(/listen.*/, 'listen: []'), '3:9: listen: needs at least one'],
  ['no listen', MANAGER.replace(/listen.*/, ''), 'listen: is missing'],
  ['an address twice', MANAGER.replace('[::1]', '127.0.0.1'), '3:28: listen[1]: is the same as'],
  ['a mistyped field', `${MANAGER}stroe: x\n`, '4:1: stroe: unknown field; did you mean store?'],
  ['no folder', `${MANAGER}store: ""\n`, '4:8: store: must name a folder'],
  [
    'a mistyped step',
    `${MANAGER}timeouts: { ataching: 1s }\n`,
    '4:13: timeouts.ataching: unknown field; did you mean attaching?',
  ],
  ['a time without a unit', `${MANAGER}timeouts: { reserved: 5 }\n`, '4:23: timeouts.reserved:'],
  [
    'a time too short for a timer',
    `${MANAGER}timeouts: { reserved: 10us }\n`,
    '4:23: timeouts.reserved: must be from 1ms',
  ],
  [
    'retries that begin above their end',
    `${MANAGER}timeouts: { firstRetry: 61s }\n`,
    '4:25: timeouts.firstRetry: firstRetry, 61000 ms, must not be above lastRetry, 60000 ms',
  ],
])('%s is refused with its place', (_what, text, says) => {
  expect(complaint(text)).toContain(says);
});
