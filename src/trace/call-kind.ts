/**
 * What a host API call does, by its name: the one classifier every estimate reads. Knows the CUDA
 * runtime (`cudaX`), the CUDA driver (`cuX`) and HIP (`hipX`), with the suffixes exports add
 * (`_v2`, `_v11060`, `_ptsz`, `_ptds`, `_spt`).
 */
export const CALL_KIND = {
  /** Anything not below; costs its recorded time and orders nothing but its thread. */
  other: 0,
  /** Submits a kernel, a host function, or another piece of GPU work on its own. */
  launch: 1,
  /** Submits a whole graph. */
  graphLaunch: 2,
  /** Copies and returns when the copy is done, as far as the API promises (no `Async` in its name). */
  copyBlocking: 3,
  copyAsync: 4,
  memset: 5,
  deviceSync: 6,
  contextSync: 7,
  streamSync: 8,
  eventSync: 9,
  /** Makes a stream wait for an event; the host goes on. */
  streamWait: 10,
  eventRecord: 11,
  /** Asks whether an event or a stream is done: not a wait. */
  query: 12,
  /** Allocates or frees: may synchronise, which no trace tells. */
  memory: 13,
} as const;
export type CallKind = (typeof CALL_KIND)[keyof typeof CALL_KIND];

/** The API's own word: `cudaMemcpyAsync_ptsz_v7000` is `MemcpyAsync`. `undefined`: not an API name. */
export function apiWord(name: string): string | undefined {
  const match = /^(?:cuda|cu|hip)(?=[A-Z])(\w+)$/.exec(name);
  return match?.[1]?.replace(/(?:_v\d+|_ptsz|_ptds|_spt)+$/, '');
}

/** The kind of a call; `other` for every name it does not know. Callers cache it by name. */
export function callKind(name: string): CallKind {
  const word = apiWord(name);
  return word === undefined ? CALL_KIND.other : kindOfWord(word);
}

const SYNCHRONIZE: Readonly<Record<string, CallKind>> = {
  DeviceSynchronize: CALL_KIND.deviceSync,
  // The name the runtime had before CUDA 4.
  ThreadSynchronize: CALL_KIND.deviceSync,
  CtxSynchronize: CALL_KIND.contextSync,
  StreamSynchronize: CALL_KIND.streamSync,
  EventSynchronize: CALL_KIND.eventSync,
  StreamWaitEvent: CALL_KIND.streamWait,
  EventRecord: CALL_KIND.eventRecord,
  EventRecordWithFlags: CALL_KIND.eventRecord,
  EventQuery: CALL_KIND.query,
  StreamQuery: CALL_KIND.query,
};

function kindOfWord(word: string): CallKind {
  const exact = SYNCHRONIZE[word];
  if (exact !== undefined) return exact;
  if (word.startsWith('GraphLaunch')) return CALL_KIND.graphLaunch;
  if (/^(?:Ext)?(?:Module)?Launch|^OccupancyLaunch/.test(word)) return CALL_KIND.launch;
  if (word.startsWith('Memcpy')) {
    return word.includes('Async') ? CALL_KIND.copyAsync : CALL_KIND.copyBlocking;
  }
  if (word.startsWith('Memset')) return CALL_KIND.memset;
  if (
    /^(?:Malloc|Free|Mem(?:Alloc|Free)|Host(?:Alloc|Malloc|Free|Register|Unregister))/.test(word)
  ) {
    return CALL_KIND.memory;
  }
  return CALL_KIND.other;
}

/** A call that does nothing but wait: for a device, a context, a stream or an event. */
export function isSynchronise(kind: number): boolean {
  return (
    kind === CALL_KIND.deviceSync ||
    kind === CALL_KIND.contextSync ||
    kind === CALL_KIND.streamSync ||
    kind === CALL_KIND.eventSync
  );
}

/**
 * Whether the host waits in a call of this kind. An asynchronous DtoH copy into pageable memory is a
 * host wait too: that is known only with the copy's work, see `hostWaits` in `timeline.ts`.
 */
export function waitsByName(kind: CallKind): boolean {
  return isSynchronise(kind) || kind === CALL_KIND.copyBlocking;
}
