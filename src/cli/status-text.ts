/** Status and tables as text. */
import type { Window } from '#fabric/mapping-table';
import type { CounterReport, LinkReport } from '#agent/daemon/counter-report';
import type { StreamStatus } from '#agent/daemon/manager-stream';
import { formatTable } from './output.ts';
import { formatDuration, formatSize } from './quantity.ts';
import type { BoxStatus, HostStatus, ProcessStatus, ProxyStatus } from './status-report.ts';

const hex = (value: number): string => `0x${value.toString(16)}`;
const yes = (value: boolean): string => (value ? 'yes' : 'no');
const range = (window: Window): string => `${hex(window.base)}-${hex(window.limit)}`;

export function tableText(status: ProxyStatus): string {
  const table = status.kind === 'host' ? hostTableText(status) : boxTableText(status);
  const manager = status.manager === undefined ? [] : [managerText(status.manager)];
  return [...manager, table, ...reasonLines(status)].join('\n');
}

/** A line for each slot of the table that is not in use: why, and the way out. */
function reasonLines(status: ProxyStatus): string[] {
  const what = status.kind === 'host' ? 'virtual slot' : 'slot';
  return status.slots
    .filter(({ reason }) => reason !== undefined)
    .map(({ slot, state, reason }) => `${what} ${slot} is ${state}: ${reason}`);
}

function hostTableText(status: HostStatus): string {
  return formatTable(
    [
      'vslot',
      'used',
      'bus',
      'non-prefetchable',
      'prefetchable',
      'box',
      'slot',
      'path',
      'generation',
      'state',
    ],
    status.table.map((row) => [
      row.virtualSlot,
      yes(row.used),
      hex(row.secondaryBus),
      range(row.nonPrefetchable),
      range(row.prefetchable),
      row.box,
      row.slot,
      row.path,
      row.generation,
      status.slots.find((slot) => slot.slot === row.virtualSlot)?.state ?? '',
    ]),
  );
}

function boxTableText(status: BoxStatus): string {
  return formatTable(
    ['slot', 'valid', 'used', 'host', 'path', 'generation', 'state'],
    status.table.map((row) => [
      row.slot,
      yes(row.valid),
      yes(row.used),
      row.host,
      row.path,
      row.generation,
      status.slots.find((slot) => slot.slot === row.slot)?.state ?? '',
    ]),
  );
}

/** TLP counts by kind and direction, a row a slot and kind; '' while there was no traffic. */
export function countsText(status: ProxyStatus): string {
  const rows: (string | number)[][] = [];
  for (const { slot, counters } of status.slots) {
    const kinds = new Set([...Object.keys(counters.down), ...Object.keys(counters.up)]);
    // Most slots of a large box may never have been used.
    if (kinds.size === 0) continue;
    for (const kind of [...kinds].sort()) {
      rows.push([slot, kind, counters.down[kind] ?? 0, counters.up[kind] ?? 0]);
    }
    rows.push([slot, 'payload bytes', counters.downPayloadBytes, counters.upPayloadBytes]);
    if (status.kind === 'host') rows.push([slot, 'interrupts', '', counters.interrupts]);
  }
  if (rows.length === 0) return '';
  return formatTable([status.kind === 'host' ? 'vslot' : 'slot', 'kind', 'down', 'up'], rows);
}

export function managerText(manager: StreamStatus): string {
  const { address, connected, since, problem } = manager;
  if (connected) return `manager at ${address}: connected since ${since}`;
  const why = problem === undefined ? '' : `; ${problem}`;
  return `manager at ${address}: not connected since ${since}, rows stay as they are${why}`;
}

export function linkText(link: LinkReport): string {
  const rtt =
    link.rttCount === 0
      ? 'no round trip measured yet'
      : `round trip ${formatDuration(link.rttLastNs)} last, ${formatDuration(link.rttMinNs)} least`;
  const path = link.path === undefined ? '' : ` over path ${link.path}`;
  const problem = link.problem === undefined ? '' : `; ${link.problem}`;
  return `link to ${link.peer}: ${link.state}${path}, ${rtt}${problem}`;
}

/** `log` is the file it writes to, where that is known. */
export function statusText(status: ProcessStatus, log?: string): string {
  const lines = [
    `${status.kind} ${status.id}: pid ${status.pid}, up ${status.uptimeS.toFixed(0)} s, ${status.config}` +
      (status.kind === 'host' ? '' : `, listening on ${status.listen.join(', ')}`),
  ];
  if (log !== undefined) lines.push(`  log in ${log}`);
  if (status.kind === 'manager') return lines.join('\n');
  if (status.manager !== undefined) lines.push(`  ${managerText(status.manager)}`);
  for (const link of status.links) lines.push(`  ${linkText(link)}`);
  const { delayNs, dropProbability, cutForNs } = status.faults;
  if (cutForNs > 0) lines.push(`  fault: cut for ${formatDuration(cutForNs)} more`);
  if (delayNs > 0) lines.push(`  fault: frames sent are delayed by ${formatDuration(delayNs)}`);
  if (dropProbability > 0) {
    lines.push(`  fault: ${(dropProbability * 100).toFixed(2)} % of the frames sent are lost`);
  }
  if (status.kind === 'host') {
    for (const slot of status.slots) {
      const fn = slot.function;
      const bars = fn?.bars
        .map((bar) => `BAR${bar.index} ${formatSize(bar.sizeBytes)} at ${hex(bar.address)}`)
        .join(', ');
      lines.push(
        `  virtual slot ${slot.slot}: ${slot.state}${underGeneration(slot)}` +
          (fn === undefined
            ? ''
            : `, ${fn.bdf} ${fn.vendorId.toString(16)}:${fn.deviceId.toString(16)}, ${bars}`) +
          (slot.problem === undefined ? '' : `, problem: ${slot.problem}`) +
          reasonText(slot),
      );
    }
  } else {
    for (const slot of status.slots) {
      lines.push(
        `  slot ${slot.slot}: ${slot.state}${underGeneration(slot)}, ${slot.kind} ${slot.model}, ` +
          `${formatSize(slot.memoryBytes)}, ${slot.uuid}${reasonText(slot)}`,
      );
    }
  }
  const counts = countsText(status);
  if (counts !== '') lines.push(indent(counts));
  const faults = faultLines(status);
  if (faults.length > 0) lines.push('  refused, dropped or answered with an error:', ...faults);
  return lines.join('\n');
}

function underGeneration({ generation }: { readonly generation: number | undefined }): string {
  return generation === undefined ? '' : ` under generation ${generation}`;
}

function reasonText({ reason }: { readonly reason: string | undefined }): string {
  return reason === undefined ? '' : `\n    ${reason}`;
}

function faultLines(status: ProxyStatus): string[] {
  const lines: string[] = [];
  const add = (where: string, counters: CounterReport): void => {
    for (const [reason, count] of Object.entries(counters.faults)) {
      lines.push(`    ${where}: ${reason} ${count}`);
    }
  };
  for (const { slot, counters } of status.slots) add(`slot ${slot}`, counters);
  add('no slot', status.stray);
  return lines;
}

export function indent(text: string): string {
  return text
    .split('\n')
    .map((line) => (line === '' ? '' : `  ${line}`))
    .join('\n');
}
