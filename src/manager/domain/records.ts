/** What the manager remembers: one plain record a row of the store. Times are wall-clock, in ms. */
import type {
  BoxHello,
  FunctionReport,
  GpuNodeReport,
  HostHello,
  HostSlotReport,
  PathReport,
} from '#proto/agent-messages';

/**
 * The life of a binding. `free` is no state of a record: the record is gone then.
 *
 * - `reserved`: the slot is owned; nobody was told yet.
 * - `programming`: box row first, then host row.
 * - `attaching`: the host shall find the function.
 * - `attached`: final BAR values inside the window were reported.
 * - `draining`: the host's programs shall let go.
 * - `detaching`: host row first, then box row.
 * - `scrubbing`: the box resets and scrubs the device.
 * - `failed`: see `failure`; still owns its slots.
 */
export const BINDING_STATES = [
  'reserved',
  'programming',
  'attaching',
  'attached',
  'draining',
  'detaching',
  'scrubbing',
  'failed',
] as const;
export type BindingState = (typeof BINDING_STATES)[number];

export interface Failure {
  readonly reason: FailureReason;
  /** For people: what happened, and the way out where there is one. */
  readonly message: string;
  readonly during: Exclude<BindingState, 'failed'>;
}

/** `retries`: whether a binding whose goal is to be attached is tried again by itself. */
export const FAILURE_REASONS = {
  'link-down': { retries: true },
  'box-restarted': { retries: true },
  'host-restarted': { retries: true },
  'row-lost': { retries: true },
  'host-unreachable': { retries: true },
  'box-unreachable': { retries: true },
  'programming-timeout': { retries: true },
  'attaching-timeout': { retries: true },
  /** The host's programs did not let go: everything stays as it was until somebody decides. */
  'drain-timeout': { retries: false },
  'detaching-timeout': { retries: true },
  'scrubbing-timeout': { retries: true },
  /** The host could not place the function's BARs, or could not set it up. */
  'no-space': { retries: false },
  'function-unusable': { retries: false },
  'order-refused': { retries: false },
  quarantined: { retries: false },
  /** The GPU node left its box. */
  'node-gone': { retries: false },
} as const satisfies Record<string, { readonly retries: boolean }>;
export type FailureReason = keyof typeof FAILURE_REASONS;

export interface BindingRecord {
  readonly id: string;
  readonly state: BindingState;
  /** What is asked for now: `free` once somebody wants it given back. */
  readonly goal: 'attached' | 'free';
  /** Given back by surprise, and without a host that is not there. */
  readonly force: boolean;
  readonly retries: boolean;
  readonly host: string;
  readonly hostSlot: number;
  readonly box: string;
  readonly boxSlot: number;
  readonly uuid: string;
  readonly model: string;
  readonly path: string;
  /** From the store, never used twice in it; above every one that any proxy has reported. */
  readonly generation: number;
  readonly failure: Failure | undefined;
  /** Times it failed since it was last attached or asked for. */
  readonly attempts: number;
  /** What the host reported when it became attached. */
  readonly attachment: Pick<FunctionReport, 'bdf' | 'bars'> | undefined;
  /** Who asked for it, as `user/alice`, and with which request. */
  readonly requestedBy: string;
  readonly requestId: string;
  readonly createdMs: number;
  readonly changedMs: number;
}

export interface BoxRecord extends Omit<BoxHello, 'kind'> {
  /** When its agent was last there: to ten seconds while it is, exactly once it has gone. */
  readonly seenMs: number;
}

export interface BoxSlotRecord {
  readonly box: string;
  readonly slot: number;
  /** The last GPU node seen in it. */
  readonly node: GpuNodeReport;
  /** Whether it was there at the last report. */
  readonly present: boolean;
  /** Why nobody gets it; '' otherwise. */
  readonly quarantine: string;
}

export interface HostRecord extends Omit<HostHello, 'kind'> {
  /** As of a box. */
  readonly seenMs: number;
}

export interface HostSlotRecord
  extends Pick<HostSlotReport, 'slot' | 'secondaryBus' | 'nonPrefetchable' | 'prefetchable'> {
  readonly host: string;
}

/** Of the path itself; whether it is up is observed, not remembered. */
export interface PathRecord extends Pick<PathReport, 'box' | 'path' | 'rttNs' | 'bitsPerSecond'> {
  readonly host: string;
}

/** A mutation that was acknowledged, so that its repetition acts no second time. */
export interface RequestRecord {
  readonly caller: string;
  readonly requestId: string;
  /** Of everything the caller asked for; a repetition must equal it. */
  readonly fingerprint: string;
  /** The bindings it made or changed, in the order of the answer. */
  readonly bindings: readonly string[];
  readonly atMs: number;
}

/** A binding as an entry of the log has it: with state `free` when it is gone. */
export type LoggedBinding = Omit<BindingRecord, 'state'> & {
  readonly state: BindingState | 'free';
};

/** Who did what: the audit log and what Watch streams. Never changed once written. */
export interface LogRecord {
  /** 1, 2, 3, …, without gaps. */
  readonly position: number;
  readonly atMs: number;
  /** As `user/alice`, `host/h1`, `manager`. */
  readonly actor: string;
  readonly requestId: string;
  readonly subjectKind: 'binding' | 'box' | 'host' | 'gpu' | 'pool';
  readonly subject: string;
  readonly action: string;
  readonly message: string;
  /** As it is after this entry. */
  readonly binding: LoggedBinding | undefined;
}
