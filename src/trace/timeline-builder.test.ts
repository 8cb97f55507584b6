import { describe, expect, it } from 'vitest';
import { checkTimeline } from '#testkit/timeline-check';
import { CALL_KIND } from './call-kind.ts';
import { TimelineBuilder } from './timeline-builder.ts';
import { hostWaits, WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { Timeline } from './timeline.ts';

const { kernel, htod, dtoh } = WORK_KIND;

/** A builder with one thread and one stream, and shorthands on it. */
class Scene {
  readonly builder = new TimelineBuilder('synthetic');
  readonly thread = this.builder.thread('1', '1');
  readonly stream = this.builder.stream(0, '7');

  call(name: string, start: number, duration: number, correlation = 0, thread = this.thread): void {
    this.builder.addCall(thread, this.builder.name(name), start, duration, correlation);
  }

  work(
    kind: (typeof WORK_KIND)[keyof typeof WORK_KIND],
    start: number,
    duration: number,
    correlation = 0,
    { bytes = 0, flags = 0, stream = this.stream } = {},
  ): void {
    const name = this.builder.name(`work ${kind}`);
    this.builder.addWork(stream, kind, name, start, duration, correlation, bytes, flags);
  }

  finish(): Timeline {
    return this.builder.finish();
  }
}

const codes = (timeline: Timeline) => timeline.warnings.map(({ code, count }) => [code, count]);

describe('order and time', () => {
  it('orders by thread or stream, then start; the earliest event is at 0', () => {
    const scene = new Scene();
    const other = scene.builder.thread('1', '2');
    scene.call('cudaGetDevice', 1050, 10);
    scene.call('cudaMalloc', 1040, 5, 0, other);
    scene.call('cudaFree', 1020, 5);
    scene.work(kernel, 1100, 30);
    scene.work(kernel, 1000, 20);
    const { calls, work, spanNs, threads } = scene.finish();
    expect([...calls.startNs]).toEqual([20, 50, 40]);
    expect([...calls.thread]).toEqual([0, 0, 1]);
    expect([...work.startNs]).toEqual([0, 100]);
    expect(spanNs).toBe(130);
    expect(threads).toEqual([
      { pid: '1', tid: '1' },
      { pid: '1', tid: '2' },
    ]);
  });

  it('the absolute time of 0 is that of the earliest event', () => {
    const scene = new Scene();
    scene.builder.originUnixNs = 1_700_000_000_000_000_000n;
    scene.call('cudaFree', 250, 5);
    expect(scene.finish().originUnixNs).toBe(1_700_000_000_000_000_250n);
  });

  it('without events there is nothing, and no NaN', () => {
    const timeline = new Scene().finish();
    expect([
      timeline.calls.count,
      timeline.work.count,
      timeline.spanNs,
      timeline.submissions,
    ]).toEqual([0, 0, 0, 0]);
  });
});

describe('joining', () => {
  it('joins work to the call with its correlation; a call inside another is that call', () => {
    const scene = new Scene();
    scene.call('cudaLaunchKernel', 0, 10, 5);
    scene.call('cuLaunchKernel', 2, 6, 6);
    scene.work(kernel, 20, 5, 6);
    scene.work(kernel, 30, 5, 5);
    const { calls, work, submissions } = scene.finish();
    expect(calls.count).toBe(1);
    expect([...work.call]).toEqual([0, 0]);
    expect(submissions).toBe(1);
  });

  it('the outer call gives the name, the first inner one of known kind the kind if the outer has none', () => {
    const scene = new Scene();
    scene.call('myWrapper', 0, 10);
    scene.call('cudaGetDevice', 1, 1);
    scene.call('cudaLaunchKernel', 3, 3, 5);
    const { calls, names } = scene.finish();
    expect([calls.count, names[calls.name[0]!], calls.kind[0]]).toEqual([
      1,
      'myWrapper',
      CALL_KIND.launch,
    ]);
  });

  it('all work of one launch is one submission, also over streams; without a correlation one each', () => {
    const scene = new Scene();
    const other = scene.builder.stream(0, '8');
    scene.call('cudaGraphLaunch', 0, 10, 5);
    scene.work(kernel, 20, 5, 5);
    scene.work(kernel, 21, 5, 5, { stream: other });
    scene.work(kernel, 40, 5);
    scene.work(kernel, 50, 5);
    // Not in the trace: its work goes together all the same.
    scene.work(kernel, 60, 5, 9);
    scene.work(kernel, 70, 5, 9);
    const { work, submissions } = scene.finish();
    expect(submissions).toBe(4);
    expect([...work.submission]).toEqual([0, 1, 2, 3, 3, 0]);
    expect([...work.call]).toEqual([0, -1, -1, -1, -1, 0]);
  });

  it('a correlation that two calls share goes to the earlier one of the first thread, counted', () => {
    const scene = new Scene();
    scene.call('cudaLaunchKernel', 0, 10, 5);
    scene.call('cudaLaunchKernel', 20, 10, 5);
    scene.work(kernel, 40, 5, 5);
    const timeline = scene.finish();
    expect(timeline.work.call[0]).toBe(0);
    expect(codes(timeline)).toEqual([['duplicate-correlation', 1]]);
  });

  it('a wait knows its stream and the call that recorded its event', () => {
    const scene = new Scene();
    scene.call('cudaEventRecord', 0, 2, 3);
    scene.call('cudaEventSynchronize', 5, 2, 4);
    scene.call('cudaStreamSynchronize', 8, 2, 5);
    scene.builder.addSync({ correlation: 4, stream: -1, recordCorrelation: 3 });
    scene.builder.addSync({ correlation: 5, stream: scene.stream, recordCorrelation: 0 });
    scene.builder.addSync({ correlation: 99, stream: scene.stream, recordCorrelation: 0 });
    const { calls } = scene.finish();
    expect([...calls.recordCall]).toEqual([-1, 0, -1]);
    expect([...calls.stream]).toEqual([-1, -1, scene.stream]);
  });
});

it('work without its launch is counted where there are calls', () => {
  const scene = new Scene();
  scene.call('cudaLaunchKernel', 0, 10, 5);
  scene.work(kernel, 20, 5, 5);
  scene.work(kernel, 30, 5, 6);
  scene.work(kernel, 40, 5);
  expect(codes(scene.finish())).toEqual([['no-launch', 2]]);
  const gpuOnly = new Scene();
  gpuOnly.work(kernel, 20, 5, 5);
  expect(gpuOnly.finish().warnings).toEqual([]);
});

describe('what cannot be true', () => {
  it('is dropped and counted: no time, negative duration, far away', () => {
    const scene = new Scene();
    for (const start of [0, 10, 20]) scene.work(kernel, start, 5);
    scene.work(kernel, Number.NaN, 5);
    scene.work(kernel, 0, Number.POSITIVE_INFINITY);
    scene.call('cudaFree', 0, -1);
    scene.work(kernel, 1.7e18, 5);
    scene.work(kernel, -1.7e18, 5);
    const timeline = scene.finish();
    expect(timeline.work.count).toBe(3);
    expect(timeline.spanNs).toBe(25);
    expect(codes(timeline)).toEqual([
      ['dropped-no-time', 2],
      ['dropped-negative-duration', 1],
      ['dropped-far-away', 2],
    ]);
  });

  it('so is what ends a day after all others', () => {
    const scene = new Scene();
    scene.call('cudaFree', 0, 10);
    scene.call('cudaFree', 20, 1e17);
    scene.work(kernel, 5, 1e17);
    const timeline = scene.finish();
    expect(timeline.spanNs).toBe(10);
    expect(codes(timeline)).toEqual([['dropped-far-away', 2]]);
  });

  it('so is work that outlasts all others while later work of its stream runs', () => {
    const scene = new Scene();
    scene.call('cudaDeviceSynchronize', 0, 200, 9);
    scene.work(kernel, 0, 1000e9, 9);
    scene.work(kernel, 100, 50, 9);
    const timeline = scene.finish();
    expect([...timeline.work.durationNs]).toEqual([50]);
    expect(timeline.spanNs).toBe(200);
    expect(codes(timeline)).toEqual([['dropped-endless', 1]]);
  });

  it('long work is kept: the last of its stream, or where the host waits for it', () => {
    const last = new Scene();
    last.work(kernel, 0, 50);
    last.work(kernel, 100, 1000e9);
    expect(last.finish().spanNs).toBe(1000e9 + 100);
    const awaited = new Scene();
    awaited.work(kernel, 0, 1000e9);
    awaited.work(kernel, 100, 50);
    awaited.call('cudaDeviceSynchronize', 0, 600e9);
    expect(awaited.finish().spanNs).toBe(1000e9);
  });

  it('overlapping calls of a thread are shortened; the span is finite', () => {
    const scene = new Scene();
    scene.call('cudaFree', 0, 10);
    scene.call('cudaMalloc', 5, 10);
    const timeline = scene.finish();
    expect([...timeline.calls.durationNs]).toEqual([5, 10]);
    expect(codes(timeline)).toEqual([['overlapping-calls', 1]]);
  });

  it('bytes and correlations that are no counts become 0', () => {
    const scene = new Scene();
    scene.work(htod, 0, 1, Number.NaN, { bytes: -5 });
    scene.work(htod, 2, 1, 1.5, { bytes: 1e300 });
    const timeline = scene.finish();
    expect([...timeline.work.bytes]).toEqual([0, 0]);
    expect(timeline.submissions).toBe(2);
    expect(codes(timeline)).toEqual([
      ['no-correlation', 2],
      ['no-bytes', 2],
    ]);
  });
});

it('host waits: synchronises, blocking copies, asynchronous DtoH into pageable memory alone', () => {
  const scene = new Scene();
  const { pageable, pinned } = WORK_FLAG;
  scene.call('cudaMemcpyAsync', 0, 5, 1);
  scene.call('cudaMemcpyAsync', 10, 5, 2);
  scene.call('cudaMemcpyAsync', 20, 5, 3);
  scene.call('cudaMemcpy', 30, 5, 4);
  scene.call('cudaStreamSynchronize', 40, 5);
  scene.call('cudaEventQuery', 50, 5);
  scene.call('cudaLaunchKernel', 60, 5, 5);
  scene.work(dtoh, 1, 2, 1, { flags: pageable });
  scene.work(dtoh, 11, 2, 2, { flags: pinned });
  scene.work(htod, 21, 2, 3, { flags: pageable });
  scene.work(htod, 31, 2, 4);
  expect([...hostWaits(scene.finish())]).toEqual([1, 0, 0, 1, 1, 0, 0]);
});

it('iterations are in order of time, against the same 0', () => {
  const scene = new Scene();
  scene.call('cudaFree', 100, 5);
  scene.call('cudaFree', 300, 5);
  scene.builder.addIteration('step 2', 200, 300);
  scene.builder.addIteration('step 1', 100, 200);
  scene.builder.addIteration('step 3', 300, 250);
  const timeline = scene.finish();
  expect(timeline.iterations).toEqual([
    { label: 'step 1', startNs: 0, endNs: 100 },
    { label: 'step 2', startNs: 100, endNs: 200 },
  ]);
  expect(codes(timeline)).toEqual([['dropped-negative-duration', 1]]);
});

describe('checkTimeline, which fuzzing relies on', () => {
  const timeline = (): Timeline => {
    const scene = new Scene();
    scene.call('cudaLaunchKernel', 0, 5, 1);
    scene.call('cudaFree', 10, 5);
    scene.work(kernel, 6, 5, 1);
    return scene.finish();
  };
  it('accepts what the builder makes', () => {
    expect(() => checkTimeline(timeline())).not.toThrow();
  });
  it.each<readonly [string, (spoiled: Timeline) => unknown, RegExp]>([
    ['a NaN', ({ work }) => work.startNs.fill(Number.NaN), /work 0 at NaN/],
    ['a negative duration', ({ work }) => work.durationNs.fill(-1), /-1 ns long/],
    ['an index that points nowhere', ({ work }) => work.call.fill(7), /calls of work: 7/],
    ['calls that overlap', ({ calls }) => calls.durationNs.fill(11, 0, 1), /begins within/],
    ['an event behind the end', ({ work }) => work.durationNs.fill(1e9), /behind the end/],
  ])('refuses %s', (_, spoil, message) => {
    const spoiled = timeline();
    spoil(spoiled);
    expect(() => checkTimeline(spoiled)).toThrow(message);
  });
});
