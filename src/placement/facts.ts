/** What placement knows of the pool. Whoever owns the pool keeps it true. */

export interface BarFacts {
  readonly sizeBytes: number;
  readonly prefetchable: boolean;
  readonly is64: boolean;
}

export interface NodeFacts {
  readonly box: string;
  readonly slot: number;
  readonly uuid: string;
  readonly model: string;
  readonly memoryBytes: number;
  /** '' for none. */
  readonly nvlinkGroup: string;
  readonly bars: readonly BarFacts[];
  /** `free` alone can be planned; the others are reasons. */
  readonly state: 'free' | 'bound' | 'scrubbing' | 'quarantined' | 'gone';
}

export interface BoxFacts {
  readonly id: string;
  readonly kind: 'pcie' | 'nvswitch';
  /** Its agent reports; what does not can be given to nobody. */
  readonly reachable: boolean;
}

export interface WindowFacts {
  readonly base: number;
  readonly limit: number;
}

export interface HostSlotFacts {
  readonly slot: number;
  /** No binding has it and the host reports no row in it. */
  readonly free: boolean;
  readonly nonPrefetchable: WindowFacts;
  readonly prefetchable: WindowFacts;
}

export interface PathFacts {
  readonly box: string;
  readonly path: string;
  readonly up: boolean;
  /** 0 while unmeasured: then it satisfies no round trip limit. */
  readonly rttNs: number;
}

export interface HostFacts {
  readonly id: string;
  readonly reachable: boolean;
  readonly slots: readonly HostSlotFacts[];
  readonly paths: readonly PathFacts[];
}
