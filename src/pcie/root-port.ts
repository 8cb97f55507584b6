/**
 * Where a host's root complex and the fabric meet. The root complex (the soft host, later a VM)
 * hands requests down to `DownstreamFabric`, which the host proxy implements; what comes up reaches
 * it through `RootSide`. Inbound DMA never appears here: the fabric touches registered memory itself.
 */
import type { Nanos } from '#base/units';
import type { FlowClass, Tlp } from './tlp.ts';

/** Implemented by the root complex. */
export interface RootSide {
  /** A completion for a request given to `request`; exactly one set of completions per request. */
  completion(now: Nanos, tlp: Tlp): void;
  /** The function behind `virtualSlot` wrote its enabled MSI or MSI-X message. */
  interrupt(now: Nanos, virtualSlot: number, address: number, data: number): void;
  /**
   * INTA of the function behind `virtualSlot` is asserted or deasserted: an interrupt by level, for hosts
   * that use no MSI. Deasserted before the function goes, and while the host has Interrupt Disable set.
   */
  interruptPin(now: Nanos, virtualSlot: number, asserted: boolean): void;
  /** Data link layer state of a virtual slot changed: hot-plug, or removal (`surprise` or asked for). */
  linkActive(now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void;
  /** `canRequest` may have become true again. */
  resume(now: Nanos): void;
}

/** Implemented by the host proxy. */
export interface DownstreamFabric {
  /** Whether a request of this class and payload to this virtual slot would be taken now. */
  canRequest(virtualSlot: number, flow: FlowClass, payloadBytes: number): boolean;
  /**
   * Takes one downward request: memory by address, config type 1 by bus number; copied before the
   * call returns. What matches no window is answered UR. When the link is down non-posted requests
   * are answered UR at once (the CPU sees all ones) and posted ones dropped and counted.
   * The answer may come before the call returns.
   */
  request(now: Nanos, tlp: Tlp): void;
  /**
   * Takes a run of memory writes (tlp-run.ts) down: `first`, and up to `count` − 1 more; copied before
   * the call returns. Only after `canRequest` for the first. Returns how many it took; 0 when the first
   * is to be handed to `request`. Calls nothing back.
   */
  requestWrites(now: Nanos, first: Tlp, count: number): number;
  /**
   * Makes `memory` reachable by DMA at `base`. Overlaps are refused with a `DxpuError`.
   * The buffer is shared, not copied.
   */
  registerMemory(base: number, memory: Uint8Array, access: { read: boolean; write: boolean }): void;
  /** Takes a region back. A barrier: once it returned nothing touches that memory. */
  unregisterMemory(base: number): void;
}
