import { DxpuError } from '#base/errors';
import { createAccelerator } from '#devices/accel';
import { type CapturedIdentity, identityInCapture } from '../captured-identity.ts';
import { type OutputFormat, printJson, printLine, UsageError } from '../output.ts';
import { replayCapture, type ReplayDifference } from '../replay-engine.ts';
import type { CapturedPacket } from '../replay-index.ts';
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
  undecodable: 'not a TLP',
};

const DEFAULT_MEMORY_BYTES = 64 * 2 ** 20;
const ANY_UUID = '00000000-0000-4000-8000-000000000000';

/** Exit status 1 when anything differs, as diff does. */
export async function replay(file: string, options: ReplayOptions): Promise<void> {
  const source = new TlpSource(file);
  const packets: CapturedPacket[] = [];
  const slots = new Set<number>();
  for await (const { place, number, error, tlp, timeNs, direction, slot } of source.items()) {
    if (place === 'line') {
      throw new DxpuError('invalid_argument', `${file}: a replay needs a pcapng capture`);
    }
    if (error !== undefined) {
      throw new DxpuError('invalid_argument', `${file}: packet ${number} ${error}`);
    }
    if (tlp === undefined || timeNs === undefined || direction === undefined) continue;
    packets.push({ number, timeNs, direction, tlp });
    slots.add(slot ?? 0);
  }
  if (slots.size > 1) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: holds slots ${[...slots].join(', ')}; a replay is of one device`,
    );
  }
  const report = replayCapture(
    newDevice(options, identityInCapture(packets, source.capturedFunction)),
    packets,
    source.capturedFunction,
  );
  if (report.differences.length > 0) process.exitCode = 1;
  if (options.output === 'json') {
    printJson({ configured: source.capturedFunction !== undefined, ...report });
    return;
  }
  if (source.capturedFunction === undefined) {
    printLine('The capture does not say how the function was configured: it starts unconfigured.');
  }
  for (const difference of report.differences) printLine(textOf(difference));
  printLine(
    `${report.requests} requests replayed: ${report.completions} completions, ` +
      `${report.dmaReads} reads and ${report.dmaWrites} writes of host memory; ` +
      (report.differences.length === 0 ? 'no difference' : `${report.differences.length} differ`),
  );
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
