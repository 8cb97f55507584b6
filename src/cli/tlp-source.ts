/** TLPs from a file or a pipe: a pcapng capture, or text with the bytes of one TLP a line as hex. */
import { createReadStream } from 'node:fs';
import { DxpuError } from '#base/errors';
import { fileProblem } from './file-problem.ts';
import { bytesOfHexLine, listingTool } from './hex-line.ts';
import type { CapturedFunction } from './pcapng.ts';
import { isPcapng, PcapngReader } from './pcapng-reader.ts';

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
  /** TLPs that the capture lost before this one. */
  readonly lostBefore?: number;
}

const MAX_LINE_CHARS = 1 << 16;
/** A text that begins with so many lines without a TLP has none. */
const MAX_FIRST_BAD_LINES = 10;
const NOT_HEX = 'is not the bytes of a TLP in hexadecimal';

/** What other files begin with, in hexadecimal, and what to do with them. */
const FOREIGN: readonly [string, string][] = [
  ['a1b2c3d4', 'is a classic pcap file: convert it with editcap -F pcapng'],
  ['d4c3b2a1', 'is a classic pcap file: convert it with editcap -F pcapng'],
  ['a1b23c4d', 'is a classic pcap file: convert it with editcap -F pcapng'],
  ['4d3cb2a1', 'is a classic pcap file: convert it with editcap -F pcapng'],
  ['1f8b', 'is compressed: decompress it with gunzip'],
  ['28b52ffd', 'is compressed: decompress it with unzstd'],
  ['fffe', 'is text in UTF-16: write it as UTF-8'],
  ['feff', 'is text in UTF-16: write it as UTF-8'],
];

type SourceKind = 'unknown' | 'capture' | 'text';

export class TlpSource {
  readonly #file: string;
  readonly #pcapng = new PcapngReader();
  #kind: SourceKind = 'unknown';
  #head: Buffer = Buffer.alloc(0);
  /** Of a text: what comes after its last line end, lines so far, and whether one was a TLP. */
  #rest = '';
  #lines = 0;
  #badLines = 0;
  #hasGoodLine = false;

  /** `-` is stdin. */
  constructor(file: string) {
    this.#file = file;
  }

  /** For messages. */
  get name(): string {
    return this.#file === '-' ? 'stdin' : this.#file;
  }

  /** What a capture says of its function; complete once its first packet has come. */
  get capturedFunction(): CapturedFunction | undefined {
    return this.#pcapng.capturedFunction;
  }

  /** Whether the captured function was in use when the capture began, where it says so. */
  get inUse(): boolean | undefined {
    return this.#pcapng.inUse;
  }

  /** TLPs the capture says it lacks, as far as it has been read. */
  get lost(): number {
    return this.#pcapng.lost;
  }

  /**
   * In order, as they come in, those of one piece of the file together. Fails when the file cannot be
   * read, a capture is damaged, or it is neither capture nor text.
   */
  async *batches(): AsyncGenerator<readonly SourceItem[]> {
    const stream: AsyncIterable<Buffer> =
      this.#file === '-' ? process.stdin : createReadStream(this.#file);
    try {
      for await (const chunk of stream) yield* this.#batch((items) => this.#take(chunk, items));
    } catch (error) {
      throw error instanceof DxpuError ? error : fileProblem('read', this.name, error);
    }
    yield* this.#batch((items) => this.#end(items));
  }

  /** What was found before something fails is given first. */
  *#batch(find: (into: SourceItem[]) => void): Generator<readonly SourceItem[]> {
    const items: SourceItem[] = [];
    try {
      find(items);
    } catch (error) {
      if (items.length > 0) yield items;
      throw error;
    }
    if (items.length > 0) yield items;
  }

  #take(chunk: Buffer, into: SourceItem[]): void {
    let bytes = chunk;
    if (this.#kind === 'unknown') {
      this.#head = Buffer.concat([this.#head, chunk]);
      if (this.#head.length < 4 && !this.#head.includes(0x0a)) return;
      this.#kind = this.#kindOf(this.#head);
      bytes = this.#kind === 'text' ? withoutMark(this.#head) : this.#head;
    }
    if (this.#kind === 'capture') this.#packets(bytes, into);
    else this.#textLines(bytes, into);
  }

  #end(into: SourceItem[]): void {
    if (this.#kind === 'capture') {
      this.#pcapng.end();
      return;
    }
    if (this.#kind === 'unknown') this.#rest = this.#head.toString('latin1');
    for (const line of this.#rest.split('\r')) this.#line(line, into);
  }

  #kindOf(head: Buffer): SourceKind {
    if (isPcapng(head)) return 'capture';
    const digits = head.toString('hex', 0, 4);
    const foreign = FOREIGN.find(([magic]) => digits.startsWith(magic));
    if (foreign !== undefined) throw this.#unreadable(foreign[1]);
    // Text has none of the control characters but those that part lines and words.
    if (head.some((byte) => byte < 9 || (byte > 13 && byte < 32))) {
      throw this.#unreadable(
        `is neither a pcapng capture (it begins with ${digits}, not 0a0d0d0a) nor hexadecimal text`,
      );
    }
    return 'text';
  }

  #packets(bytes: Buffer, into: SourceItem[]): void {
    for (const packet of this.#pcapng.push(bytes)) {
      const { number, lostBefore } = packet;
      const loss = lostBefore === undefined ? {} : { lostBefore };
      into.push(
        'error' in packet
          ? { place: 'packet', number, error: packet.error, ...loss }
          : { place: 'packet', number, ...packet.packet, ...loss },
      );
    }
  }

  #textLines(bytes: Buffer, into: SourceItem[]): void {
    const text = this.#rest + bytes.toString('latin1');
    // A return at the very end may be half of a line end.
    const lines = text.split(/\r\n|\n|\r(?!$)/);
    this.#rest = lines.pop() ?? '';
    for (const line of lines) this.#line(line, into);
    if (this.#rest.length > MAX_LINE_CHARS) {
      throw new DxpuError(
        'invalid_argument',
        `${this.name}: line ${this.#lines + 1} is too long for a TLP`,
      );
    }
  }

  #line(line: string, into: SourceItem[]): void {
    const number = ++this.#lines;
    if (!this.#hasGoodLine) {
      const tool = listingTool(line);
      if (tool !== undefined) {
        throw this.#unreadable(
          `is a listing of ${tool}, which parts a TLP over lines: write the bytes of one TLP a line, ` +
            'as xxd -p does',
        );
      }
    }
    const tlp = bytesOfHexLine(line);
    if (tlp === undefined) {
      into.push({ place: 'line', number, error: NOT_HEX });
      this.#badLines++;
      if (!this.#hasGoodLine && this.#badLines === MAX_FIRST_BAD_LINES) {
        into.length = 0;
        throw this.#unreadable(
          `is neither a pcapng capture nor hexadecimal text: line ${number} ${NOT_HEX}`,
        );
      }
      return;
    }
    if (tlp.length === 0) return;
    this.#hasGoodLine = true;
    into.push({ place: 'line', number, tlp });
  }

  #unreadable(why: string): DxpuError {
    return new DxpuError('invalid_argument', `${this.name} ${why}`, {
      details: { file: this.name },
    });
  }
}

/** Without a byte order mark of UTF-8. */
function withoutMark(head: Buffer): Buffer {
  return head.toString('hex', 0, 3) === 'efbbbf' ? head.subarray(3) : head;
}
