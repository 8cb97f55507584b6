/** A small valid export of Nsight Systems with something of everything, as rows to spoil. */
import { globalTid } from './nsys-file.ts';
import type { NsysCell, NsysTables } from './nsys-file.ts';

const KERNELS = 12;
const PID = 10;

const NAMES = [
  'cudaLaunchKernel_v7000',
  'gemm<float>(int)',
  'cudaStreamSynchronize_v3020',
  'cudaMemcpyAsync_v3020',
  'cudaEventRecord_v3020',
  'cudaGraphLaunch_v10000',
  'step 1',
];

export function nsysSample(): Record<string, Record<string, NsysCell>[]> {
  const call = (start: number, end: number, nameId: number, correlationId: number) => ({
    start,
    end,
    eventClass: 0,
    nameId,
    correlationId,
    globalTid: globalTid(PID, PID + 1),
    returnValue: 0,
  });
  const work = (start: number, end: number, correlationId: number) => ({
    start,
    end,
    deviceId: 0,
    contextId: 1,
    streamId: 7,
    correlationId,
    globalPid: globalTid(PID, 0),
    graphNodeId: null,
  });
  const launches = Array.from({ length: KERNELS }, (_, at) => at);
  const wait = { syncType: 3, eventId: 5, eventSyncId: 1 };
  const tables = {
    StringIds: NAMES.map((value, id) => ({ id, value })),
    CUPTI_ACTIVITY_KIND_RUNTIME: [
      ...launches.map((at) => call(at * 20_000, at * 20_000 + 6000, 0, at + 1)),
      call(300_000, 305_000, 3, 90),
      call(310_000, 320_000, 2, 91),
      call(330_000, 331_000, 4, 92),
      call(340_000, 345_000, 5, 93),
    ],
    CUPTI_ACTIVITY_KIND_KERNEL: launches.map((at) => ({
      ...work(at * 20_000 + 9000, at * 20_000 + 13_500, at + 1),
      demangledName: 1,
      shortName: 1,
    })),
    CUPTI_ACTIVITY_KIND_MEMCPY: [
      { ...work(306_000, 308_000, 90), bytes: 4096, copyKind: 2, srcKind: 2, dstKind: 0 },
    ],
    CUPTI_ACTIVITY_KIND_MEMSET: [{ ...work(309_000, 309_500, 0), bytes: 64 }],
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE: [{ ...work(346_000, 390_000, 93), graphExecId: 4 }],
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: [{ ...work(310_000, 320_000, 91), ...wait }],
    CUPTI_ACTIVITY_KIND_CUDA_EVENT: [{ ...work(330_000, 331_000, 92), ...wait }],
    NVTX_EVENTS: [1, 2].map((step) => ({
      start: step * 100_000,
      end: step * 100_000 + 90_000,
      eventType: 59,
      text: `step ${step}`,
      textId: null,
      globalTid: globalTid(PID, PID + 1),
    })),
    ENUM_CUDA_MEMCPY_OPER: [{ id: 2, name: 'CUDA_MEMCPY_KIND_DTOH' }],
    ENUM_CUDA_MEM_KIND: [{ id: 0, name: 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE' }],
    TARGET_INFO_GPU: [{ id: 0, name: 'GPU X' }],
    TARGET_INFO_CUDA_DEVICE: [{ pid: PID, cudaId: 0, gpuId: 0 }],
    TARGET_INFO_SESSION_START_TIME: [{ utcEpochNs: 1_767_225_600_000_000_000n }],
    ThreadNames: [{ nameId: 6, globalTid: globalTid(PID, PID + 1) }],
    META_DATA_EXPORT: [{ name: 'EXPORT_SCHEMA_VERSION', value: '3.20.2' }],
  } satisfies NsysTables;
  return tables;
}
