import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { readTensorflow } from './tensorflow.ts';
import { WORK_KIND } from './timeline.ts';
import type { Timeline } from './timeline.ts';

let folder = '';
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dxpu-tensorflow-'));
});
afterAll(() => rm(folder, { recursive: true }));

async function readText(text: string): Promise<Timeline> {
  files += 1;
  const path = join(folder, `${files}.json`);
  await writeFile(path, text);
  return readTensorflow(path);
}
const read = (...events: readonly object[]): Promise<Timeline> =>
  readText(JSON.stringify({ traceEvents: events }));

const process = (pid: number, name: string) => ({
  ph: 'M',
  name: 'process_name',
  pid,
  args: { name },
});
const op = (pid: number, ts: unknown, dur: unknown, name: string) => ({
  ph: 'X',
  cat: 'Op',
  pid,
  tid: 0,
  ts,
  dur,
  name,
});
const ORIGIN_US = 1_490_280_136_435_000;

it('reads single streams and leaves out what repeats them, in ns from the first', async () => {
  const timeline = await read(
    process(1, '/job:localhost/replica:0/task:0/gpu:0 Compute'),
    process(5, '/gpu:0/stream:all Compute'),
    process(7, '/gpu:0/stream:12 Compute'),
    process(8, '/gpu:0/stream:12 Tensors'),
    process(9, '/gpu:1/memcpy Compute'),
    process(11, '/device:GPU:1/stream:13 Compute'),
    op(1, ORIGIN_US, 9, 'NoOp'),
    op(5, ORIGIN_US + 5, 3, 'MatMul'),
    op(7, ORIGIN_US + 5, 3, 'MatMul'),
    op(8, ORIGIN_US + 5, 3, 'MatMul'),
    op(9, ORIGIN_US + 10, 2, 'MEMCPYHtoD'),
    op(11, ORIGIN_US + 10, 2, 'MEMCPYHtoD'),
  );
  const { work } = timeline;
  expect([...work.kind]).toEqual([WORK_KIND.kernel, WORK_KIND.htod]);
  expect([...work.startNs]).toEqual([0, 5000]);
  expect([...work.durationNs]).toEqual([3000, 2000]);
  expect(timeline.streams).toEqual([
    { device: 0, stream: '12' },
    { device: 1, stream: '13' },
  ]);
  expect(timeline.originUnixNs).toBe(BigInt(ORIGIN_US + 5) * 1000n);
  expect([timeline.calls.count, timeline.submissions]).toEqual([0, 2]);
  expect(timeline.warnings.map(({ code, count }) => [code, count])).toEqual([
    ['copies-without-bytes', 1],
  ]);
});

it('reads the repeats where there is nothing else', async () => {
  const { work } = await read(
    process(5, '/gpu:0/stream:all Compute'),
    op(5, ORIGIN_US, 3, 'MatMul'),
  );
  expect(work.count).toBe(1);
});

it('drops and counts what is damaged', async () => {
  const good = [process(7, '/gpu:0/stream:12 Compute'), op(7, ORIGIN_US, 3, 'MatMul')];
  const timeline = await readText(
    `{"traceEvents": [${good.map((event) => JSON.stringify(event)).join(',')}, {"dur": NaN}, ` +
      `${JSON.stringify(op(7, 'soon', 3, 'MatMul'))}, {"ph": "X", "pid": 7, "ts`,
  );
  expect(timeline.work.count).toBe(1);
  expect(timeline.warnings.map(({ code, count }) => [code, count])).toEqual([
    ['malformed-events', 1],
    ['dropped-no-time', 1],
    ['truncated', 1],
  ]);
});

it('refuses a timeline without a GPU', async () => {
  const timeline = read(process(3, '/job:localhost/replica:0/task:0/cpu:0 Compute'));
  await expect(timeline).rejects.toMatchObject({
    code: 'invalid_argument',
    message: expect.stringMatching(/no stream of a GPU.*FULL_TRACE/),
  });
});
