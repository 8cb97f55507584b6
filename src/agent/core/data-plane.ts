/**
 * What an agent needs of the proxy it speaks for. The real ones stand in `../daemon`; tests have models.
 * Nothing here waits: what takes time is begun, and `changed` tells when there is something to see.
 */
import type { BoxSlotReport, Endpoint, HostSlotReport, PathReport } from '#proto/agent-messages';
import type { Nanos } from '#base/units';

export interface BoxDataPlane {
  /** Every slot as it is now. */
  slots(): readonly BoxSlotReport[];
  /**
   * Puts exactly these rows in force, or none of them: the answer then says why ('' otherwise). Slots
   * that lose their row, or get another, are fenced and then reset and scrubbed; so is an unbound slot
   * that is not clean.
   */
  setRows(now: Nanos, rows: readonly BoxRowOrder[]): string;
}

export interface BoxRowOrder {
  readonly slot: number;
  readonly host: string;
  readonly generation: number;
  readonly path: string;
}

export interface HostDataPlane {
  slots(): readonly HostSlotReport[];
  paths(): readonly PathReport[];
  /** As `BoxDataPlane.setRows`. A row that goes while its function is in its slot is a surprise removal. */
  setRows(now: Nanos, rows: readonly HostRowOrder[]): string;
  /** Keeps links to exactly these boxes. */
  setPeers(now: Nanos, peers: readonly HostPeer[]): void;
  /** Lets the function of a row into its slot; the default for a new row is that it stays out. */
  plug(now: Nanos, slot: number): void;
  /**
   * Takes the function out of its slot. Without surprise no new program gets it and it leaves when the
   * last has let go; until then `plug` takes the request back.
   */
  unplug(now: Nanos, slot: number, surprise: boolean): void;
}

export interface HostRowOrder {
  readonly slot: number;
  readonly box: string;
  readonly boxSlot: number;
  readonly generation: number;
  readonly path: string;
}

export interface HostPeer {
  readonly box: string;
  readonly endpoints: readonly Endpoint[];
}
