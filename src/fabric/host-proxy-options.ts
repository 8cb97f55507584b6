/** What a host proxy is made with, and what it tells. */
import type { Nanos } from '#base/units';
import type { AdvancedErrorReporting } from '#pcie/aer';
import type { RootSide } from '#pcie/root-port';
import type { ContainmentFaults } from './containment.ts';
import type { RefusalName } from './counters.ts';

export type HostProxyEvent =
  | { readonly kind: 'slot-up'; readonly virtualSlot: number; readonly generation: number }
  | {
      readonly kind: 'slot-down';
      readonly virtualSlot: number;
      readonly generation: number;
      readonly surprise: boolean;
      readonly reason: string;
    }
  | {
      /** The first refusal of a reason for a generation; later ones are only counted. */
      readonly kind: 'refused';
      readonly virtualSlot: number;
      readonly reason: RefusalName;
      readonly message: string;
    };

/** Test only: each leaves one check out. Never set outside tests. */
export interface HostProxyFaults extends ContainmentFaults {
  /** Looks a slot up whoever sent. */
  readonly noPeerFence?: boolean;
  readonly noGenerationFence?: boolean;
  readonly noCompletionCheck?: boolean;
  /** Memory taken back stays reachable. */
  readonly noMemoryBarrier?: boolean;
  /** Outstanding requests are forgotten at session down. */
  readonly noAbort?: boolean;
  /** A slot comes up again without a new generation. */
  readonly noContainment?: boolean;
}

export interface HostProxyOptions {
  readonly hostId: string;
  readonly rootSide: RootSide;
  /** Largest completion payload the root port makes. A power of two from 128 to 4096; default 512. */
  readonly maxPayloadBytes?: number;
  /** Read completion boundary; default 64. */
  readonly rcbBytes?: 64 | 128;
  /** Who completes, as completions name it; default 0, the root complex itself. */
  readonly completerBdf?: number;
  /**
   * The function of a new row stays out of its slot until `plug`, and a row that goes while it is in
   * counts as a surprise. Default false: it is in while its row is ready.
   */
  readonly holdsFunctions?: boolean;
  /**
   * Each virtual slot has memory of its own, as behind an IOMMU: `registerSlotMemory` in place of
   * `registerMemory`. Default false: what is registered is open to the functions of all slots.
   */
  readonly ownMemory?: boolean;
  /** The AER capability of a virtual slot's port. Without it the proxy keeps one of its own. */
  readonly aer?: (virtualSlot: number) => AdvancedErrorReporting | undefined;
  readonly onEvent?: (now: Nanos, event: HostProxyEvent) => void;
  readonly faults?: HostProxyFaults;
}
