/** Shared files that are refused, or read in spite of a defect, as data/MANIFEST.md asks for. */
import { describe, expect, it } from 'vitest';
import { readTrace } from '#trace/read-trace';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';
import { countsOf } from './trace-figures.ts';

describe.skipIf(!hasTraces)(`files that are no profiles (${WHERE})`, () => {
  it.each([
    ['execution-trace-linear.json.gz', /execution trace of PyTorch.*export_chrome_trace/],
    ['execution-trace.pt.trace.json', /execution trace of PyTorch.*export_chrome_trace/],
    ['unexported.nsys-rep', /report of Nsight Systems.*nsys export --type sqlite/],
  ])('%s: says what it is and what to do', async (name, message) => {
    const path = tracePath('not-a-profile', name);
    await expect(readTrace(path)).rejects.toMatchObject({
      name: 'DxpuError',
      code: 'invalid_argument',
      message: expect.stringMatching(message),
      details: { file: path },
    });
  });

  it.each(['cpu-only.json.gz', 'rank-missing.json.gz'])('%s: has no GPU work', async (name) => {
    await expect(readTrace(tracePath('kineto', name))).rejects.toMatchObject({
      code: 'failed_precondition',
      message: expect.stringMatching(/no GPU work.*Record/),
    });
  });
});

/** 00-base.json: 4 kernels, 3 of at most 10 µs, and a copy of 2 µs to pageable memory; 12 calls. */
const BASE = { kernels: 4, calls: 12, submissions: 5, spanNs: 372_000, warnings: {} as object };

describe.skipIf(!hasTraces)(`traces with one defect each (${WHERE})`, () => {
  it.each<readonly [string, Partial<typeof BASE>]>([
    ['00-base.json', {}],
    // Cut behind the last of the work.
    ['01-truncated-mid-event.json', { warnings: { truncated: 1 } }],
    // The damaged event is the first launch, 35 µs before the rest.
    [
      '03-control-char.json',
      { calls: 11, spanNs: 337_000, warnings: { damaged: 1, 'no-launch': 1 } },
    ],
    [
      '05-unescaped-quote.json',
      { calls: 11, spanNs: 337_000, warnings: { damaged: 1, 'no-launch': 1 } },
    ],
    ['08-nan-inf.json', { warnings: { 'dropped-no-time': 1 } }],
    [
      '09-negative-dur.json',
      { kernels: 2, submissions: 3, warnings: { 'dropped-negative-duration': 2 } },
    ],
    [
      '10-ts-zero-kernels.json',
      { kernels: 2, submissions: 3, warnings: { 'dropped-far-away': 2 } },
    ],
    ['12-array-top-level.json', {}],
    ['13-array-unclosed.json', {}],
    ['17-no-correlation.json', { warnings: { 'no-launch': 4 } }],
    // Four kernels under one launch, and the copy.
    ['19-graph-one-correlation.json', { submissions: 2 }],
    // The first call begins at …5788.102 µs; the last, at …6152.843, lasts 8.
    ['20-ns-absolute-ts.json', { spanNs: 372_741 }],
    [
      '21-overlapping-same-stream.json',
      { kernels: 3, submissions: 4, warnings: { 'dropped-endless': 1 } },
    ],
    ['26-bom.json', {}],
    ['28-zero-dur-kernels.json', {}],
  ])('%s', async (name, differs) => {
    const timeline = await readTrace(tracePath('defective', name));
    const warnings = Object.fromEntries(timeline.warnings.map(({ code, count }) => [code, count]));
    const { kernels, submissions } = countsOf(timeline);
    const { spanNs } = timeline;
    expect({ kernels, calls: timeline.calls.count, submissions, spanNs, warnings }).toEqual({
      ...BASE,
      ...differs,
    });
  });

  it.each([
    ['14-metadata-only.json', 'failed_precondition', /no GPU work.*byte 10097/],
    ['16-no-traceEvents.json', 'invalid_argument', /"traceEvents".*byte 4653/],
  ])('%s is refused', async (name, code, message) => {
    await expect(readTrace(tracePath('defective', name))).rejects.toMatchObject({
      code,
      message: expect.stringMatching(message),
    });
  });

  it('are all of them', () => {
    expect(traceNames('defective')).toHaveLength(17);
    expect(traceNames('not-a-profile')).toHaveLength(3);
  });
});
