/** Demands that cannot be meant. */
import { DxpuError } from '#base/errors';
import { type Demand, MAX_GPUS } from './demand.ts';
import { quoted } from './words.ts';

const ID = /^[A-Za-z0-9._-]{1,64}$/;
const CONTROL = /\p{Cc}/u;
const MAX_MODEL_LENGTH = 128;

/**
 * `undefined` when the demand can be planned; otherwise an `invalid_argument` that names the field,
 * what it holds and what it may hold. An unknown host or model is no error here: `plan` refuses it.
 */
export function checkDemand(demand: Demand): DxpuError | undefined {
  const { gpus, host, model, memoryBytes, boxKind, maxRttNs } = demand;
  if (!Number.isInteger(gpus) || gpus < 1 || gpus > MAX_GPUS) {
    return wrong('gpus', gpus, `ask for a whole number from 1 to ${MAX_GPUS}`);
  }
  if (typeof host !== 'string' || !ID.test(host)) {
    return wrong('host', host, 'a host id is 1 to 64 letters, digits, dots, dashes, underscores');
  }
  if (
    model !== undefined &&
    (typeof model !== 'string' ||
      model.length < 1 ||
      model.length > MAX_MODEL_LENGTH ||
      CONTROL.test(model))
  ) {
    return wrong(
      'model',
      model,
      `a model is 1 to ${MAX_MODEL_LENGTH} characters, none of them a control character; leave it out for any model`,
    );
  }
  if (memoryBytes !== undefined && (!Number.isSafeInteger(memoryBytes) || memoryBytes < 0)) {
    return wrong('memoryBytes', memoryBytes, 'give a whole number of bytes');
  }
  if (boxKind !== undefined && boxKind !== 'pcie' && boxKind !== 'nvswitch') {
    return wrong('boxKind', boxKind, 'a box is of kind pcie or nvswitch; leave it out for any');
  }
  if (maxRttNs !== undefined && !(maxRttNs > 0 && maxRttNs < Infinity)) {
    return wrong('maxRttNs', maxRttNs, 'give a time in nanoseconds above 0');
  }
  return undefined;
}

function wrong(field: keyof Demand, value: unknown, wayOut: string): DxpuError {
  const shown = typeof value === 'string' ? quoted(value) : String(value);
  return new DxpuError('invalid_argument', `${field} of the demand is ${shown}: ${wayOut}`, {
    details: { field },
  });
}
