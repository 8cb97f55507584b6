/** Demands that cannot be meant. */
import type { DxpuError } from '#base/errors';
import type { Demand } from './demand.ts';

/**
 * `undefined` when the demand can be planned; otherwise an `invalid_argument` that names the field,
 * what it holds and what it may hold. An unknown host or model is no error here: `plan` refuses it.
 */
export function checkDemand(_demand: Demand): DxpuError | undefined {
  throw new Error('not yet');
}
