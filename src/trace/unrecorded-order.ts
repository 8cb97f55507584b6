/**
 * Order between streams that no record tells: work that its launch and its own stream would have let
 * start long before, and that starts just when work of another stream of the device has ended, is
 * taken to have waited for that work. Every such edge is inferred.
 */
import { appendTo } from '#base/append-to';
import type { EdgeList } from './edge-list.ts';
import { EDGE } from './edge-list.ts';
import type { Lanes } from './lanes.ts';
import { issuedNs, lastEndedBy, workingStreams } from './lanes.ts';
import type { Timeline } from './timeline.ts';
import { endOfWork } from './timeline.ts';

/** More than a launch takes to reach an idle GPU. */
const LATE_NS = 20_000;
/** A stream goes on within this time of the event it waits for. */
const SOON_NS = 10_000;

export function addUnrecordedOrder(timeline: Timeline, lanes: Lanes, edges: EdgeList): void {
  const { work, streams } = timeline;
  const working = workingStreams(lanes);
  const ofDevice = new Map<number | undefined, number[]>();
  for (const stream of working) {
    appendTo(ofDevice, streams[stream]?.device, stream);
  }
  for (const stream of working) {
    const neighbours = ofDevice.get(streams[stream]?.device) ?? [];
    if (neighbours.length < 2) continue;
    const from = lanes.workFrom[stream] ?? 0;
    const to = lanes.workTo[stream] ?? 0;
    let readyNs = -Infinity;
    for (let row = from; row < to; row += 1) {
      const startNs = work.startNs[row] ?? 0;
      const call = work.call[row] ?? -1;
      const dueNs = call < 0 ? readyNs : Math.max(readyNs, issuedNs(timeline, row));
      readyNs = endOfWork(timeline, row);
      if (startNs - dueNs < LATE_NS) continue;
      let latest = -1;
      for (const other of neighbours) {
        if (other === stream) continue;
        const otherFrom = lanes.workFrom[other] ?? 0;
        const ended = lastEndedBy(timeline, otherFrom, lanes.workTo[other] ?? 0, startNs);
        if (ended < 0 || startNs - endOfWork(timeline, ended) > SOON_NS) continue;
        if (latest < 0 || endOfWork(timeline, ended) > endOfWork(timeline, latest)) latest = ended;
      }
      if (latest >= 0) edges.add(row, latest, EDGE.inferred);
    }
  }
}
