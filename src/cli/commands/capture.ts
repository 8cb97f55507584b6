import { DxpuError } from '#base/errors';
import { CaptureFile } from '../capture-file.ts';
import type { CaptureBatch, CaptureBegin, CaptureResult } from '../capture-stream.ts';
import { callProcess, findProcess } from '../control-client.ts';
import { type OutputFormat, printNote, UsageError } from '../output.ts';
import { encodeHeader, encodeStatistics } from '../pcapng.ts';
import { type KnownProcess, stateFolder } from '../state-folder.ts';
import type { ProcessSelection } from '../status-report.ts';

export interface CaptureOptions extends ProcessSelection {
  readonly output: OutputFormat;
  readonly out: string;
  readonly count?: number;
  /** Nanoseconds. */
  readonly for?: number;
}

/** Section and interface. */
const HEAD_BLOCKS = 2;

export async function capture(slot: number, options: CaptureOptions): Promise<void> {
  if (options.out === '-' && process.stdout.isTTY) {
    throw new UsageError(
      'a capture is no text for a terminal: name a file with -o, or pipe it, as in | dxpu decode -',
    );
  }
  const kind = options.process === undefined ? 'host' : undefined;
  const target = await findProcess(stateFolder(options.state), options.process, kind);
  const recording = new Recording(target, slot, options.out);
  const onSignal = (): void => recording.stop();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal);
  try {
    await recording.run({
      slot,
      ...(options.count === undefined ? {} : { count: options.count }),
      ...(options.for === undefined ? {} : { durationMs: options.for / 1e6 }),
    });
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, onSignal);
  }
  const { captured, dropped } = recording;
  const lost = dropped === 0 ? '' : `, ${dropped} lost because this end was too slow`;
  const where = options.out === '-' ? 'stdout' : options.out;
  const note = { captured, dropped, file: where };
  printNote(
    options.output !== 'table'
      ? JSON.stringify(note)
      : `${captured} TLPs of ${target.name} slot ${slot} in ${where}${lost}`,
  );
}

class Recording {
  readonly #target: KnownProcess;
  readonly #slot: number;
  readonly #out: string;
  readonly #giveUp = new AbortController();
  #id: number | undefined;
  #stopping = false;
  #file: CaptureFile | undefined;
  /** What is being written now. */
  #writing: Promise<void> = Promise.resolve();
  captured = 0;
  dropped = 0;

  constructor(target: KnownProcess, slot: number, out: string) {
    this.#target = target;
    this.#slot = slot;
    this.#out = out;
  }

  /**
   * Ends the stream, so that it still says what was lost; before it has begun, or the second time,
   * gives up at once.
   */
  stop(): void {
    if (this.#stopping || this.#id === undefined) {
      this.#giveUp.abort();
      return;
    }
    this.#stopping = true;
    callProcess(
      this.#target,
      'end-capture',
      { id: this.#id },
      { signal: this.#giveUp.signal },
    ).catch(
      // Gone already, which the stream notices too; or hung, and then the second signal helps.
      () => {},
    );
  }

  async run(params: object): Promise<void> {
    try {
      const result = (await callProcess(this.#target, 'capture', params, {
        signal: this.#giveUp.signal,
        onEvent: (event) => {
          this.#writing = this.#take(event as CaptureBegin | CaptureBatch);
          return this.#writing;
        },
      })) as CaptureResult;
      this.dropped = result.dropped;
    } catch (error) {
      await this.#failed(error);
      return;
    }
    await this.#end();
  }

  async #take(event: CaptureBegin | CaptureBatch): Promise<void> {
    if ('id' in event) {
      // Only now: a capture that is refused must not empty a file that is there.
      this.#file = await CaptureFile.open(this.#out);
      this.#id = event.id;
      await this.#file.append(headerOf(this.#target.name, this.#slot, event), HEAD_BLOCKS);
      return;
    }
    await this.#file?.append(Buffer.from(event.blocks, 'base64'), HEAD_BLOCKS);
    this.captured += event.packets;
    this.dropped = event.dropped;
  }

  async #end(): Promise<void> {
    const timeNs = BigInt(Date.now()) * 1_000_000n;
    await this.#file?.append(encodeStatistics(timeNs, this.captured, this.dropped), HEAD_BLOCKS);
    await this.#file?.close();
  }

  async #failed(error: unknown): Promise<void> {
    // Its own failure is `error` then.
    await this.#writing.catch(() => {});
    const problem = DxpuError.from(error);
    const ours = problem.details['file'] !== undefined;
    if (this.#file === undefined || ours) {
      if (this.#giveUp.signal.aborted && !ours) {
        throw new DxpuError('cancelled', 'ended before the capture had begun', { cause: error });
      }
      throw problem;
    }
    await this.#end();
    if (this.#giveUp.signal.aborted) return;
    throw new DxpuError(
      problem.code,
      `${problem.message}; ${this.#out === '-' ? 'stdout' : this.#out} is a valid capture of the ` +
        `${this.captured} TLPs until then`,
      {
        details: { ...problem.details, captured: this.captured, dropped: this.dropped },
        cause: error,
      },
    );
  }
}

function headerOf(name: string, slot: number, { function: captured, inUse }: CaptureBegin): Buffer {
  return encodeHeader(`${name} slot ${slot}`, 'dxpu capture', {
    inUse,
    function:
      captured === undefined
        ? undefined
        : { bdf: captured.bdf, configSpace: Buffer.from(captured.configSpace, 'hex') },
  });
}
