import { DxpuError } from '#base/errors';
import { createAccelerator } from '#devices/accel';
import { type CapturedIdentity, identityInCapture, resetsIn } from '../captured-identity.ts';
import { type OutputFormat, printData, printLine, UsageError } from '../output.ts';
import { replayCapture, type ReplayDifference, type ReplayReport } from '../replay-engine.ts';
import type { CapturedPacket } from '../replay-index.ts';
import { type ReplaySegment, segmentsOf } from '../replay-segments.ts';
import { TlpSource } from '../tlp-source.ts';

export interface ReplayOptions {
  readonly output: OutputFormat;
  readonly device: 'accel';
  readonly memory?: number;
  readonly uuid?: string;
}

const WORDS: Readonly<Record<ReplayDifference['what'], string>> = {
  completion: 'completed in another way',
  'dma-read': 'read of host memory on one side alone',
  'dma-write': 'written to host memory in another way',
  unanswered: 'not completed in the capture, though later requests are',
  unasked: 'completes no request of the capture, though earlier ones are complete',
  gap: 'continues its request at another byte than the completion before ended',
  'tag-in-use': 'requested under a tag that is still in use',
  undecodable: 'not a TLP',
};

const DEFAULT_MEMORY_BYTES = 64 * 2 ** 20;
const ANY_UUID = '00000000-0000-4000-8000-000000000000';

/** Exit status 1 when anything differs, as diff does. */
export async function replay(file: string, options: ReplayOptions): Promise<void> {
  const source = new TlpSource(file);
  const packets = await packetsOf(source);
  const captured = source.capturedFunction;
  const isReset = resetsIn(packets, captured);
  const segments = segmentsOf(packets, source.inUse === true, isReset);
  const judged = segments.reduce((sum, segment) => sum + segment.packets.length, 0);
  const because = unjudgedBecause(source, segments, packets.length - judged);
  if (judged === 0) {
    throw new DxpuError(
      'failed_precondition',
      `${source.name}: nothing of it can be judged: ${because}, and no reset of it follows`,
      { details: { packets: packets.length } },
    );
  }
  const identity = identityInCapture(packets, captured);
  const report = sumOf(
    segments.map(({ packets: part, configWrites }) =>
      replayCapture(newDevice(options, identity), part, captured, configWrites),
    ),
  );
  if (report.requests === 0) {
    throw new DxpuError('invalid_argument', `${source.name} holds no request of a host to replay`);
  }
  if (report.differences.length > 0) process.exitCode = 1;
  if (options.output !== 'table') {
    await printData(
      {
        configured: captured !== undefined,
        packets: packets.length,
        judged,
        lost: source.lost,
        ...report,
      },
      options.output,
    );
    return;
  }
  if (captured === undefined) {
    printLine('The capture does not say how the function was configured: it starts unconfigured.');
  }
  if (judged < packets.length) {
    const from = segments.map((segment) => segment.packets[0]?.number).join(', ');
    printLine(
      `${judged} of ${packets.length} TLPs are judged, from packet ${from} on: ${because}, and what ` +
        'its registers hold is known from a reset on alone.',
    );
  }
  if (judged === packets.length && source.lost > 0) {
    printLine(`The capture lost ${source.lost} TLPs after its last one.`);
  }
  for (const difference of report.differences) printLine(textOf(difference));
  printLine(
    `${report.requests} requests replayed: ${report.completions} completions, ` +
      `${report.dmaReads} reads and ${report.dmaWrites} writes of host memory; ` +
      (report.differences.length === 0 ? 'no difference' : `${report.differences.length} differ`),
  );
}

async function packetsOf(source: TlpSource): Promise<CapturedPacket[]> {
  const wrong = (what: string): DxpuError =>
    new DxpuError('invalid_argument', `${source.name}${what}`);
  const packets: CapturedPacket[] = [];
  const slots = new Set<number>();
  for await (const items of source.batches()) {
    for (const item of items) {
      const { place, number, error, tlp, timeNs, direction, slot, lostBefore } = item;
      if (place === 'line') throw wrong(' is no pcapng capture, which a replay needs');
      if (error !== undefined) throw wrong(`: packet ${number} ${error}`);
      if (tlp === undefined || timeNs === undefined || direction === undefined) continue;
      const loss = lostBefore === undefined ? {} : { lostBefore };
      // A copy: what was read with it, blocks of other tools too, need not stay.
      packets.push({ number, timeNs, direction, tlp: new Uint8Array(tlp), ...loss });
      slots.add(slot ?? 0);
    }
  }
  if (packets.length === 0) throw wrong(' holds no TLP: there is nothing to replay');
  if (slots.size > 1) {
    throw wrong(`: holds slots ${[...slots].join(', ')}; a replay is of one device`);
  }
  return packets;
}

function unjudgedBecause(
  source: TlpSource,
  segments: readonly ReplaySegment[],
  unjudged: number,
): string {
  const lost = `the capture lost ${source.lost} TLPs`;
  if (unjudged === 0) return '';
  if (source.inUse !== true) return lost;
  const inUse = 'the function was in use when the capture began';
  return source.lost > 0 && segments.length > 0 ? `${inUse}, and ${lost}` : inUse;
}

function sumOf(reports: readonly ReplayReport[]): ReplayReport {
  const sum = (count: (report: ReplayReport) => number): number =>
    reports.reduce((total, report) => total + count(report), 0);
  return {
    requests: sum((report) => report.requests),
    completions: sum((report) => report.completions),
    dmaReads: sum((report) => report.dmaReads),
    dmaWrites: sum((report) => report.dmaWrites),
    differences: reports.flatMap((report) => report.differences),
  };
}

function newDevice(
  options: ReplayOptions,
  seen: CapturedIdentity,
): ReturnType<typeof createAccelerator> {
  try {
    return createAccelerator({
      uuid: options.uuid ?? seen.uuid ?? ANY_UUID,
      memoryBytes: options.memory ?? seen.memoryBytes ?? DEFAULT_MEMORY_BYTES,
      // Silent: what the device complains of shows in its answers.
      log: () => {},
    });
  } catch (error) {
    throw new UsageError(DxpuError.from(error).message);
  }
}

function textOf(difference: ReplayDifference): string {
  const { packet, what, request, captured, replayed } = difference;
  const place = packet === 0 ? 'only in the replay' : `packet ${packet}`;
  return [
    `${place}: ${WORDS[what]}${request === undefined ? '' : `: ${request}`}`,
    ...captured.map((line) => `  captured  ${line}`),
    ...replayed.map((line) => `  replayed  ${line}`),
  ].join('\n');
}
