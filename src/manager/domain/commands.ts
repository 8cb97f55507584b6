/** What users ask of the pool, and how it answers. */
import type { DxpuError } from '#base/errors';
import type { Demand, Plan, Refusal } from '#placement/demand';
import type { BindingRecord } from './records.ts';

/** Who asks: `user/alice`. Request ids are the caller's own. */
export interface Caller {
  readonly name: string;
}

export interface BindCommand {
  readonly kind: 'bind';
  readonly requestId: string;
  readonly demand: Demand;
  readonly retries: boolean;
}

export interface UnbindCommand {
  readonly kind: 'unbind';
  readonly requestId: string;
  readonly bindings: readonly string[];
  readonly force: boolean;
}

export interface RetryCommand {
  readonly kind: 'retry';
  readonly requestId: string;
  readonly bindings: readonly string[];
}

export type Command = BindCommand | UnbindCommand | RetryCommand;

/** `repeated`: it was asked before and acted then. A binding that is gone since is left out. */
export type CommandAnswer =
  | { readonly ok: true; readonly bindings: readonly BindingRecord[]; readonly repeated: boolean }
  | { readonly ok: false; readonly refusal: Refusal }
  | { readonly ok: false; readonly error: DxpuError };

export type DryRun = Plan | Refusal;
