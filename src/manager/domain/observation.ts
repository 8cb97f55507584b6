/**
 * What the manager knows of one binding at one moment: all that a step of its life may depend on.
 * Facts that a proxy states count always; that something is in force, or gone, counts only where it was
 * reported at or behind the order that asked for it (`confirmed`).
 */
import type { BindingRecord, Failure } from './records.ts';

/** One end's slot, as reported in the stream that lives now. */
export interface SideObservation {
  /** Its agent is there and has told everything. */
  readonly connected: boolean;
  /** What is wanted of the slot now was ordered, and the agent says that this order is in force. */
  readonly confirmed: boolean;
  /** The row in it: of this binding and generation, another, or none; `unknown` without its agent. */
  readonly row: 'own' | 'other' | 'none' | 'unknown';
  /** The row was reported under this generation before. */
  readonly held: boolean;
  /** Another process than the one that held the row reports for this proxy now. */
  readonly restarted: boolean;
  /** Contained, under this generation. */
  readonly contained: boolean;
  /** Why the order that asked for the row could not be put in force; '' otherwise. */
  readonly refused: string;
  /** Why it is contained; '' otherwise. */
  readonly reason: string;
}

export interface BoxObservation extends SideObservation {
  /** This binding's GPU node is in the slot. A fact, also while the agent is away. */
  readonly nodeThere: boolean;
  /** Any GPU node is in the slot. */
  readonly nodePresent: boolean;
  /** Reset, scrubbed and unused. */
  readonly clean: boolean;
  /** Why nobody gets the slot; '' otherwise. */
  readonly quarantine: string;
}

export interface HostObservation extends SideObservation {
  /** No row of this generation is there any more, and none will come: it was confirmed once. */
  readonly released: boolean;
  readonly ready: boolean;
  /** `final`: its BARs have their places, inside the windows the host reports. */
  readonly function: 'none' | 'incomplete' | 'final';
  readonly problem: { readonly kind: string; readonly message: string } | undefined;
}

export interface Observation {
  readonly goal: BindingRecord['goal'];
  readonly force: boolean;
  /** Of a failed binding: somebody has asked since that it be given back. */
  readonly unbindAsked: boolean;
  /** The time for this step is over; of a failed binding: it has waited long enough. */
  readonly expired: boolean;
  /** Of a failed binding. */
  readonly failure: Failure | undefined;
  /** It shall be attached again: its reason allows it, or somebody has asked. */
  readonly retryAllowed: boolean;
  /** Somebody has asked, so that it need not wait. */
  readonly retryAsked: boolean;
  /** Its generation may have been given out before: the store was restored from an older copy. */
  readonly superseded: boolean;
  readonly box: BoxObservation;
  readonly host: HostObservation;
}

/** It is confirmed that the slot holds no row at all. */
export function isEmptied(side: SideObservation): boolean {
  return side.connected && side.confirmed && side.row === 'none';
}

/** The row that is wanted is confirmed to be in force. */
export function isInForce(side: SideObservation): boolean {
  return side.connected && side.confirmed && side.row === 'own';
}

/**
 * The row was in force, and is not any more. No order is waited for: what was in force once can only
 * be missing because it was lost, for nobody has ordered it away.
 */
export function isLost(side: SideObservation): boolean {
  return side.connected && side.row !== 'own' && (side.held || side.row === 'other');
}

/** One of the two proxies has cut the slot off, under this generation. */
export function isContained({ box, host }: Observation): boolean {
  return box.contained || host.contained;
}

/** No program of the host can use the function any more. */
export function hasNothingToDrain(seen: Observation): boolean {
  const { host } = seen;
  if (isContained(seen)) return true;
  if (!host.connected) return false;
  return host.row !== 'own' || (host.confirmed && host.function === 'none');
}
