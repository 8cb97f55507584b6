import { createWriteStream } from 'node:fs';
import type { Writable } from 'node:stream';
import { DxpuError } from '#base/errors';
import type { CaptureBegin, CaptureEvent, CaptureResult } from '../capture-stream.ts';
import { callProcess, findProcess } from '../control-client.ts';
import { type OutputFormat, printNote } from '../output.ts';
import { encodeHeader, encodePacket } from '../pcapng.ts';
import { stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';

export interface CaptureOptions extends ProcessSelection {
  readonly output: OutputFormat;
  readonly out: string;
  readonly count?: number;
  /** Nanoseconds. */
  readonly for?: number;
}

export async function capture(slot: number, options: CaptureOptions): Promise<void> {
  const kind = options.process === undefined ? 'host' : undefined;
  const target = await findProcess(stateFolder(options.state), options.process, kind);
  const file = await openOutput(options.out);
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal);
  let captured = 0;
  let dropped = 0;
  let begun = false;
  try {
    const result = (await callProcess(
      target,
      'capture',
      {
        slot,
        ...(options.count === undefined ? {} : { count: options.count }),
        ...(options.for === undefined ? {} : { durationMs: options.for / 1e6 }),
      },
      {
        signal: stop.signal,
        onEvent: (event) => {
          if (!begun) {
            begun = true;
            file.write(headerOf(target.name, slot, event as CaptureBegin));
            return;
          }
          const { timeNs, direction, hex, slot: from } = event as CaptureEvent;
          captured++;
          const tlp = Buffer.from(hex, 'hex');
          file.write(encodePacket({ timeNs: BigInt(timeNs), slot: from, direction, tlp }));
        },
      },
    )) as CaptureResult;
    dropped = result.dropped;
  } catch (error) {
    // Ended by Ctrl-C, as a capture without a limit always is.
    if (!stop.signal.aborted) throw DxpuError.from(error);
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, onSignal);
    await closeOutput(file);
  }
  const lost = dropped === 0 ? '' : `, ${dropped} lost because this end was too slow`;
  const where = options.out === '-' ? 'stdout' : options.out;
  const note = { captured, dropped, file: where };
  printNote(
    options.output === 'json'
      ? JSON.stringify(note)
      : `${captured} TLPs of ${target.name} slot ${slot} in ${where}${lost}`,
  );
}

function headerOf(name: string, slot: number, begin: CaptureBegin): Buffer {
  const captured = begin.function;
  return encodeHeader(
    `${name} slot ${slot}`,
    'dxpu capture',
    captured === undefined
      ? undefined
      : { bdf: captured.bdf, configSpace: Buffer.from(captured.configSpace, 'hex') },
  );
}

function openOutput(name: string): Promise<Writable> {
  if (name === '-') return Promise.resolve(process.stdout);
  return new Promise((resolve, reject) => {
    const file = createWriteStream(name);
    file.once('error', (error) => {
      reject(
        new DxpuError(DxpuError.from(error).code, `cannot write ${name}: ${error.message}`, {
          cause: error,
        }),
      );
    });
    file.once('open', () => resolve(file));
  });
}

function closeOutput(file: Writable): Promise<void> {
  if (file === process.stdout) return Promise.resolve();
  return new Promise((resolve, reject) => {
    file.once('error', reject);
    file.end(() => resolve());
  });
}
