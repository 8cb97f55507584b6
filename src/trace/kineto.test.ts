import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { kernel, kinetoEvent, kinetoText } from '#testkit/kineto-text';
import { pieces } from '#testkit/pieces';
import { CALL_KIND } from './call-kind.ts';
import { readKineto } from './kineto.ts';
import { type Timeline, WORK_FLAG, WORK_KIND } from './timeline.ts';

const read = (text: string | Uint8Array, pieceBytes?: number): Promise<Timeline> =>
  readKineto(pieces(text, pieceBytes), { file: 'trace.json' });

const launch = (ts: number | string, correlation: number, dur: number | string = 5): string =>
  kinetoEvent('cuda_runtime', 'cudaLaunchKernel', { ts, dur }, { cbid: 211, correlation });

/** The work as rows that can be compared. */
function workOf(timeline: Timeline): readonly object[] {
  const { work, names, streams } = timeline;
  return Array.from({ length: work.count }, (_, row) => ({
    kind: work.kind[row],
    name: names[work.name[row]!],
    startNs: work.startNs[row],
    durationNs: work.durationNs[row],
    bytes: work.bytes[row],
    flags: work.flags[row],
    call: work.call[row],
    stream: streams[work.stream[row]!],
  }));
}

const codes = (timeline: Timeline): string[] => timeline.warnings.map(({ code }) => code);
const warning = (timeline: Timeline, code: string): string | undefined =>
  timeline.warnings.find((one) => one.code === code)?.message;

async function refusal(text: string | Uint8Array): Promise<DxpuError> {
  const error = await read(text).catch((thrown: unknown) => thrown);
  if (error instanceof DxpuError) return error;
  throw new Error('it was not refused');
}

describe('readKineto', () => {
  it('joins a launch to its kernel', async () => {
    const timeline = await read(kinetoText([launch(100, 9), kernel({ ts: 110, dur: 4.25 }, 9)]));
    expect(timeline.format).toBe('kineto');
    expect(timeline.calls.count).toBe(1);
    expect(timeline.calls.kind[0]).toBe(CALL_KIND.launch);
    expect(timeline.threads).toEqual([{ pid: '1', tid: '1' }]);
    expect(workOf(timeline)).toEqual([
      {
        kind: WORK_KIND.kernel,
        name: 'kernel',
        startNs: 10_000,
        durationNs: 4250,
        bytes: 0,
        flags: 0,
        call: 0,
        stream: { device: 0, stream: '7' },
      },
    ]);
    expect([timeline.spanNs, timeline.submissions, codes(timeline)]).toEqual([14_250, 1, []]);
  });

  it('reads the format of 2020 and 2021', async () => {
    const place = { pid: 0, tid: 'stream 7' };
    const args = { device: 0, stream: 7, correlation: 3, bytes: 64 };
    const timeline = await read(
      kinetoText([
        kinetoEvent('Runtime', 'cudaMemcpyAsync', { ts: 1 }, { correlation: 3 }, { tid: '189' }),
        kinetoEvent('Kernel', 'k', { ts: 2 }, {}, place),
        kinetoEvent('Memcpy', 'Memcpy HtoD (Pinned -> Device)', { ts: 3 }, args, place),
        kinetoEvent('Memset', 'Memset (Device)', { ts: 4 }, args, place),
        kinetoEvent('Operator', 'ProfilerStep#5', { ts: 0, dur: 9 }, {}, { tid: '189' }),
        kinetoEvent('Trace', 'PyTorch Profiler (0)', { ts: 0, dur: 1e6 }, {}),
      ]),
    );
    expect(workOf(timeline)).toMatchObject([
      { kind: WORK_KIND.kernel, stream: { device: 0, stream: '7' } },
      { kind: WORK_KIND.htod, bytes: 64, flags: WORK_FLAG.pinned },
      { kind: WORK_KIND.memset, bytes: 64 },
    ]);
    expect(timeline.threads).toEqual([{ pid: '1', tid: '189' }]);
    expect(timeline.iterations).toMatchObject([{ label: 'ProfilerStep#5' }]);
  });

  it.each([
    ['Memcpy HtoD (Pageable -> Device)', WORK_KIND.htod, WORK_FLAG.pageable],
    ['Memcpy HtoD (Pinned -> Device)', WORK_KIND.htod, WORK_FLAG.pinned],
    ['Memcpy HtoA (Pinned -> Array)', WORK_KIND.htod, WORK_FLAG.pinned],
    ['Memcpy DtoH (Device -> Pageable)', WORK_KIND.dtoh, WORK_FLAG.pageable],
    ['Memcpy AtoH (Array -> Pinned)', WORK_KIND.dtoh, WORK_FLAG.pinned],
    ['Memcpy DtoD (Device -> Device)', WORK_KIND.dtod, 0],
    ['Memcpy AtoA (Array -> Array)', WORK_KIND.dtod, 0],
    ['Memcpy HtoH (Pageable -> Pinned)', WORK_KIND.htoh, WORK_FLAG.pageable | WORK_FLAG.pinned],
    ['Memcpy PtoP (Device -> Device)', WORK_KIND.ptop, 0],
    ['Memcpy HtoD (Host -> Device)', WORK_KIND.htod, 0],
    ['Memcpy Unknown (Unknown -> Unknown)', WORK_KIND.copy, 0],
  ])('takes the kind of a copy from its name: %s', async (name, kind, flags) => {
    const timeline = await read(
      kinetoText([kinetoEvent('gpu_memcpy', name, { ts: 1 }, { bytes: 8 })]),
    );
    expect(workOf(timeline)).toMatchObject([{ kind, flags, bytes: 8 }]);
  });

  it.each([
    ['1', WORK_KIND.htod],
    ['2', WORK_KIND.dtoh],
    ['3', WORK_KIND.dtod],
    ['4', WORK_KIND.dtod],
  ])('corrects copies that ROCm calls DtoD by the kind %s of the call', async (kind, expected) => {
    const call = kinetoEvent(
      'cuda_runtime',
      'hipMemcpyAsync',
      { ts: 1 },
      {
        correlation: 5,
        kind,
        size: '2560',
      },
    );
    const copy = kinetoEvent(
      'gpu_memcpy',
      'Memcpy DtoD (Device -> Device)',
      { ts: 3 },
      {
        correlation: 5,
        kind: 'DtoD',
      },
    );
    for (const events of [
      [call, copy],
      [copy, call],
    ]) {
      expect(workOf(await read(kinetoText(events)))).toMatchObject([
        { kind: expected, bytes: kind === '4' ? 0 : 2560 },
      ]);
    }
  });

  it('leaves copies alone whose own name says where they go', async () => {
    const timeline = await read(
      kinetoText([
        kinetoEvent(
          'cuda_runtime',
          'hipMemcpy',
          { ts: 1 },
          { correlation: 5, kind: '1', bytes: '7' },
        ),
        kinetoEvent(
          'gpu_memcpy',
          'Memcpy DtoH (Device -> Host)',
          { ts: 3 },
          {
            correlation: 5,
            bytes: 9,
          },
        ),
      ]),
    );
    expect(workOf(timeline)).toMatchObject([{ kind: WORK_KIND.dtoh, bytes: 9 }]);
  });

  it('counts the work of a graph launch as one submission', async () => {
    const node = { 'graph node id': 12, device: 0, stream: 7, correlation: 4 };
    const timeline = await read(
      kinetoText([
        kinetoEvent('cuda_runtime', 'cudaGraphLaunch', { ts: 0 }, { correlation: 4 }),
        kinetoEvent('kernel', 'a', { ts: 5 }, node),
        kinetoEvent('kernel', 'b', { ts: 7 }, node),
        kernel({ ts: 9 }, 0),
        kernel({ ts: 11 }, 0),
      ]),
    );
    expect(timeline.submissions).toBe(3);
    expect(workOf(timeline)).toMatchObject([
      { flags: WORK_FLAG.graph, call: 0 },
      { flags: WORK_FLAG.graph, call: 0 },
      { flags: 0, call: -1 },
      { flags: 0, call: -1 },
    ]);
  });

  it('takes what synchronisation records tell', async () => {
    const call = (name: string, ts: number, correlation: number): string =>
      kinetoEvent('cuda_runtime', name, { ts }, { correlation });
    const sync = (kind: string, correlation: number, args: object): string =>
      kinetoEvent(
        'cuda_sync',
        kind,
        { ts: 1 },
        {
          cuda_sync_kind: kind,
          correlation,
          device: 0,
          ...args,
        },
      );
    const timeline = await read(
      kinetoText([
        call('cudaEventRecord', 1, 11),
        call('cudaStreamWaitEvent', 3, 12),
        call('cudaEventSynchronize', 5, 13),
        call('cudaStreamSynchronize', 7, 14),
        call('cudaDeviceSynchronize', 9, 15),
        kernel({ ts: 2 }, 1),
        sync('Stream Wait Event', 12, {
          stream: 24,
          wait_on_stream: 20,
          wait_on_cuda_event_record_corr_id: 11,
        }),
        sync('Event Sync', 13, {
          stream: -1,
          wait_on_stream: 20,
          wait_on_cuda_event_record_corr_id: 11,
        }),
        sync('Stream Sync', 14, { stream: 7 }),
        sync('Context Sync', 15, { stream: -1 }),
      ]),
    );
    const stream = (call_: number): string | undefined =>
      timeline.streams[timeline.calls.stream[call_]!]?.stream;
    expect([1, 2, 3, 4].map(stream)).toEqual(['24', '20', '7', undefined]);
    expect([...timeline.calls.recordCall]).toEqual([-1, 0, 0, -1, -1]);
  });

  it('counts a step once, the host’s before the GPU’s, the longest of several threads', async () => {
    const step = (cat: string, n: number, ts: number, dur: number | string, tid: number): string =>
      kinetoEvent(cat, `ProfilerStep#${n}`, { ts, dur }, {}, { tid });
    const timeline = await read(
      kinetoText([
        kernel({ ts: 0 }),
        step('gpu_user_annotation', 2, 95, 500, 7),
        step('user_annotation', 2, 100, 40, 1),
        step('user_annotation', 2, 101, 39, 2),
        step('user_annotation', 1, 50, 45, 1),
        step('gpu_user_annotation', 3, 200, 20, 7),
        kinetoEvent('user_annotation', 'DataLoader', { ts: 0, dur: 90 }),
      ]),
    );
    expect(timeline.iterations).toEqual([
      { label: 'ProfilerStep#1', startNs: 50_000, endNs: 95_000 },
      { label: 'ProfilerStep#2', startNs: 100_000, endNs: 140_000 },
      { label: 'ProfilerStep#3', startNs: 200_000, endNs: 220_000 },
    ]);
  });

  it('reads what stands beside the events, before or behind them', async () => {
    const fields = {
      deviceProperties: [
        { id: 0, name: 'NVIDIA A100' },
        { id: 1, name: '' },
      ],
      with_stack: 1,
      record_shapes: 1,
      baseTimeNanoseconds: 1_712_000_000_000_000_000,
    };
    const thread = JSON.stringify({
      name: 'thread_name',
      ph: 'M',
      pid: 1,
      tid: 1,
      args: { name: 'python3' },
    });
    const before = kinetoText([thread, launch(500, 1), kernel({ ts: 600 }, 1)], fields);
    const behind = `{"traceEvents": [${launch(500, 1)}, ${thread}, ${kernel({ ts: 600 }, 1)}], ${JSON.stringify(fields).slice(1)}`;
    for (const text of [before, behind]) {
      const timeline = await read(text);
      expect([...timeline.gpus]).toEqual([[0, 'NVIDIA A100']]);
      expect([timeline.recordedStacks, timeline.recordedShapes]).toEqual([true, true]);
      // 500 µs behind the base time, whose digits a double cannot hold.
      expect(timeline.originUnixNs).toBe(1_712_000_000_000_500_000n);
      expect(timeline.threads).toEqual([{ pid: '1', tid: '1', name: 'python3' }]);
    }
  });

  it.each([
    ['python_function events', kinetoEvent('python_function', 'f', { ts: 1 }), [true, false]],
    [
      'a call stack',
      kinetoEvent('cpu_op', 'o', { ts: 1 }, { 'Call stack': 'a.py(1)' }),
      [true, false],
    ],
    ['an empty one', kinetoEvent('cpu_op', 'o', { ts: 1 }, { 'Call stack': '' }), [false, false]],
    [
      'shapes',
      kinetoEvent('cpu_op', 'o', { ts: 1 }, { 'Input Dims': [[], [2, 3]] }),
      [false, true],
    ],
    [
      'empty ones',
      kinetoEvent('Operator', 'o', { ts: 1 }, { 'Input dims': [[], []] }),
      [false, false],
    ],
  ])('tells by %s how the trace was recorded', async (_, event, expected) => {
    const text = kinetoText([kernel({ ts: 5 }), event]).replaceAll('":', '": ');
    const { recordedStacks, recordedShapes } = await read(text);
    expect([recordedStacks, recordedShapes]).toEqual(expected);
  });

  it('keeps nanoseconds of absolute times', async () => {
    // 1.7e15 µs with three decimals: 19 digits, of which a double holds 16.
    const timeline = await read(
      kinetoText([
        launch('1712195512345788.102', 1, '4.001'),
        kernel({ ts: '1712195512345793.007', dur: '0.001' }, 1),
      ]),
    );
    expect(timeline.calls.durationNs[0]).toBe(4001);
    expect(workOf(timeline)).toMatchObject([{ startNs: 4905, durationNs: 1 }]);
    expect(timeline.originUnixNs).toBe(1_712_195_512_345_788_102n);
  });

  it('keeps them where the first event has a time of its own', async () => {
    const odd = kernel({ ts: 0 }, 0, 'odd');
    const timeline = await read(
      kinetoText([
        odd,
        kernel({ ts: '1712195512345788.102' }),
        kernel({ ts: '1712195512345793.007' }),
      ]),
    );
    expect(workOf(timeline)).toMatchObject([{ startNs: 0 }, { startNs: 4905 }]);
    expect(codes(timeline)).toEqual(['dropped-far-away']);
  });

  it('takes legal variants', async () => {
    const huge = '{"ph": "X", "cat": "cpu_op", "name": "h", "args": {"id": 10159970886766084423}}';
    const events = [
      'null',
      '{}',
      huge,
      launch('"100"', 1, '"5"'),
      `{"ph": "X", "cat": "kernel", "name": "twice", "ts": 3, "ts": 110, "dur": 2, "args": {"correlation": 9, "correlation": 1}}`,
      '{"ph": "X", "cat": "kernel", "name": "no args", "pid": "GPU", "ts": 120, "dur": 0}',
      kinetoEvent('cpu_op', 'not needed', { ts: 1, dur: 'NaN' }),
    ];
    const text = kinetoText(events, { traceName: 'a]}.json' });
    for (const variant of [
      text,
      `\uFEFF${text}`,
      `[${events.join(',')}]`,
      `[${events.join(',\n')},\n`,
      JSON.stringify(JSON.parse(text.replace('NaN', '1')), null, 2),
      JSON.stringify(JSON.parse(text.replace('NaN', '1')), null, '\t'),
      JSON.stringify(JSON.parse(text.replace('NaN', '1'))),
    ]) {
      const timeline = await read(variant, 50);
      // One piece of work has no launch.
      expect(codes(timeline)).toEqual(['no-launch']);
      expect(workOf(timeline)).toMatchObject([
        { name: 'twice', startNs: 10_000, durationNs: 2000, call: 0 },
        { name: 'no args', startNs: 20_000, durationNs: 0, call: -1 },
      ]);
    }
  });

  it.each(['NaN', 'Infinity', '-Infinity', '"soon"', 'null'])(
    'drops and counts needed events whose time is %s',
    async (word) => {
      const timeline = await read(
        kinetoText([kernel({ ts: word }), kernel({ ts: 1, dur: word }), kernel({ ts: 2 })]),
      );
      expect(timeline.work.count).toBe(1);
      expect(warning(timeline, 'dropped-no-time')).toMatch(/^2 events/);
    },
  );

  it('drops and counts what would last for years', async () => {
    const timeline = await read(
      kinetoText([kernel({ ts: 1, dur: 1.5e15 }), kernel({ ts: 2 }), kernel({ ts: 1.5e15 })]),
    );
    expect(timeline.spanNs).toBe(1000);
    expect(warning(timeline, 'dropped-far-away')).toMatch(/^2 events/);
  });

  it('drops and counts events that are not JSON, with the first byte', async () => {
    const bad = '{"ph": "X", "cat": "kernel", "name": "{"device": 0}", "ts": 4, "dur": 1}';
    const text = kinetoText([kernel({ ts: 1 }), bad, kernel({ ts: 5 }), bad, kernel({ ts: 9 })]);
    const timeline = await read(text);
    expect(timeline.work.count).toBe(3);
    const at = text.indexOf('device": 0}"');
    expect(warning(timeline, 'damaged')).toMatch(new RegExp(`^2 .* byte ${at} of the JSON\\)$`));
  });

  it('gives kernels beyond 65,536 names one name, and still knows calls', async () => {
    const kernels = Array.from({ length: 66_000 }, (_, n) => kernel({ ts: n }, 0, `k${n}`));
    const call = kinetoEvent('cuda_runtime', 'cudaStreamSynchronize', { ts: 1 });
    const timeline = await read(kinetoText([...kernels, call, kernel({ ts: 70_000 }, 0, 'k9')]));
    // The kernels' names, the one for the others, the call's.
    expect(timeline.names.length).toBe(65_536 + 2);
    expect(timeline.calls.kind[0]).toBe(CALL_KIND.streamSync);
    expect(timeline.names[timeline.work.name[66_000]!]).toBe('k9');
    expect(timeline.names[timeline.work.name[65_999]!]).toBe('(other names)');
  });

  it('keeps names of bad UTF-8', async () => {
    const text = Buffer.from(kinetoText([kernel({ ts: 1 }, 0, 'a#b')]));
    text[text.indexOf('#')] = 0xff;
    expect((await read(text)).names).toEqual(['a\uFFFDb']);
  });

  it('uses what comes before the end of a file that is cut off', async () => {
    const text = kinetoText([launch(1, 1), kernel({ ts: 5 }, 1), kernel({ ts: 9 }, 2)]);
    const start = text.lastIndexOf('{"ph"');
    const timeline = await read(text.slice(0, start + 60));
    expect(timeline.work.count).toBe(1);
    expect(warning(timeline, 'truncated')).toContain(`byte ${start} of the JSON`);
  });

  it('uses what comes before a loss in the source', async () => {
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* pieces(kinetoText([kernel({ ts: 5 }), kernel({ ts: 9 })]).slice(0, -30));
      throw new DxpuError('data_loss', 'the gzip data ends too early, after byte 77');
    }
    const timeline = await readKineto(source(), { file: 'trace.json' });
    expect(timeline.work.count).toBe(1);
    expect(warning(timeline, 'truncated')).toContain('after byte 77');
    async function* nothing(): AsyncGenerator<Uint8Array> {
      yield* pieces('{"traceEv');
      throw new DxpuError('data_loss', 'the gzip data ends too early, after byte 77');
    }
    await expect(readKineto(nothing(), { file: 'trace.json' })).rejects.toMatchObject({
      code: 'data_loss',
      message:
        'trace.json cannot be used: the gzip data ends too early, after byte 77, and no GPU work comes before. Copy or export the file again.',
    });
  });

  // It was taken for a loss, which makes the answer less sure.
  it('warns of what lies behind the gzip data', async () => {
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* pieces(kinetoText([kernel({ ts: 5 })]));
      throw new DxpuError('data_loss', 'junk', { details: { trailing: true, offset: 77 } });
    }
    const { warnings } = await readKineto(source(), { file: 'trace.json' });
    expect(warnings.map(({ code }) => code)).toContain('trailing-bytes');
    expect(warnings.map(({ code }) => code)).not.toContain('truncated');
  });

  it('passes other errors of the source on', async () => {
    async function* source(): AsyncGenerator<Uint8Array> {
      yield* pieces('{"traceEvents": [');
      throw new DxpuError('cancelled', 'enough');
    }
    await expect(readKineto(source(), { file: 'x' })).rejects.toMatchObject({ code: 'cancelled' });
  });

  it('tells how far it is', async () => {
    const text = kinetoText([kernel({ ts: 5 })]);
    const seen: number[] = [];
    await readKineto(pieces(text, 100), { file: 'x', onBytes: (bytes) => seen.push(bytes) });
    expect(seen.at(-1)).toBe(text.length);
    expect(seen[0]).toBe(100);
  });

  it.each([
    ['nothing', '', 'invalid_argument', /is empty/],
    ['another format', 'SQLite format 3', 'invalid_argument', /does not begin with/],
    [
      'other JSON',
      '{"schema": "1.0", "nodes": []}',
      'invalid_argument',
      /without "traceEvents" \(looked for up to byte 30\)/,
    ],
    ['no events', '{"traceEvents": []}', 'failed_precondition', /no GPU work among its 0 events/],
    [
      'a profile of the CPU alone',
      kinetoText([kinetoEvent('cpu_op', 'o', { ts: 1 })]),
      'failed_precondition',
      /activities=\[CPU, CUDA\]/,
    ],
    [
      'calls without work',
      kinetoText([launch(1, 1)]),
      'failed_precondition',
      /1 calls of the GPU's API but no GPU work/,
    ],
    [
      'a beginning',
      '{"traceEvents": [{"ph": "X", "cat": "ker',
      'data_loss',
      /ends too early, at byte 17 /,
    ],
    [
      'damage alone',
      '{"traceEvents": [{"ph": "X" "cat": 1}]}',
      'data_loss',
      /damaged from byte 28 /,
    ],
    [
      'work without times',
      kinetoText([kernel({ ts: 'NaN' })]),
      'failed_precondition',
      /1 events without a usable time were dropped/,
    ],
  ])('refuses %s', async (_, text, code, message) => {
    const error = await refusal(text);
    expect(error.code).toBe(code);
    expect(error.message).toMatch(message);
    expect(error.message).toMatch(/^trace\.json /);
    expect(error.details['file']).toBe('trace.json');
  });
});
