import { describe, expect, it } from 'vitest';
import { apiWord, CALL_KIND, callKind, waitsByName } from './call-kind.ts';
import type { CallKind } from './call-kind.ts';

describe('kinds, by the names of the CUDA runtime, the CUDA driver and HIP', () => {
  const cases: readonly (readonly [keyof typeof CALL_KIND, readonly string[]])[] = [
    [
      'launch',
      [
        'cudaLaunchKernel',
        'cudaLaunchKernel_v7000',
        'cudaLaunchKernel_ptsz',
        'cudaLaunchKernelExC_v11060',
        'cudaLaunchCooperativeKernel',
        'cudaLaunchHostFunc',
        'cudaLaunch',
        'cuLaunchKernel',
        'cuLaunchKernelEx',
        'cuLaunchCooperativeKernel',
        'hipLaunchKernel',
        'hipModuleLaunchKernel',
        'hipExtModuleLaunchKernel',
        'hipExtLaunchKernel',
      ],
    ],
    [
      'graphLaunch',
      [
        'cudaGraphLaunch',
        'cudaGraphLaunch_v10000',
        'cuGraphLaunch',
        'hipGraphLaunch',
        'cudaGraphLaunch_ptsz_v10000',
      ],
    ],
    [
      'copyBlocking',
      [
        'cudaMemcpy',
        'cudaMemcpy_v3020',
        'cudaMemcpy2D',
        'cudaMemcpyToSymbol',
        'cuMemcpyHtoD_v2',
        'cuMemcpyDtoH_v2',
        'hipMemcpy',
        'hipMemcpyWithStream',
      ],
    ],
    [
      'copyAsync',
      [
        'cudaMemcpyAsync',
        'cudaMemcpyAsync_v3020',
        'cudaMemcpy2DAsync',
        'cudaMemcpyPeerAsync',
        'cudaMemcpyAsync_ptsz_v7000',
        'cuMemcpyHtoDAsync_v2',
        'hipMemcpyAsync',
        'cudaMemcpyBatchAsync',
      ],
    ],
    ['memset', ['cudaMemset', 'cudaMemsetAsync', 'cuMemsetD8Async', 'hipMemsetAsync']],
    [
      'deviceSync',
      [
        'cudaDeviceSynchronize',
        'cudaDeviceSynchronize_v3020',
        'hipDeviceSynchronize',
        'cudaThreadSynchronize',
      ],
    ],
    ['contextSync', ['cuCtxSynchronize', 'cuCtxSynchronize_v2']],
    ['streamSync', ['cudaStreamSynchronize', 'cuStreamSynchronize', 'hipStreamSynchronize']],
    ['eventSync', ['cudaEventSynchronize', 'cuEventSynchronize', 'hipEventSynchronize']],
    ['streamWait', ['cudaStreamWaitEvent', 'cuStreamWaitEvent', 'hipStreamWaitEvent']],
    ['eventRecord', ['cudaEventRecord', 'cudaEventRecordWithFlags', 'hipEventRecord']],
    ['query', ['cudaEventQuery', 'cudaStreamQuery', 'hipEventQuery']],
    ['memory', ['cudaMalloc', 'cudaFree', 'cuMemAlloc_v2', 'cudaHostAlloc', 'hipHostMalloc']],
    [
      'other',
      [
        'cudaGetDevice',
        'cudaStreamIsCapturing_v10000',
        'cudaEventCreateWithFlags',
        'cudaGraphInstantiate',
        'aten::copy_',
        'cudagraph',
        'currentStreamSynchronize',
        'hipify',
        '',
      ],
    ],
  ];
  it.each(cases)('%s', (kind, names) => {
    for (const name of names) expect([name, callKind(name)]).toEqual([name, CALL_KIND[kind]]);
  });
});

it('takes prefix and suffixes off a name', () => {
  expect(apiWord('cudaMemcpyAsync_ptsz_v7000')).toBe('MemcpyAsync');
  expect(apiWord('cuMemcpyHtoD_v2')).toBe('MemcpyHtoD');
  expect(apiWord('memcpy')).toBeUndefined();
});

it('waits are the four synchronises and blocking copies, not queries', () => {
  const waiting = Object.entries(CALL_KIND)
    .filter(([, kind]) => waitsByName(kind as CallKind))
    .map(([name]) => name);
  expect(waiting).toEqual(['copyBlocking', 'deviceSync', 'contextSync', 'streamSync', 'eventSync']);
});
