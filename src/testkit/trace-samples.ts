/** Small valid traces of every format that is text, with something of everything readers look at. */

const KERNELS = 12;
const ORIGIN_US = 1_767_225_600_000_000;

/** A Kineto trace: launches, nested driver calls, a graph, copies, waits, iterations, metadata. */
export function kinetoSample(): string {
  const events: object[] = [
    { ph: 'M', name: 'process_name', pid: 7, tid: 0, ts: 0, args: { name: 'python3' } },
    { ph: 'M', name: 'thread_name', pid: 7, tid: 8, ts: 0, args: { name: 'thread 8 (python3)' } },
  ];
  const add = (cat: string, name: string, ts: number, dur: number, args: object, gpu = false) => {
    const place = gpu ? { pid: 0, tid: 7 } : { pid: 7, tid: 8 };
    events.push({ ph: 'X', cat, name, ...place, ts: ORIGIN_US + ts, dur, args });
  };
  const kernel = (ts: number, correlation: number, extra: object = {}): void => {
    add(
      'kernel',
      'gemm<float>(int)',
      ts,
      4.5,
      { device: 0, stream: 7, correlation, ...extra },
      true,
    );
  };
  for (let at = 0; at < KERNELS; at += 1) {
    const ts = at * 20;
    if (at % 4 === 0) add('user_annotation', `ProfilerStep#${at / 4}`, ts, 79, {});
    add('cpu_op', 'aten::mm', ts, 12, { 'Input Dims': [[2, 3], []] });
    add('cuda_runtime', 'cudaLaunchKernel', ts + 1, 6, { correlation: at + 1, cbid: 211 });
    add('cuda_driver', 'cuLaunchKernel', ts + 2, 3, { correlation: at + 1 });
    kernel(ts + 9, at + 1);
  }
  add('cuda_runtime', 'cudaGraphLaunch', 300, 5, { correlation: 90 });
  kernel(310, 90, { 'graph node id': 5 });
  kernel(315, 90, { 'graph node id': 6 });
  add('cuda_runtime', 'cudaMemcpyAsync', 330, 5, { correlation: 91 });
  const copy = { device: 0, stream: 7, correlation: 91, bytes: 4096, 'memory bandwidth (GB/s)': 2 };
  add('gpu_memcpy', 'Memcpy DtoH (Device -> Pageable)', 336, 2, copy, true);
  add('cuda_runtime', 'cudaStreamSynchronize', 340, 9, { correlation: 92 });
  add('cuda_sync', 'Stream Sync', 340, 9, {
    cuda_sync_kind: 'Stream Sync',
    stream: 7,
    correlation: 92,
  });
  add('cuda_runtime', 'cudaMemsetAsync', 350, 3, { correlation: 93 });
  add('gpu_memset', 'Memset (Device)', 356, 1, { stream: 7, correlation: 93, bytes: 64 }, true);
  events.push({ ph: 's', id: 1, pid: 7, tid: 8, ts: ORIGIN_US, cat: 'ac2g', name: 'ac2g' });
  return JSON.stringify(
    {
      schemaVersion: 1,
      deviceProperties: [{ id: 0, name: 'GPU X', totalGlobalMem: 85_174_583_296 }],
      distributedInfo: { backend: 'nccl', rank: 0, world_size: 1 },
      traceEvents: events,
      traceName: 'a ] b.json',
    },
    null,
    1,
  );
}

/** nvprof's list of GPU work, of two processes. */
export function nvprofSample(): string {
  const table = (process: number): string[] => [
    `==${process}== NVPROF is profiling process ${process}, command: ./a`,
    `==${process}== Profiling result:`,
    '"Start","Duration","Grid X","Size","SrcMemType","DstMemType","Device","Context","Stream","Name"',
    'ms,us,,KB,,,,,,',
    '1.100000,5.000000,,4.000000,"Pageable","Device","GPU X (0)","1","7","[CUDA memcpy HtoD]"',
    ...Array.from(
      { length: KERNELS },
      (_, at) => `1.${200 + at}000,4.500000,8,,,,"GPU X (0)","1","7","f(int, ""q"") [${at + 1}]"`,
    ),
    '1.900000,5.000000,,4.000000,"Device","Pinned","GPU X (0)","1","8","[CUDA memcpy DtoH]"',
    '2.000000,5.000000,,4.000000,,,"GPU X (0)","2","8","[CUDA memset]"',
  ];
  return `${[...table(17), ...table(18)].join('\n')}\n`;
}

/** A timeline of TensorFlow 1. */
export function tensorflowSample(): string {
  const events: object[] = ['all', '12', '13'].map((stream, pid) => ({
    ph: 'M',
    name: 'process_name',
    pid,
    args: { name: `/gpu:0/stream:${stream} Compute` },
  }));
  for (let at = 0; at < KERNELS; at += 1) {
    for (const pid of [0, 1]) {
      const name = at % 4 === 3 ? 'MEMCPYHtoD' : 'MatMul';
      events.push({ ph: 'X', cat: 'Op', pid, tid: 0, ts: ORIGIN_US + at * 9, dur: 5, name });
    }
  }
  return JSON.stringify({ traceEvents: events }, null, 1);
}
