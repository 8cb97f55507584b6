import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readNvprof } from './nvprof.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { Timeline } from './timeline.ts';

let folder = '';
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dxpu-nvprof-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function readBytes(bytes: string | Uint8Array): Promise<Timeline> {
  files += 1;
  const path = join(folder, `${files}.csv`);
  await writeFile(path, bytes);
  return readNvprof(path);
}
const read = (...lines: readonly string[]): Promise<Timeline> => readBytes(`${lines.join('\n')}\n`);
const codes = (timeline: Timeline) => timeline.warnings.map(({ code, count }) => [code, count]);

const HEADER = '"Start","Duration","Size","Device","Context","Stream","Name"';
const PREAMBLE = '==9== NVPROF is profiling process 9, command: ./a';
const GPU = '"GPU X (2)"';
const row = (start: string, duration: string, size: string, name: string, stream = '7'): string =>
  `${start},${duration},${size},${GPU},"1","${stream}","${name}"`;

describe('units', () => {
  it.each([
    // 1.5 of the unit of starts, 2 of the unit of durations, 3 of the unit of sizes.
    ['s', 'ms', 'B', 1_500_000_000, 2_000_000, 3],
    ['ms', 'us', 'KB', 1_500_000, 2_000, 3 * 1024],
    ['us', 'ns', 'MB', 1_500, 2, 3 * 1024 * 1024],
    ['ms', 'ms', 'GB', 1_500_000, 2_000_000, 3 * 1024 ** 3],
  ])('%s, %s, %s', async (start, duration, size, startNs, durationNs, bytes) => {
    const { work } = await read(
      HEADER,
      `${start},${duration},${size},,,,`,
      row('0', '0', '', 'zero() [1]'),
      row('1.5', '2', '3', '[CUDA memcpy HtoD]'),
    );
    expect([work.startNs[1], work.durationNs[1], work.bytes[1]]).toEqual([
      startNs,
      durationNs,
      bytes,
    ]);
  });

  it('starts to the microsecond are warned of', async () => {
    const timeline = await read(HEADER, 's,us,B,,,,', row('1', '1', '', 'f() [1]'));
    expect(timeline.warnings).toEqual([
      { code: 'coarse-times', count: 1, message: expect.stringContaining('1000 ns') },
    ]);
  });
});

it('kinds, names, streams, GPUs; the number behind a name is its correlation', async () => {
  const timeline = await read(
    PREAMBLE,
    'the program says hello, world',
    HEADER,
    'ms,us,KB,,,,',
    row('1', '1', '', 'saxpy(float, float*) [17]'),
    row('2', '1', '', 'saxpy(float, float*) [18]'),
    row('3', '1', '4', '[CUDA memcpy DtoH]', '8'),
    row('4', '1', '4', '[CUDA memcpy PtoP]'),
    row('5', '1', '4', '[CUDA memcpy HtoA]'),
    row('6', '1', '4', '[CUDA memcpy XtoY]'),
    row('7', '1', '4', '[CUDA memset]'),
    '==9== Warning: some events were lost',
  );
  const { work, streams, names } = timeline;
  const { kernel, dtoh, ptop, htod, memset } = WORK_KIND;
  const ofStream = (stream: string): number[] =>
    [...work.kind.keys()]
      .filter((at) => streams[work.stream[at]!]!.stream === stream)
      .map((at) => work.kind[at]!);
  expect(ofStream('7')).toEqual([kernel, kernel, ptop, htod, WORK_KIND.copy, memset]);
  expect(ofStream('8')).toEqual([dtoh]);
  expect(names.filter((name) => name.startsWith('saxpy'))).toEqual(['saxpy(float, float*)']);
  expect([...timeline.gpus]).toEqual([[2, 'GPU X']]);
  expect([timeline.calls.count, timeline.submissions, timeline.warnings]).toEqual([0, 7, []]);
});

it('memory of the host side, where the table has it', async () => {
  const header =
    '"Start","Duration","Size","SrcMemType","DstMemType","Device","Context","Stream","Name"';
  const copy = (source: string, target: string, kind: string): string =>
    `1,1,1,"${source}","${target}",${GPU},"1","7","[CUDA memcpy ${kind}]"`;
  const { work } = await read(
    header,
    'ms,us,KB,,,,,,',
    copy('Pageable', 'Device', 'HtoD'),
    copy('Device', 'Pinned', 'DtoH'),
    copy('Device', 'Device', 'DtoD'),
  );
  expect([...work.flags]).toEqual([WORK_FLAG.pageable, WORK_FLAG.pinned, 0]);
});

it('two tables, of two processes, have units, streams and correlations of their own', async () => {
  const timeline = await read(
    HEADER,
    'ms,us,KB,,,,',
    row('1', '1', '', 'f() [5]'),
    HEADER,
    'us,ns,KB,,,,',
    row('1500', '10', '', 'f() [5]'),
  );
  expect(timeline.streams.map(({ stream }) => stream)).toEqual(['7', '7 (table 2)']);
  expect([...timeline.work.startNs]).toEqual([0, 500_000]);
  expect([...timeline.work.durationNs]).toEqual([1000, 10]);
  expect(timeline.submissions).toBe(2);
});

it('API calls, page faults and copies of managed memory are told apart', async () => {
  const timeline = await read(
    HEADER,
    'ms,us,KB,,,,',
    '1,1,,,,,"cudaMalloc [3]"',
    row('2', '1', '', '[Unified Memory GPU page faults]'),
    row('3', '1', '64', '[Unified Memory Memcpy HtoD]'),
  );
  expect([...timeline.work.kind]).toEqual([WORK_KIND.htod]);
  expect(codes(timeline)).toEqual([
    ['host-calls-left-out', 1],
    ['page-faults', 1],
    ['managed-memory', 1],
  ]);
});

describe('damage', () => {
  it('rows with too few fields, open quotes or no numbers are dropped and counted', async () => {
    const timeline = await read(
      HEADER,
      'ms,us,KB,,,,',
      row('1', '1', '', 'f() [1]'),
      '2,1,,',
      '3,1,,"GPU,"1","7","f() [2]"',
      row('', '1', '', 'f() [3]'),
      row('inf', '1', '', 'f() [4]'),
      row('4', '-1', '', 'f() [5]'),
      row('1e300', '1', '', 'f() [6]'),
      row('5', '1', 'many', '[CUDA memcpy HtoD]'),
    );
    expect(timeline.work.count).toBe(2);
    expect(timeline.spanNs).toBe(4_001_000);
    expect(codes(timeline)).toEqual([
      ['malformed-rows', 2],
      ['dropped-no-time', 2],
      ['dropped-negative-duration', 1],
      ['no-bytes', 1],
      ['dropped-far-away', 1],
    ]);
    expect(timeline.warnings[0]!.message).toContain('line 4');
  });

  it('a last row that is cut short is dropped', async () => {
    const text = [HEADER, 'ms,us,KB,,,,', row('1', '1', '', 'f() [1]'), '2,1,,"GPU'].join('\n');
    const timeline = await readBytes(text);
    expect(timeline.work.count).toBe(1);
    expect(codes(timeline)).toEqual([['truncated', 1]]);
  });

  it('packed files are read; of one cut short what is there', async () => {
    // Names that do not repeat, so that the packed file is long enough to lose something.
    const rows = Array.from({ length: 20_000 }, (_, at) =>
      row(String(at), '1', '', `f${(at * 2_654_435_761) % 2 ** 32}() [${at + 1}]`),
    );
    const packed = gzipSync([HEADER, 'ms,us,KB,,,,', ...rows, ''].join('\n'));
    expect((await readBytes(packed)).work.count).toBe(20_000);
    const part = await readBytes(packed.subarray(0, packed.length / 2));
    expect(part.work.count).toBeGreaterThan(5000);
    expect(part.work.count).toBeLessThan(15_000);
    expect(part.warnings.map(({ code }) => code)).toContain('truncated');
  });

  it.each([
    [
      'a summary',
      ['"Type","Time(%)","Time","Calls","Avg"'],
      /line 1: .*summary.*--print-gpu-trace/,
    ],
    ['a list of API calls', [PREAMBLE, '"Start","Duration","Name"'], /line 2: .*API calls/],
    ['no header', [PREAMBLE, '1,2,3'], /line 2: .*header/],
    ['nothing behind the header', [HEADER], /line 1: .*row of units/],
    ['no units', [HEADER, row('1', '1', '', 'f()')], /line 2: .*row of units/],
    ['units that are none', [HEADER, 'h,us,KB,,,,'], /line 2: .*row of units/],
    ['nothing', [''], /line 1: .*header/],
  ])('%s is refused with the line', async (_, lines, message) => {
    await expect(read(...lines)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(message),
    });
  });
});
