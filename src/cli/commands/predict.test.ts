import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { prediction } from '#perfmodel/prediction';
import { nearWorker } from '#testkit/near-worker';
import { printed, type Printed } from '#testkit/printed';
import { syntheticKineto } from '#trace/synthetic-kineto';
import { SYNTHETIC_NAMES } from '#trace/synthetic';
import { errorObject, UsageError } from '../output.ts';
import { runPredictJob } from '../predict-job.ts';
import { EXAMPLES } from '../program-trace-options.ts';
import { predict, type PredictCommandOptions } from './predict.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-predict-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => path.join(folder, name);

beforeAll(() => {
  for (const rank of [0, 1]) {
    writeFileSync(at(`rank${rank}.json`), [...syntheticKineto(1, rank)].join(''));
  }
  writeFileSync(at('broken.json'), '{"traceEvents": [{"ph": "X", "na');
});
afterEach(() => {
  process.exitCode = undefined;
});

const OPTIONS: PredictCommandOptions = {
  sharing: 1,
  fetches: 1,
  peers: 'box',
  budget: 10,
  output: 'table',
};

function run(files: readonly string[], options: Partial<PredictCommandOptions>): Promise<Printed> {
  return printed(() =>
    predict(
      files.map((name) => at(name)),
      { ...OPTIONS, ...options },
      () => nearWorker(runPredictJob),
    ),
  );
}

describe('predict', () => {
  it('knows the examples there are', () => expect(EXAMPLES).toEqual(SYNTHETIC_NAMES));

  it('says of an example that it is made up, in every form', async () => {
    const table = await run([], { example: 'copy-loader' });
    expect(table.stdout).toMatch(/^synthetic copy-loader\nSYNTHETIC: a made-up trace/);
    const json = await run([], { example: 'copy-loader', output: 'json' });
    expect(JSON.parse(json.stdout)).toMatchObject({ trace: { format: 'synthetic' } });
    const csv = await run([], { example: 'copy-loader', output: 'csv' });
    expect(csv.stdout.split('\n')[1]).toMatch(/^synthetic copy-loader,synthetic,/);
  });

  it('has a JSON line for each trace and link, by the schema, in the order asked for', async () => {
    const { stdout, stderr } = await run(['rank1.json', 'rank0.json'], {
      output: 'json',
      link: ['native', 'dxpu-4.9us'],
    });
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => prediction.parse(JSON.parse(line)));
    expect(answers.map(({ trace, link }) => [path.basename(trace.file), link.name])).toEqual([
      ['rank1.json', 'native'],
      ['rank1.json', 'dxpu-4.9us'],
      ['rank0.json', 'native'],
      ['rank0.json', 'dxpu-4.9us'],
    ]);
    expect(answers[0]?.replay?.overheadPct).toBe(0);
    expect(stderr).toBe('');
  });

  it('answers of the others where one is broken, names it, and ends with 1', async () => {
    const { stdout, stderr, thrown } = await run(['rank0.json', 'broken.json', 'rank1.json'], {
      output: 'csv',
    });
    expect(thrown).toBeUndefined();
    expect(stdout.trimEnd().split('\n')).toHaveLength(3);
    expect(stderr).toMatch(/^dxpu: .*broken\.json/);
    expect(stderr).toMatch(/dxpu: 1 of 3 traces have no answer\n$/);
    expect(process.exitCode).toBe(1);
  });

  it('has one error for machines, a line of JSON', async () => {
    const { stderr } = await run(['missing.json', 'rank0.json'], { output: 'json' });
    const [line = ''] = stderr.split('\n');
    expect(JSON.parse(line)).toMatchObject({
      error: { code: 'not_found', details: { file: at('missing.json') } },
    });
  });

  it('fails with the error of a trace that is alone', async () => {
    const { thrown, stdout } = await run(['broken.json'], {});
    expect(errorObject(thrown).message).toContain('broken.json');
    expect(stdout).toBe('');
  });

  // The words of the system call came through, with a name of 5,000 characters twice.
  it.each([
    ['loop.json', 'invalid_argument', /loop\.json: its symbolic links lead in a circle\. Name the/],
    [
      'rank0.json/x.json',
      'invalid_argument',
      /x\.json: a part of its path is a file, not a folder/,
    ],
    [`${'x'.repeat(5000)}.json`, 'invalid_argument', /…x+\.json: its name is longer than the file/],
  ])('says why a trace cannot be opened, and what to do: %.20s', async (name, code, message) => {
    if (!existsSync(at('loop.json'))) {
      rmSync(at('loop.json'), { force: true });
      symlinkSync(at('loop.json'), at('loop.json'));
    }
    const { thrown } = await run([name], {});
    expect(errorObject(thrown)).toMatchObject({ code, message: expect.stringMatching(message) });
    expect(errorObject(thrown).message).not.toMatch(/stat '|open '|E[A-Z]{3}/);
    expect(errorObject(thrown).message.length).toBeLessThan(400);
  });

  it('reads a file once, however often it is named', async () => {
    const { stdout } = await run(['rank0.json', 'rank0.json'], { output: 'json' });
    expect(stdout.trimEnd().split('\n')).toHaveLength(1);
  });

  it('lists several as YAML, one as itself', async () => {
    const several = await run(['rank0.json', 'rank1.json'], { output: 'yaml' });
    expect(several.stdout).toMatch(/^- schema: dxpu\.predict\/1$/m);
    const one = await run(['rank0.json'], { output: 'yaml' });
    expect(one.stdout).toMatch(/^schema: dxpu\.predict\/1$/m);
  });

  it('passes its options on', async () => {
    const { stdout } = await run([], {
      example: 'copy-loader',
      output: 'json',
      sharing: 4,
      fetches: 3,
      budget: 2.5,
      perIteration: true,
    });
    const answer = prediction.parse(JSON.parse(stdout));
    expect(answer.link).toMatchObject({ sharing: 4, fetches: 3 });
    expect(answer.verdict.budgetPct).toBe(2.5);
    expect(answer.budgets.map(({ overheadPct }) => overheadPct)).toEqual([1, 2.5, 5, 10, 20]);
    expect(answer.perIteration).toHaveLength(answer.trace.iterations);
  });
});

describe('the files predict writes', () => {
  it('are a picture and a page, of all traces that have an answer', async () => {
    const { stderr } = await run(['rank0.json', 'broken.json', 'rank1.json'], {
      output: 'json',
      plot: at('a.svg'),
      html: at('a.html'),
    });
    expect(stderr).toContain(`wrote ${at('a.svg')}\n`);
    expect(readFileSync(at('a.svg'), 'utf8')).toMatch(/^<svg [^]*replay, rank0[^]*replay, rank1/);
    const page = readFileSync(at('a.html'), 'utf8');
    expect(page).toContain('Without an answer');
    expect(page).toContain('broken.json');
  });

  it('are drawn as PNG too', async () => {
    await run([], { example: 'copy-loader', plot: at('b.PNG'), output: 'json' });
    expect(readFileSync(at('b.PNG')).subarray(1, 4).toString()).toBe('PNG');
  });

  it.each([
    [{ plot: 'x.pdf' }, /--plot .*x\.pdf: a name ending in \.svg or \.png/],
    [{ html: 'rank1.json' }, /--html .*rank1\.json: the name of a page ends in \.html/],
    [{ plot: 'nowhere/x.svg' }, /cannot write .*: there is no such folder/],
    [{ plot: `${'x'.repeat(300)}/x.svg` }, /cannot write .*…x+\/x\.svg: the name is longer than/],
  ])('are refused before anything is read: %j', async (names, message) => {
    const options = Object.fromEntries(Object.entries(names).map(([key, name]) => [key, at(name)]));
    const { thrown, stdout } = await run(['rank0.json'], options);
    expect(errorObject(thrown).message).toMatch(message);
    expect(stdout).toBe('');
  });

  it('are never a trace', async () => {
    writeFileSync(at('trace.html'), readFileSync(at('rank0.json')));
    const { thrown } = await run(['trace.html'], { html: at('trace.html') });
    expect(errorObject(thrown).message).toMatch(/is one of the inputs/);
    expect(readFileSync(at('trace.html')).equals(readFileSync(at('rank0.json')))).toBe(true);
  });

  it('hold no more lines than can be told apart', async () => {
    const link = Array.from({ length: 5 }, () => 'native');
    const { thrown } = await run(['rank0.json', 'rank1.json'], { link, plot: at('many.svg') });
    expect(thrown).toBeInstanceOf(UsageError);
    expect(errorObject(thrown).message).toMatch(/at most 8 traces and links together, not 10/);
    expect(existsSync(at('many.svg'))).toBe(false);
  });
});

describe('wrong usage of predict', () => {
  it.each([
    [[], {}, /name a trace to read, or try one with --example/],
    [['rank0.json'], { example: 'training' as const }, /--example is a trace of its own/],
  ])('%j %j', async (files, options, message) => {
    const { thrown } = await run(files, options);
    expect(thrown).toBeInstanceOf(UsageError);
    expect(errorObject(thrown).message).toMatch(message);
  });
});
