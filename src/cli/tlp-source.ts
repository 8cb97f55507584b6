/** TLPs from a file or a pipe: a pcapng capture, or text with the bytes of one TLP a line as hex. */
import { createReadStream } from 'node:fs';
import { DxpuError } from '#base/errors';
import { type CapturedFunction, isPcapng, PcapngReader } from './pcapng.ts';

/** Where a TLP came from, and its bytes; or what is wrong there. */
export interface SourceItem {
  /** `packet` of a capture, `line` of a text; counted from 1. */
  readonly place: 'packet' | 'line';
  readonly number: number;
  readonly tlp?: Uint8Array;
  readonly error?: string;
  /** Of a capture alone. */
  readonly timeNs?: bigint;
  readonly slot?: number;
  readonly direction?: 'down' | 'up';
}

const HEX_LINE = /^(?:0x)?((?:[0-9a-f]{2}[\s:]*)+)$/i;
const MAX_LINE_CHARS = 1 << 16;

export class TlpSource {
  readonly #file: string;
  readonly #pcapng = new PcapngReader();

  /** `-` is stdin. */
  constructor(file: string) {
    this.#file = file;
  }

  /** What a capture says of its function; complete once its first packet has come. */
  get capturedFunction(): CapturedFunction | undefined {
    return this.#pcapng.capturedFunction;
  }

  /** In order, as they come in. Fails when the file cannot be read or a capture is damaged. */
  async *items(): AsyncGenerator<SourceItem> {
    const stream: AsyncIterable<Buffer> =
      this.#file === '-' ? process.stdin : createReadStream(this.#file);
    let head: Buffer = Buffer.alloc(0);
    let kind: 'unknown' | 'capture' | 'text' = 'unknown';
    let text = '';
    let line = 0;
    try {
      for await (const chunk of stream) {
        let bytes: Buffer = chunk;
        if (kind === 'unknown') {
          head = Buffer.concat([head, chunk]);
          // A text shorter than this has a line end, or the stream its end.
          if (head.length < 12 && !head.includes(0x0a)) continue;
          kind = isPcapng(head) ? 'capture' : 'text';
          bytes = head;
        }
        if (kind === 'capture') {
          for (const packet of this.#pcapng.push(bytes)) {
            const { number } = packet;
            yield 'error' in packet
              ? { place: 'packet', number, error: packet.error }
              : { place: 'packet', number, ...packet.packet };
          }
          continue;
        }
        const lines = (text + bytes.toString('latin1')).split('\n');
        text = lines.pop() ?? '';
        for (const one of lines) yield* itemOfLine(one, ++line);
        if (text.length > MAX_LINE_CHARS) {
          throw new DxpuError('invalid_argument', `line ${line + 1} is too long for a TLP`);
        }
      }
    } catch (error) {
      throw this.#readError(error);
    }
    if (kind === 'capture') this.#pcapng.end();
    else yield* itemOfLine(kind === 'unknown' ? head.toString('latin1') : text, line + 1);
  }

  #readError(error: unknown): DxpuError {
    if (error instanceof DxpuError) return error;
    const code = (error as NodeJS.ErrnoException).code;
    const reason = code === 'ENOENT' ? 'there is no such file' : (error as Error).message;
    return new DxpuError(DxpuError.from(error).code, `cannot read ${this.#file}: ${reason}`, {
      cause: error,
    });
  }
}

function* itemOfLine(line: string, number: number): Generator<SourceItem> {
  const text = line.replace(/#.*$/, '').trim();
  if (text === '') return;
  const match = HEX_LINE.exec(text);
  if (match === null) {
    yield { place: 'line', number, error: 'is not the bytes of a TLP in hexadecimal' };
    return;
  }
  yield {
    place: 'line',
    number,
    tlp: Buffer.from((match[1] ?? '').replace(/[\s:]/g, ''), 'hex'),
  };
}
