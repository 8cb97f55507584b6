import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { globalTid, writeNsysFile } from '#testkit/nsys-file';
import type { NsysTables } from '#testkit/nsys-file';
import { CALL_KIND } from './call-kind.ts';
import { readNsys } from './nsys.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { Timeline } from './timeline.ts';

let folder = '';
let files = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'dxpu-nsys-'));
});
afterAll(() => rm(folder, { recursive: true }));

function fileOf(tables: NsysTables): string {
  files += 1;
  const path = join(folder, `${files}.sqlite`);
  writeNsysFile(path, tables);
  return path;
}
const read = (tables: NsysTables): Promise<Timeline> => readNsys(fileOf(tables));
const codes = (timeline: Timeline) => timeline.warnings.map(({ code, count }) => [code, count]);

const NAMES = [
  'cudaLaunchKernel_v7000',
  'saxpy(float*)',
  'cudaStreamSynchronize_v3020',
  'cudaEventRecord_v3020',
  'cudaEventSynchronize_v3020',
  'cudaStreamWaitEvent_v3020',
  'cudaGraphLaunch_v10000',
  'main thread',
];
const StringIds = NAMES.map((value, id) => ({ id, value }));
const RUNTIME = 'CUPTI_ACTIVITY_KIND_RUNTIME';
const KERNEL = 'CUPTI_ACTIVITY_KIND_KERNEL';
const MEMCPY = 'CUPTI_ACTIVITY_KIND_MEMCPY';

const call = (start: number, end: number, nameId: number, correlationId = 0, pid = 10) => ({
  start,
  end,
  nameId,
  correlationId,
  globalTid: globalTid(pid, pid + 1),
});
const kernel = (start: number, end: number, correlationId: number, pid = 10) => ({
  start,
  end,
  deviceId: 0,
  contextId: 1,
  streamId: 7,
  correlationId,
  globalPid: globalTid(pid, 0),
  demangledName: 1,
});

describe('calls and kernels', () => {
  it('are joined by correlation; names, threads, streams and GPUs have theirs', async () => {
    const timeline = await read({
      StringIds,
      [RUNTIME]: [call(1000, 1008, 0, 5), call(1010, 1040, 2, 6)],
      [KERNEL]: [kernel(1020, 1035, 5)],
      TARGET_INFO_GPU: [{ id: 0, name: 'Test GPU' }],
      ThreadNames: [{ nameId: 7, globalTid: globalTid(10, 11) }],
      TARGET_INFO_SESSION_START_TIME: [{ utcEpochNs: 1_700_000_000_000_000_000n }],
    });
    const { calls, work, names } = timeline;
    expect([...calls.startNs]).toEqual([0, 10]);
    expect([...calls.durationNs]).toEqual([8, 30]);
    expect([...calls.kind]).toEqual([CALL_KIND.launch, CALL_KIND.streamSync]);
    expect([...work.startNs, ...work.durationNs]).toEqual([20, 15]);
    expect([...work.call]).toEqual([0]);
    expect(names[work.name[0]!]).toBe('saxpy(float*)');
    expect(timeline.threads).toEqual([{ pid: '10', tid: '11', name: 'main thread' }]);
    expect(timeline.streams).toEqual([{ device: 0, stream: '7' }]);
    expect([...timeline.gpus]).toEqual([[0, 'Test GPU']]);
    expect(timeline.originUnixNs).toBe(1_700_000_000_000_001_000n);
    expect([timeline.spanNs, timeline.warnings]).toEqual([40, []]);
  });

  it('keep nanoseconds where times count from 1970, beyond 2^53', async () => {
    const origin = 1_754_324_972_242_076_701n;
    const timeline = await read({
      StringIds,
      [KERNEL]: [
        { ...kernel(0, 0, 1), start: origin, end: origin + 3n },
        { ...kernel(0, 0, 2), start: origin + 5n, end: origin + 6n },
      ],
    });
    expect([...timeline.work.startNs]).toEqual([0, 5]);
    expect([...timeline.work.durationNs]).toEqual([3, 1]);
    expect(timeline.originUnixNs).toBe(origin);
  });

  it('of two processes with equal correlation ids do not mix, nor do their streams', async () => {
    const timeline = await read({
      StringIds,
      [RUNTIME]: [call(0, 5, 0, 5, 10), call(1, 6, 0, 5, 20)],
      [KERNEL]: [kernel(10, 20, 5, 20), kernel(12, 22, 5, 10)],
      TARGET_INFO_CUDA_DEVICE: [
        { pid: 10, cudaId: 0, gpuId: 3 },
        { pid: 20, cudaId: 0, gpuId: 3 },
      ],
    });
    const { calls, work, threads } = timeline;
    const pids = [...work.call].map((row) => threads[calls.thread[row]!]!.pid);
    const streams = [...work.stream].map((row) => timeline.streams[row]!);
    expect(pids.toSorted()).toEqual(['10', '20']);
    expect(streams.map(({ device }) => device)).toEqual([3, 3]);
    expect(new Set(streams.map(({ stream }) => stream))).toEqual(new Set(['7', '7 (process 20)']));
    expect(timeline.submissions).toBe(2);
    expect(timeline.warnings).toEqual([]);
  });

  it('exported twice, with and without the suffix, count once', async () => {
    const timeline = await read({
      StringIds: [
        { id: 0, value: 'cudaMemcpy' },
        { id: 1, value: 'cudaMemcpy_v3020' },
      ],
      [RUNTIME]: [
        { ...call(100, 200, 0, 8), eventClass: 67 },
        { ...call(101, 199, 1, 8), eventClass: 0 },
      ],
    });
    expect([...timeline.calls.kind]).toEqual([CALL_KIND.copyBlocking]);
    expect([...timeline.calls.durationNs]).toEqual([100]);
  });

  it('of a graph recorded node by node are one submission', async () => {
    const timeline = await read({
      StringIds,
      [RUNTIME]: [call(0, 10, 6, 5)],
      [KERNEL]: [
        { ...kernel(20, 25, 5), graphNodeId: 71 },
        { ...kernel(25, 30, 5), graphNodeId: 72 },
      ],
    });
    expect([...timeline.work.flags]).toEqual([WORK_FLAG.graph, WORK_FLAG.graph]);
    expect([timeline.submissions, timeline.calls.kind[0]]).toEqual([1, CALL_KIND.graphLaunch]);
  });

  it('a graph recorded as a whole is one piece of work, with a warning', async () => {
    const timeline = await read({
      StringIds,
      [RUNTIME]: [call(0, 10, 6, 5)],
      CUPTI_ACTIVITY_KIND_GRAPH_TRACE: [{ ...kernel(20, 95, 5), graphExecId: 4, graphId: 2 }],
    });
    expect([...timeline.work.kind]).toEqual([WORK_KIND.graph]);
    expect(timeline.names[timeline.work.name[0]!]).toBe('graph 4');
    expect([timeline.work.call[0], timeline.submissions]).toEqual([0, 1]);
    expect(codes(timeline)).toEqual([['graphs-as-a-whole', 1]]);
  });
});

describe('copies and memsets', () => {
  const copy = (copyKind: number, srcKind: number | null, dstKind: number | null) => ({
    ...kernel(0, 10, 0),
    bytes: 4096,
    copyKind,
    srcKind,
    dstKind,
    srcDeviceId: null as number | null,
    dstDeviceId: null as number | null,
  });
  const { pageable, pinned } = WORK_FLAG;

  it('have kind, bytes and the memory of the host side by the numbers of CUPTI', async () => {
    const { work } = await read({
      [MEMCPY]: [
        copy(1, 0, 2),
        copy(1, 1, 2),
        copy(2, 2, 0),
        copy(2, 2, 1),
        copy(8, 2, 2),
        copy(9, 0, 0),
        copy(10, 2, 2),
        copy(99, 2, 2),
      ],
    });
    const { htod, dtoh, dtod, htoh, ptop } = WORK_KIND;
    const unknown = WORK_KIND.copy;
    expect([...work.kind]).toEqual([htod, htod, dtoh, dtoh, dtod, htoh, ptop, unknown]);
    expect([...work.flags]).toEqual([pageable, pinned, pageable, pinned, 0, 0, 0, 0]);
    expect(work.bytes.every((bytes) => bytes === 4096)).toBe(true);
  });

  it("follow the export's own tables of kinds where it has them", async () => {
    const { work } = await read({
      [MEMCPY]: [copy(41, 50, 2), copy(1, 0, 2)],
      ENUM_CUDA_MEMCPY_OPER: [
        { id: 41, name: 'CUDA_MEMCPY_KIND_HTOD' },
        { id: 1, name: 'CUDA_MEMCPY_KIND_DTOD' },
      ],
      ENUM_CUDA_MEM_KIND: [{ id: 50, name: 'CUDA_MEMOPR_MEMORY_KIND_PINNED' }],
    });
    expect([...work.kind]).toEqual([WORK_KIND.htod, WORK_KIND.dtod]);
    expect(work.flags[0]).toBe(pinned);
  });

  it('between two devices are peer copies; of managed memory are counted', async () => {
    const timeline = await read({
      [MEMCPY]: [{ ...copy(8, 2, 2), srcDeviceId: 0, dstDeviceId: 1 }, copy(11, 4, 4)],
      CUDA_UM_GPU_PAGE_FAULT_EVENTS: [{ start: 1 }, { start: 2 }],
    });
    expect([...timeline.work.kind]).toEqual([WORK_KIND.ptop, WORK_KIND.htod]);
    expect(codes(timeline)).toEqual([
      ['managed-memory', 1],
      ['page-faults', 2],
    ]);
  });

  it('memsets have their bytes', async () => {
    const { work } = await read({
      CUPTI_ACTIVITY_KIND_MEMSET: [{ ...kernel(0, 5, 0), bytes: 64 }],
    });
    expect([work.kind[0], work.bytes[0]]).toEqual([WORK_KIND.memset, 64]);
  });
});

describe('waits', () => {
  const NONE = 0xffff_ffff;
  const sync = (correlationId: number, streamId: number, eventId: number, eventSyncId = NONE) => ({
    deviceId: 0,
    contextId: 1,
    streamId,
    correlationId,
    globalPid: globalTid(10, 0),
    syncType: 2,
    eventId,
    eventSyncId,
  });
  const calls = [
    call(0, 5, 3, 1),
    call(10, 15, 3, 2),
    call(20, 25, 4, 3),
    call(30, 35, 2, 4),
    call(40, 45, 5, 5),
    call(50, 55, 3, 6),
  ];

  it('know the stream, and the last record of their event before them', async () => {
    const timeline = await read({
      StringIds,
      [RUNTIME]: calls,
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: [sync(3, NONE, 90), sync(4, 7, NONE), sync(5, 8, 90)],
      CUPTI_ACTIVITY_KIND_CUDA_EVENT: [sync(6, 7, 90), sync(2, 7, 90), sync(1, 9, 90)],
    });
    const names = [...timeline.calls.stream].map((row) => timeline.streams[row]?.stream);
    // Of the record too, as something waits for it.
    expect(names).toEqual([undefined, '7', '7', '7', '8', undefined]);
    expect([...timeline.calls.recordCall]).toEqual([-1, -1, 1, -1, 1, -1]);
  });

  it('follow the sync id where the export tells it', async () => {
    const { calls: read_ } = await read({
      StringIds,
      [RUNTIME]: calls,
      CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: [sync(3, NONE, 90, 1)],
      CUPTI_ACTIVITY_KIND_CUDA_EVENT: [sync(1, 7, 90, 1), sync(2, 7, 90, 2)],
    });
    expect(read_.recordCall[2]).toBe(0);
  });
});

it('ranges named like iterations are iterations', async () => {
  const range = (start: number, end: number | null, text: string | null, eventType = 59) => ({
    start,
    end,
    eventType,
    text,
    textId: text === null ? 100 : null,
    globalTid: globalTid(10, 11),
  });
  const timeline = await read({
    StringIds: [...StringIds, { id: 100, value: 'step 3' }],
    [KERNEL]: [kernel(0, 10, 0), kernel(390, 400, 0)],
    NVTX_EVENTS: [
      range(0, 100, 'step 1'),
      range(100, 200, 'step 2'),
      range(200, 300, null),
      range(0, 400, 'forward'),
      range(310, null, 'step 4'),
      range(320, 330, 'step 5', 75),
    ],
  });
  expect(timeline.iterations).toEqual([
    { label: 'step 1', startNs: 0, endNs: 100 },
    { label: 'step 2', startNs: 100, endNs: 200 },
    { label: 'step 3', startNs: 200, endNs: 300 },
  ]);
});

describe('damage', () => {
  const many = Array.from({ length: 2000 }, (_, row) => kernel(row * 10, row * 10 + 5, row + 1));

  it('rows with NULL, text or absurd values are dropped or counted', async () => {
    const timeline = await read({
      StringIds: [{ id: 1, value: Uint8Array.of(1) }],
      [KERNEL]: [
        kernel(0, 5, 1),
        { ...kernel(10, 15, 2), end: null },
        { ...kernel(20, 25, 3), start: 'soon' },
        { ...kernel(30, 25, 4) },
        { ...kernel(40, 45, 5), start: -(2n ** 62n), end: 1 - 2 ** 40 },
        { ...kernel(50, 55, 6), correlationId: 'x', streamId: null, deviceId: 'y' },
      ],
    });
    expect(timeline.work.count).toBe(2);
    expect(timeline.spanNs).toBe(55);
    expect(Object.fromEntries(codes(timeline))).toEqual({
      'no-name': 1,
      'dropped-no-time': 2,
      'dropped-negative-duration': 1,
      'dropped-far-away': 1,
      'no-correlation': 1,
    });
  });

  it('a file that is cut short is refused with the byte', async () => {
    const path = fileOf({ StringIds, [KERNEL]: many });
    truncateSync(path, 40_960);
    await expect(readNsys(path)).rejects.toMatchObject({
      code: 'data_loss',
      message: expect.stringMatching(/cut short at byte 40960.*nsys export/),
    });
    truncateSync(path, 60);
    await expect(readNsys(path)).rejects.toMatchObject({ code: 'data_loss' });
  });

  it('a page of rubbish is refused with table and row', async () => {
    const path = fileOf({ StringIds, [KERNEL]: many });
    const bytes = readFileSync(path);
    bytes.fill(0xa5, bytes.length - 3 * 4096, bytes.length - 4096);
    writeFileSync(path, bytes);
    await expect(readNsys(path)).rejects.toMatchObject({
      code: 'data_loss',
      message: expect.stringMatching(/damaged.*row \d+ of the table CUPTI_ACTIVITY_KIND_KERNEL/),
    });
  });

  it.each([
    ["nvprof's own database", { CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: [{ a: 1 }] }, /nvprof/],
    ['a database of rocprofiler', { rocpd_kernel: [{ a: 1 }] }, /rocprofiler/],
    ['an export without CUDA', { StringIds, META_DATA_EXPORT: [{ a: 1 }] }, /--trace=cuda/],
    ['any other database', { users: [{ a: 1 }] }, /none of Nsight Systems/],
  ])('%s is refused', async (_, tables, message) => {
    await expect(read(tables)).rejects.toMatchObject({
      code: 'invalid_argument',
      message: expect.stringMatching(message),
    });
  });

  it('reading ends when it is cancelled', async () => {
    const rows = Array.from({ length: 25_000 }, (_, row) => kernel(row, row + 1, 0));
    const stop = new AbortController();
    const shares: number[] = [];
    const reading = readNsys(fileOf({ [KERNEL]: rows }), {
      signal: stop.signal,
      onProgress: (share) => {
        shares.push(share);
        stop.abort();
      },
    });
    await expect(reading).rejects.toMatchObject({ code: 'cancelled' });
    expect(shares).toEqual([0.8]);
  });
});
