/** Errors of the contract in the words of the command line. */
import { DxpuError } from '#base/errors';

const OPTIONS: ReadonlyMap<string, string> = new Map([
  ['demand.gpus', '--gpus'],
  ['demand.host', '--host'],
  ['demand.model', '--model'],
  ['demand.memory_bytes', '--memory'],
  ['demand.box_kind', '--box-kind'],
  ['demand.max_round_trip_ns', '--max-rtt'],
  ['request_id', '--request-id'],
]);

/** Names the option where a complaint begins with the field it became; any other error as it is. */
export function withOptionNames(error: DxpuError): DxpuError {
  const field = /^[a-z_.]+/.exec(error.message)?.[0] ?? '';
  const option = error.code === 'invalid_argument' ? OPTIONS.get(field) : undefined;
  if (option === undefined) return error;
  const message = `${option}${error.message.slice(field.length)}`;
  return new DxpuError(error.code, message, { details: error.details, cause: error });
}
