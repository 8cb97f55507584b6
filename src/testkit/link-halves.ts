/** The two halves of a link by themselves: entries into a proxy as a frame brings them, and frames of an egress. */
import type { Egress } from '#fabric/egress';
import {
  decodeFrame,
  ENTRY_HEADER_BYTES,
  EntryKind,
  Frame,
  FrameDecode,
  FrameType,
  SESSION_HEADER_BYTES,
  writeEntryHeader,
  writeSessionHeader,
} from '#fabric/frame';
import { Ingress } from '#fabric/ingress';
import { LinkCounters } from '#fabric/link-counters';
import { DEFAULT_LINK_OPTIONS } from '#fabric/link-options';
import type { LinkUser } from '#fabric/link-user';
import { FlowClass } from '#pcie/tlp';
import type { FakeLink } from './fake-link.ts';
import { NOW } from './host-proxy-world.ts';

export interface ArrivedEntry {
  readonly slot: number;
  readonly generation: number;
  readonly bytes: Uint8Array;
}

/**
 * Hands a frame of posted requests, or of completions, to `user`; `runs` false brings each TLP by itself.
 * Returns what the link has counted, tapped and granted, and how many came in runs.
 */
export function deliver(
  user: LinkUser,
  link: FakeLink,
  entries: readonly ArrivedEntry[],
  runs: boolean,
  flow: FlowClass = FlowClass.POSTED,
) {
  const bytes = frameOf(entries, flow);
  const frame = new Frame();
  const view = new DataView(bytes.buffer);
  const decoded = decodeFrame(view, bytes, 0, bytes.length, frame);
  if (decoded !== FrameDecode.OK) throw new Error(`a frame is wrong: ${decoded}`);
  const counters = new LinkCounters();
  let inRuns = 0;
  const proxy: LinkUser = {
    linkUp: () => {},
    linkTlp: (...tlp) => user.linkTlp(...tlp),
    linkSlotState: () => {},
    linkResume: () => {},
    linkDown: () => {},
    linkRun: (now, port, run) => {
      const done = runs && user.linkRun(now, port, run);
      if (done) inRuns += run.count;
      return done;
    },
  };
  const peer = { replayBytes: 1 << 20, replayFrames: 64 };
  const live = Object.assign(link, { live: true });
  const ingress = new Ingress({ ...DEFAULT_LINK_OPTIONS }, peer, live, proxy, counters);
  const tapped: string[] = [];
  ingress.tap = (_now, direction, slot, from, offset, length) => {
    tapped.push(`${direction} ${slot} ${offset} ${length} ${from === bytes} ${link.sent.length}`);
  };
  const wrong = ingress.data(NOW, frame, view, bytes, 0);
  const granted = [...ingress.credits.granted];
  return { wrong, counters: counters.in, granted, tapped: tapped.join(), inRuns };
}

/** All frames an egress has sealed and nobody has acknowledged, as hex digits. */
export function framesOf({ replay }: Egress): string[] {
  const frames: string[] = [];
  for (let frame = replay.base; frame !== replay.next; frame++) {
    const at = replay.offsetOf(frame);
    frames.push(
      Buffer.from(replay.bytes.subarray(at, at + replay.lengthOf(frame))).toString('hex'),
    );
  }
  return frames;
}

function frameOf(entries: readonly ArrivedEntry[], flow: FlowClass): Uint8Array {
  const length = entries.reduce(
    (sum, { bytes }) => sum + ENTRY_HEADER_BYTES + bytes.length,
    SESSION_HEADER_BYTES,
  );
  const frame = new Uint8Array(length);
  const view = new DataView(frame.buffer);
  const limits = new Uint32Array(6);
  writeSessionHeader(view, 0, FrameType.DATA, entries.length, length, 0, 0, limits);
  let at = SESSION_HEADER_BYTES;
  for (const { slot, generation, bytes } of entries) {
    writeEntryHeader(view, at, EntryKind.TLP, flow, slot, 0, generation, bytes.length);
    frame.set(bytes, at + ENTRY_HEADER_BYTES);
    at += ENTRY_HEADER_BYTES + bytes.length;
  }
  return frame;
}
