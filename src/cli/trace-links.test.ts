import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { linkFileSchema } from './link-file.ts';
import { UsageError } from './output.ts';
import { linksOf } from './trace-links.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-links-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function file(name: string, text: string): string {
  const place = path.join(folder, name);
  writeFileSync(place, text);
  return place;
}

async function refusal(options: Parameters<typeof linksOf>[0]): Promise<Error> {
  const error: unknown = await linksOf(options).then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof Error)) throw new Error('it was taken');
  return error;
}

describe('the links of options', () => {
  it('is the usual one where nothing is said, recalled figures and all', async () => {
    const [link] = await linksOf({});
    expect(link).toMatchObject({ name: 'dxpu-6.8us', addedRttNs: 5600, tags: 140, mrrsBytes: 128 });
    expect(link?.recalled).toContain('tags');
  });

  it('is called custom once an option changes it; what is given is no longer recalled', async () => {
    const [link] = await linksOf({ tags: 256, gen: 4, network: 100e9 });
    expect(link).toMatchObject({ name: 'custom', tags: 256, generation: 4, networkGbps: 100 });
    expect(link?.recalled).not.toContain('tags');
    expect(link?.recalled).toContain('mrrsBytes');
  });

  it('takes the whole round trip or what is added', async () => {
    // Native 1.2 µs: 4 in all are 2.8 more.
    expect((await linksOf({ rtt: 4000 }))[0]?.addedRttNs).toBe(2800);
    expect((await linksOf({ addedRtt: 4000 }))[0]?.addedRttNs).toBe(4000);
    expect((await linksOf({ rtt: 4000, nativeRtt: 1000 }))[0]?.addedRttNs).toBe(3000);
    expect((await linksOf({ network: Infinity }))[0]?.networkGbps).toBe(Infinity);
  });

  it.each([
    [{ rtt: 4000, addedRtt: 2000 }, /--rtt and --added-rtt exclude each other/],
    [{ rtt: 1000 }, /^--rtt is 1 us: must be at least the native round trip, 1\.2 us/],
    [{ mrrs: 100 }, /^--mrrs is 100: must be/],
    [{ lanes: 3 }, /^--lanes is 3: must be/],
    [{ mps: 64 }, /^--mps is 64: must be/],
    // In ns and Gb/s, without a unit; and of --added-rtt where --rtt was given.
    [{ network: 0 }, /^--network is 0 Gbit\/s: must be from 0\.001 Gbit\/s to 100000 Gbit\/s$/],
    [{ nativeRtt: 0 }, /^--native-rtt is 0 ns: must be from 1 ns to 1 s$/],
    [{ addedRtt: 1.5e9 }, /^--added-rtt is 1\.5 s: must be from 0 ns to 1 s$/],
    [
      { rtt: 9_007_199_254_740_992 },
      /^--rtt is 9007199\.25\d* s: must be at most 1 s more than the native round trip, 1\.2 us$/,
    ],
  ])('names the option that is wrong: %j', async (options, message) => {
    const error = await refusal(options);
    expect(error).toBeInstanceOf(UsageError);
    expect(error.message).toMatch(message);
  });

  it('compares named ones, and changes each by options', async () => {
    const links = await linksOf({ link: ['native', 'dxpu-4.9us'], tags: 64 });
    expect(links.map(({ name, tags }) => [name, tags])).toEqual([
      ['native changed', 64],
      ['dxpu-4.9us changed', 64],
    ]);
  });

  it('tells twins apart', async () => {
    const links = await linksOf({ link: ['native', 'native'] });
    expect(links.map(({ name }) => name)).toEqual(['native', 'native (2)']);
  });

  it('says what may have been meant', async () => {
    expect((await refusal({ link: ['dxpu-4.9'] })).message).toMatch(
      /no link profile of that name, and no such file: did you mean dxpu-4\.9us\?/,
    );
    expect((await refusal({ link: ['somewhere/lab.yaml'] })).message).toMatch(
      /choose one of native, dxpu-6\.8us, dxpu-4\.9us, or name a file/,
    );
  });
});

describe('the links of files', () => {
  it('come as YAML and as JSON', async () => {
    const yaml = file(
      'lab.yaml',
      'rtt: 3us\nnativeRtt: 1us\ntags: 256\nmrrs: 512\nnetwork: 100Gbit/s\n',
    );
    const json = file(
      'lab.json',
      '{"name": "far", "extends": "dxpu-4.9us", "addedRtt": "9us", "network": "none"}',
    );
    const links = await linksOf({ link: [yaml, json] });
    expect(links).toMatchObject([
      { name: 'lab', addedRttNs: 2000, tags: 256, mrrsBytes: 512, networkGbps: 100 },
      { name: 'far', addedRttNs: 9000, nativeRttNs: 1200, networkGbps: Infinity },
    ]);
    expect(links[0]?.recalled).toEqual([]);
  });

  it('are changed by options: the last word is theirs', async () => {
    const [link] = await linksOf({ link: [file('a.yaml', 'addedRtt: 3us\n')], rtt: 2000 });
    expect(link).toMatchObject({ name: 'a changed', addedRttNs: 800 });
  });

  it.each([
    ['tag: 3\n', /x\.yaml:1:1: tag: unknown field; did you mean tags\?/],
    ['tags: many\n', /x\.yaml:1:7: tags: must be a number, not "many"/],
    ['mps: 128\nmrrs: 100\n', /x\.yaml:2:7: mrrs: is 100: must be/],
    ['rtt: 3us\naddedRtt: 2us\n', /x\.yaml:1:1: rtt: stands beside addedRtt/],
    ['rtt: 1us\n', /x\.yaml:1:6: rtt: is 1 us: must be at least the native round trip, 1\.2 us/],
    ['network: fast\n', /x\.yaml:1:10: network: "fast" is not a rate/],
    ['rtt: 6.8\n', /x\.yaml:1:6: rtt: must be a text, not 6\.8/],
    ['extends: dxpu\n', /x\.yaml:1:10: extends: must be one of native, dxpu-6\.8us, dxpu-4\.9us/],
  ])('are refused with the place of the mistake: %j', async (text, message) => {
    expect((await refusal({ link: [file('x.yaml', text)] })).message).toMatch(message);
  });

  it('have the fields that docs/predict.md lists, and no other', () => {
    const text = readFileSync(new URL('../../docs/predict.md', import.meta.url), 'utf8');
    const [, section = ''] = /^## A link of your own\n([^]*?)(?=^## )/m.exec(text) ?? [];
    const listed = [...section.matchAll(/^\| `(\w+)` \|/gm)].map(([, field]) => field);
    expect(listed).toEqual(Object.keys(linkFileSchema.shape));
  });
});
