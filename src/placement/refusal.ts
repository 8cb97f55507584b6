/** A "no" in words: why, how many, and the way out. */
import { assertDefined } from '#base/assert';
import { windowBytes } from './bar-needs.ts';
import {
  type Demand,
  type DemandReason,
  REASONS,
  type Reason,
  type ReasonCount,
  type Refusal,
} from './demand.ts';
import type { DemandView } from './demand-view.ts';
import type { HostEntry } from './host-entry.ts';
import { nearestName } from './nearest-name.ts';
import { type Shortage, shortageOf } from './shortage.ts';
import { bytesText, listText, nodesText, quoted, timeText, verb } from './words.ts';

/** For a demand that has no plan. */
export function refuse(view: DemandView): Refusal {
  const { demand, host, freeSlots } = view;
  const { gpus } = demand;
  if (host === undefined) {
    const message = `there is no host ${quoted(demand.host)} in the pool`;
    const wayOut = 'start its agent, or name a host that the pool lists';
    return whole(demand, 'unknown-host', gpus, message, wayOut);
  }
  const name = `host ${host.id}`;
  if (!host.reachable) {
    const message = `the agent of ${name} does not report`;
    const wayOut = 'start it, or see what keeps it from the manager';
    return whole(demand, 'host-unreachable', gpus, message, wayOut);
  }
  if (freeSlots < gpus) {
    const all = host.slots.length;
    const there = all === 0 ? 'no virtual slots' : `${freeSlots} of its ${all} virtual slots free`;
    const message = `${nodesText(gpus)} ${verb(gpus, 'is', 'are')} asked for, ${name} has ${there}`;
    const fewer = freeSlots === 0 ? '' : `ask for at most ${freeSlots}, `;
    const back = all === 0 ? '' : 'give back what it no longer uses, or ';
    const wayOut = `${fewer}${back}reserve more slots when it starts`;
    return whole(demand, 'no-free-slot', gpus - freeSlots, message, wayOut);
  }
  return tooFew(view, host, shortageOf(view, host));
}

function whole(
  demand: Demand,
  reason: DemandReason,
  count: number,
  message: string,
  wayOut: string,
): Refusal {
  return {
    ok: false,
    demand,
    summary: `${message}: ${wayOut}`,
    reasons: [{ reason, count, message }],
  };
}

function tooFew(view: DemandView, host: HostEntry, shortage: Shortage): Refusal {
  const { demand } = view;
  const reasons: ReasonCount[] = [];
  for (const reason of REASONS) {
    const count = shortage.counts[reason];
    if (count === 0) continue;
    reasons.push({ reason, count, message: reasonText(view, host, shortage, reason) });
  }
  const missing = demand.gpus - shortage.together;
  if (missing > 0) {
    const { gpus } = demand;
    const message =
      shortage.usable > shortage.together
        ? `${nodesText(gpus)} ${verb(gpus, 'is', 'are')} asked for, the windows of the free virtual slots of host ${host.id} take ${shortage.together} of the ${shortage.usable} that would do at the same time`
        : `${nodesText(gpus)} ${verb(gpus, 'is', 'are')} asked for, ${shortage.usable} would do`;
    reasons.push({ reason: 'too-few', count: missing, message });
  }
  reasons.sort((a, b) => b.count - a.count);
  return { ok: false, demand, summary: summaryText(view, host, shortage), reasons };
}

function reasonText(view: DemandView, host: HostEntry, shortage: Shortage, reason: Reason): string {
  const { demand } = view;
  const count = shortage.counts[reason];
  const nodes = nodesText(count);
  const free = `${count} free GPU node${count === 1 ? '' : 's'}`;
  const are = verb(count, 'is', 'are');
  switch (reason) {
    case 'gone':
      return `${nodes} ${are} no longer in ${verb(count, 'its', 'their')} slots`;
    case 'unreachable':
      return `${nodes} ${are} in boxes whose agents do not report`;
    case 'quarantined':
      return `${nodes} ${are} quarantined`;
    case 'scrubbing':
      return `${nodes} ${are} being scrubbed`;
    case 'bound':
      return `${nodes} ${are} bound`;
    case 'model':
      return `model ${quoted(demand.model ?? '')} is asked for, ${free} ${are} of other models: ${modelsText(shortage)}`;
    case 'memory':
      return `${bytesText(demand.memoryBytes ?? 0)} of memory each is asked for, ${free} ${verb(count, 'has', 'have')} less: at most ${bytesText(shortage.lessMemoryBytes)}`;
    case 'box-kind':
      return `a box of kind ${demand.boxKind} is asked for, ${free} ${are} in boxes of the other kind`;
    case 'no-path':
      return `${free} ${are} in boxes to which host ${host.id} has no path`;
    case 'path-down':
      return `${free} ${are} in boxes to which every path of host ${host.id} is down`;
    case 'round-trip':
      return `a round trip of at most ${timeText(demand.maxRttNs ?? 0)} is asked for, ${free} ${are} farther from host ${host.id}, ${
        shortage.lowestRttNs < Infinity
          ? `the nearest ${timeText(shortage.lowestRttNs)}`
          : 'or the way was not measured'
      }`;
    case 'window':
      return `${free} ${verb(count, 'fits', 'fit')} no free virtual slot of host ${host.id}: ${windowText(view, shortage)}`;
    case 'fragmented':
      return demand.nvlink
        ? `${nodesText(demand.gpus)} of one NVLink group ${verb(demand.gpus, 'is', 'are')} asked for, the most free in one is ${shortage.mostInOne}`
        : `${nodesText(demand.gpus)} of one box ${verb(demand.gpus, 'is', 'are')} asked for, the most free in one is ${shortage.mostInOne}`;
  }
}

function modelsText(shortage: Shortage): string {
  const names = [...shortage.otherModels].sort(
    ([a, many], [b, others]) => others - many || (a < b ? -1 : 1),
  );
  return listText(names.map(([model, count]) => `${quoted(model)} (${count})`));
}

function largestWindows({ slots }: DemandView): { readonly high: number; readonly low: number } {
  const high = Math.max(0, ...slots.map((slot) => windowBytes(slot.prefetchable)));
  const low = Math.max(0, ...slots.map((slot) => windowBytes(slot.nonPrefetchable)));
  return { high, low };
}

/** Those of a soft host are of its configuration; a VM's come with its guest. */
function hasNoWindows(view: DemandView): boolean {
  const { high, low } = largestWindows(view);
  return high === 0 && low === 0;
}

/** The needs of one that does not fit beside the largest windows there are. */
function windowText(view: DemandView, { misfit }: Shortage): string {
  if (hasNoWindows(view)) return 'they have no windows before the guest of its VM has set them up';
  const needs = assertDefined(misfit, 'a window is in the way of no GPU node').needs;
  const { high, low } = largestWindows(view);
  const sizes = (values: readonly number[]): string =>
    values.length === 0 ? 'nothing' : values.map(bytesText).join(' + ');
  // Large enough, and still none fits.
  const apart = needs.prefetchableBytes <= high && needs.nonPrefetchableBytes <= low;
  return (
    `BARs of ${sizes(needs.prefetchable)} prefetchable and ${sizes(needs.nonPrefetchable)} below ` +
    `4 GiB are needed, the largest windows are ${bytesText(high)} and ${bytesText(low)}` +
    (apart ? ', in different slots or not at a multiple of a BAR' : '')
  );
}

/** As `8 GPU nodes of model "A100" of one box`. */
function demandText(demand: Demand): string {
  const parts = [nodesText(demand.gpus)];
  if (demand.model !== undefined) parts.push(`of model ${quoted(demand.model)}`);
  if (demand.memoryBytes !== undefined) parts.push(`with ${bytesText(demand.memoryBytes)}`);
  if (demand.nvlink) parts.push('of one NVLink group');
  else if (demand.sameBox) parts.push('of one box');
  if (demand.boxKind !== undefined) parts.push(`in a box of kind ${demand.boxKind}`);
  if (demand.maxRttNs !== undefined) parts.push(`within ${timeText(demand.maxRttNs)}`);
  return parts.join(' ');
}

function summaryText(view: DemandView, host: HostEntry, shortage: Shortage): string {
  const { demand, index } = view;
  const asked = `${demandText(demand)} ${verb(demand.gpus, 'is', 'are')} asked for`;
  if (index.nodes === 0) return `${asked}, the pool has no GPU nodes: start a box`;
  const models = [...new Set([...index.classes()].map((one) => one.model))].sort();
  if (demand.model !== undefined && !models.includes(demand.model)) {
    const nearest = nearestName(demand.model, models);
    const wayOut =
      nearest === undefined ? 'ask for one of these' : `did you mean ${quoted(nearest)}?`;
    return `${asked}, the models of this pool are ${listText(models.map(quoted))}: ${wayOut}`;
  }
  const { usable, together, mostInOne } = shortage;
  if (together < usable) {
    return `${asked}, the windows of the free virtual slots of host ${host.id} take ${together} of them: ask for at most ${together}, or reserve larger windows`;
  }
  if ((demand.sameBox || demand.nvlink) && usable > 0) {
    const where = demand.nvlink ? 'NVLink group' : 'box';
    if (mostInOne === 0) {
      return `${asked}, of those free for host ${host.id} none is in a group: leave out nvlink`;
    }
    const several = usable < demand.gpus ? '' : `, or not for one ${where}`;
    return `${asked}, the most that one ${where} has free for host ${host.id} is ${mostInOne}: ask for at most ${mostInOne}${several}`;
  }
  const { counts } = shortage;
  // Of as many, the later: a demand that changes gets those nodes now.
  const main = REASONS.reduce((most, one) => (counts[one] >= counts[most] ? one : most));
  const isVmAway = main === 'window' && hasNoWindows(view);
  const hint = isVmAway
    ? `start its VM: dxpu status --process host-${host.id} says what it waits for`
    : counts[main] === 0
      ? 'add boxes'
      : WAYS_OUT[main];
  const fewer = usable === 0 ? [] : [`ask for at most ${usable}`];
  const wayOut = [...fewer, hint].join(', or ');
  return `${asked}, ${usable} ${verb(usable, 'is', 'are')} free for host ${host.id}: ${wayOut}`;
}

const WAYS_OUT: Readonly<Record<Reason, string>> = {
  gone: 'put GPU nodes back into their boxes',
  unreachable: 'start the agents of the boxes that do not report',
  quarantined: 'see why GPU nodes are quarantined',
  scrubbing: 'ask again when those being scrubbed are done',
  bound: 'wait until others give theirs back',
  model: 'leave the model open',
  memory: 'ask for less memory',
  'box-kind': 'leave the kind of box open',
  'no-path': 'let the host reach more boxes',
  'path-down': 'see why paths are down',
  'round-trip': 'allow a longer round trip',
  window: 'reserve larger windows for its virtual slots',
  fragmented: 'take them from several boxes',
};
