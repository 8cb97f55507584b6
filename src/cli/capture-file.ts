/** What a capture is written to: a file or stdout, whole packets alone, and waited for. */
import { type FileHandle, open } from 'node:fs/promises';
import type { Writable } from 'node:stream';
import { fileProblem } from './file-problem.ts';
import { wholeBlocks } from './pcapng.ts';

/** Takes all of `bytes`, or fails after `written` of them. */
interface Sink {
  write(bytes: Buffer, progress: { written: number }): Promise<void>;
  /** Takes back what was written beyond `length` bytes, where it can. */
  cut(length: number): Promise<void>;
  close(): Promise<void>;
}

export class CaptureFile {
  readonly #name: string;
  readonly #sink: Sink;
  #bytes = 0;
  #blocks = 0;

  private constructor(name: string, sink: Sink) {
    this.#name = name;
    this.#sink = sink;
  }

  /** `-` is stdout. Empties a file that is there. */
  static async open(name: string): Promise<CaptureFile> {
    if (name === '-') return new CaptureFile('stdout', streamSink(process.stdout));
    try {
      return new CaptureFile(name, fileSink(await open(name, 'w')));
    } catch (error) {
      throw fileProblem('write', name, error);
    }
  }

  /** Blocks that are in the file whole. */
  get blocks(): number {
    return this.#blocks;
  }

  /**
   * Writes whole blocks. When that fails, the file ends with the last block that went in whole, and the
   * error says how many packets that leaves; `headBlocks` of its blocks are none.
   */
  async append(blocks: Buffer, headBlocks: number): Promise<void> {
    const progress = { written: 0 };
    try {
      await this.#sink.write(blocks, progress);
      this.#count(blocks, blocks.length);
    } catch (error) {
      this.#count(blocks, progress.written);
      // Whatever is wrong with the file, it is the first error that tells.
      await this.#sink.cut(this.#bytes).catch(() => {});
      await this.#sink.close().catch(() => {});
      const packets = Math.max(0, this.#blocks - headBlocks);
      throw fileProblem('write', this.#name, error, `; it holds ${packets} whole TLPs`);
    }
  }

  async close(): Promise<void> {
    try {
      await this.#sink.close();
    } catch (error) {
      throw fileProblem('write', this.#name, error);
    }
  }

  #count(blocks: Buffer, written: number): void {
    const whole = wholeBlocks(blocks, written);
    this.#blocks += whole.count;
    this.#bytes += whole.end;
  }
}

function fileSink(file: FileHandle): Sink {
  return {
    write: async (bytes, progress) => {
      while (progress.written < bytes.length) {
        const { bytesWritten } = await file.write(bytes, progress.written);
        progress.written += bytesWritten;
      }
    },
    cut: async (length) => {
      if ((await file.stat()).isFile()) await file.truncate(length);
    },
    close: () => file.close(),
  };
}

function streamSink(stream: Writable): Sink {
  return {
    write: (bytes, progress) =>
      new Promise((resolve, reject) => {
        stream.write(bytes, (error) => {
          if (error !== null && error !== undefined) {
            reject(error);
            return;
          }
          progress.written = bytes.length;
          resolve();
        });
      }),
    cut: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}
