import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { readBoxConfig } from './box-config.ts';
import { readHostConfig } from './host-config.ts';
import { readManagerConfig } from './manager-config.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-readme-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
const [box = '', host = '', manager = ''] = [...readme.matchAll(/```yaml\n([^]*?)```/g)].map(
  (match) => match[1] ?? '',
);

function written(name: string, text: string): string {
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

it('the files of the example become those of a pool as it says', () => {
  const field = /stands `(manager: .*)`/.exec(readme)?.[1];
  const managed = (text: string): string =>
    `${text.replace(/^(?:table|paths):\n(?: .*\n)*/gm, '')}${field}\n`;
  const { listen } = readManagerConfig(written('manager.yaml', manager));
  const ofBox = readBoxConfig(written('box.yaml', managed(box)));
  const ofHost = readHostConfig(written('host.yaml', managed(host)));
  expect([ofBox, ofHost].map((one) => one.manager?.address)).toEqual([listen[0], listen[0]]);
  expect(ofBox.rows).toEqual([]);
  expect(ofHost.paths).toEqual([]);
});
