/** What people read about a binding that failed: what happened, and the way out where there is one. */
import type { Observation } from './observation.ts';
import type { BindingRecord, FailureReason } from './records.ts';

export function failureText(
  binding: BindingRecord,
  reason: FailureReason,
  seen: Observation,
): string {
  const box = `box ${binding.box}`;
  const host = `host ${binding.host}`;
  const boxSlot = `slot ${binding.boxSlot} of ${box}`;
  const hostSlot = `slot ${binding.hostSlot} of ${host}`;
  switch (reason) {
    case 'link-down':
      return `the link between ${host} and ${box} has ended: ${seen.host.reason || seen.box.reason || 'no reason given'}`;
    case 'box-restarted':
      return `the box proxy of ${box} was started anew: what it held is gone`;
    case 'host-restarted':
      return `the host proxy of ${host} was started anew: what it held is gone`;
    case 'row-lost':
      return seen.superseded
        ? `the store is older than what proxies hold, so generation ${binding.generation} may have been used before`
        : `${seen.box.row === 'own' || seen.box.row === 'unknown' ? hostSlot : boxSlot} does not hold generation ${binding.generation} any more`;
    case 'host-unreachable':
      return `the agent of ${host} is not connected: start it with 'dxpu host'`;
    case 'box-unreachable':
      return `the agent of ${box} is not connected: start it with 'dxpu box'`;
    case 'programming-timeout':
      return seen.box.row === 'own' && seen.box.confirmed
        ? `${host} did not take its mapping table row in time`
        : `${boxSlot} did not take its mapping table row in time`;
    case 'attaching-timeout':
      return `${host} did not set up the function in ${hostSlot} in time: ${stage(seen)}`;
    case 'drain-timeout':
      return `programs of ${host} still hold the function: end them and unbind again, or unbind with force`;
    case 'detaching-timeout':
      return `${seen.host.released ? boxSlot : hostSlot} did not give up its mapping table row in time`;
    case 'scrubbing-timeout':
      return `${boxSlot} was not reset and scrubbed in time`;
    case 'no-space':
      return `${host} found no place for the BARs of ${binding.model} behind ${hostSlot}: ${seen.host.problem?.message ?? ''}; bind another, or give the slot larger windows and retry`;
    case 'function-unusable':
      return `${host} cannot use the function behind ${hostSlot}: ${seen.host.problem?.message ?? ''}; retry when that is mended`;
    case 'order-refused':
      return `${seen.box.refused === '' ? host : box} refused the order: ${seen.box.refused || seen.host.refused}; retry when that is mended`;
    case 'quarantined':
      return `${box} has quarantined slot ${binding.boxSlot}: ${seen.box.quarantine}; unbind to let go of it`;
    case 'node-gone':
      return `GPU ${binding.uuid} is not in ${boxSlot} any more: put it back and retry, or unbind`;
  }
}

function stage({ host }: Observation): string {
  if (host.reason !== '') return host.reason;
  if (!host.ready) return 'its link to the box is not ready';
  if (host.function === 'none') return 'it has not found the function';
  return 'its BARs have no final values inside the windows';
}
