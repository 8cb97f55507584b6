/** The pool in numbers, as text. */
import type { GetStatusResponse } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { timeOf } from './pool-plain.ts';

export function poolSummary(status: GetStatusResponse, address: string): string {
  const { boxes, boxesConnected, hosts, hostsConnected, gpus, gpusFree } = status;
  const { bindings, bindingsAttached, bindingsFailed } = status;
  const moving = bindings - bindingsAttached - bindingsFailed;
  return [
    `pool: manager at ${address}, version ${status.version}, since ${timeOf(status.started)}`,
    `  boxes      ${of(boxesConnected, boxes)} connected`,
    `  hosts      ${of(hostsConnected, hosts)} connected`,
    `  GPU nodes  ${of(gpusFree, gpus)} free`,
    `  bindings   ${of(bindingsAttached, bindings)} attached` +
      (moving === 0 ? '' : `, ${moving} on the way`) +
      (bindingsFailed === 0
        ? ''
        : `, ${bindingsFailed} failed: dxpu get bindings --binding-state failed`),
    `  log        at position ${status.position}`,
  ].join('\n');
}

const of = (part: number, whole: number): string => `${part} of ${whole}`;
