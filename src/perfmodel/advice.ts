/** What would help: each change measured by running the model again with it, the best first. */
import type { LinkProfile } from '#pcie/link-profile';
import type { Spared } from './changes.ts';
import { asGraphs, withFewerWaits, withPrefetchedCopies } from './changes.ts';
import type { Advice } from './prediction.ts';
import type { TermOptions, Terms } from './terms.ts';
import { termsOf } from './terms.ts';
import type { WorkloadModel } from './workload-model.ts';

/** Points of overhead below which a change is not worth a line. */
const LEAST_SAVING_PCT = 0.01;
const MOST_TAGS = 1024;
const MOST_MRRS_BYTES = 4096;
const COMMON_MRRS_BYTES = 512;

interface Candidate {
  readonly change: string;
  readonly text: string;
  readonly terms: Terms;
  readonly spared?: Spared;
}

/** Changes to a workload depend on it alone; they are worked out once for all links. */
export interface WorkloadChanges {
  readonly graphs: Spared;
  readonly copies: Spared;
  readonly waits: Spared;
}

export function workloadChanges(model: WorkloadModel): WorkloadChanges {
  return {
    graphs: asGraphs(model),
    copies: withPrefetchedCopies(model),
    waits: withFewerWaits(model),
  };
}

export function advise(
  model: WorkloadModel,
  link: LinkProfile,
  options: TermOptions,
  changes: WorkloadChanges,
): Advice[] {
  const terms = termsOf(link, options);
  const before = overheads(model, { change: '', text: '', terms });
  const advice: Advice[] = [];
  for (const candidate of candidates(model, link, options, changes)) {
    const after = overheads(model, candidate);
    const savesPct =
      before.replay !== null && after.replay !== null
        ? before.replay - after.replay
        : (before.additive ?? 0) - (after.additive ?? 0);
    if (savesPct < LEAST_SAVING_PCT) continue;
    advice.push({
      change: candidate.change,
      text: candidate.text,
      additiveOverheadPct: after.additive,
      replayOverheadPct: after.replay,
      savesPct,
    });
  }
  return advice.toSorted((a, b) => b.savesPct - a.savesPct || (a.change < b.change ? -1 : 1));
}

function overheads(
  model: WorkloadModel,
  { terms, spared }: Candidate,
): { readonly additive: number | null; readonly replay: number | null } {
  return {
    additive: model.additiveOverheadPct(terms, spared?.payers),
    replay: model.replayOverheadPct(terms, spared?.change),
  };
}

function candidates(
  model: WorkloadModel,
  link: LinkProfile,
  options: TermOptions,
  changes: WorkloadChanges,
): Candidate[] {
  return [
    ...workloadCandidates(model, termsOf(link, options), changes),
    ...linkCandidates(link, options),
  ];
}

function workloadCandidates(
  model: WorkloadModel,
  terms: Terms,
  { graphs, copies, waits }: WorkloadChanges,
): Candidate[] {
  const list: Candidate[] = [];
  if (graphs.count > 0) {
    list.push({
      change: 'graphs',
      text: `Capture runs of short kernels as CUDA or HIP graphs: ${graphs.count} submissions fewer.`,
      terms,
      spared: graphs,
    });
  }
  if (copies.count > 0) {
    list.push({
      change: 'pinned-copies',
      text: `Copy from and to pinned memory, asynchronously, and prefetch: ${model.payers.htod.length} copies to the GPU leave the critical path.`,
      terms,
      spared: copies,
    });
  }
  if (waits.count > 0) {
    const where =
      model.timeline.iterations.length > 0
        ? 'Wait once an iteration'
        : 'Leave out every second synchronise call';
    list.push({
      change: 'fewer-waits',
      text: `${where}: ${waits.count} host waits fewer.`,
      terms,
      spared: waits,
    });
  }
  return list;
}

function linkCandidates(link: LinkProfile, options: TermOptions): Candidate[] {
  const list: Candidate[] = [];
  const on = (change: string, text: string, to: LinkProfile, opts = options): void => {
    list.push({ change, text, terms: termsOf(to, opts) });
  };
  const tags = Math.min(MOST_TAGS, link.tags * 2);
  if (tags > link.tags) {
    on('more-tags', `Let the device keep ${tags} reads outstanding instead of ${link.tags}.`, {
      ...link,
      tags,
    });
  }
  const mrrsBytes =
    link.mrrsBytes < COMMON_MRRS_BYTES
      ? COMMON_MRRS_BYTES
      : Math.min(MOST_MRRS_BYTES, link.mrrsBytes * 2);
  if (mrrsBytes > link.mrrsBytes) {
    on(
      'larger-reads',
      `Raise the device's read request size (MRRS) from ${link.mrrsBytes} to ${mrrsBytes} bytes.`,
      { ...link, mrrsBytes },
    );
  }
  if (link.addedRttNs > 0) {
    on('nearer-path', `Take a path with half the added round trip: ${us(link.addedRttNs / 2)}.`, {
      ...link,
      addedRttNs: link.addedRttNs / 2,
    });
  }
  const fetches = options.fetches ?? 1;
  if (fetches > 0) {
    on(
      'fetch-ahead',
      `Spare a submission one dependent fetch (${fetches} to ${fetches - 1}), by reading its queue ahead or writing commands to the device.`,
      link,
      { ...options, fetches: fetches - 1 },
    );
  }
  const sharing = options.sharing ?? 1;
  if (sharing > 1) {
    on('path-of-its-own', `Give the GPU a network path of its own instead of 1/${sharing}.`, link, {
      ...options,
      sharing: 1,
    });
  } else if (link.networkGbps !== Infinity) {
    on('faster-network', `Double the rate of the network to ${link.networkGbps * 2} Gb/s.`, {
      ...link,
      networkGbps: link.networkGbps * 2,
    });
  }
  return list;
}

function us(ns: number): string {
  return `${Number((ns / 1000).toFixed(2))} µs`;
}
