/** Text by lines, from bytes that come in pieces. */

/** What one line holds at most; the rest of a longer one is dropped. */
const MAX_LINE_BYTES = 1 << 20;
const NEWLINE = 0x0a;

export interface TextLine {
  /** Without the end of line, and without a byte order mark; bad UTF-8 becomes U+FFFD. */
  readonly text: string;
  /** From 1. */
  readonly line: number;
  /** Whether an end of line follows: the last line may be cut short. */
  readonly isEnded: boolean;
}

export async function* textLines(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<TextLine> {
  let kept: Buffer[] = [];
  let keptBytes = 0;
  let line = 1;
  const keep = (bytes: Uint8Array): void => {
    const room = MAX_LINE_BYTES - keptBytes;
    if (room <= 0 || bytes.length === 0) return;
    // A copy: the chunk may be written over.
    const piece = Buffer.from(bytes.subarray(0, room));
    kept.push(piece);
    keptBytes += piece.length;
  };
  const take = (isEnded: boolean): TextLine => {
    let text = Buffer.concat(kept).toString('utf8');
    if (line === 1 && text.startsWith('\uFEFF')) text = text.slice(1);
    if (text.endsWith('\r')) text = text.slice(0, -1);
    const taken = { text, line, isEnded };
    kept = [];
    keptBytes = 0;
    line += 1;
    return taken;
  };
  for await (const chunk of chunks) {
    let from = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, from);
      if (end < 0) break;
      keep(chunk.subarray(from, end));
      yield take(true);
      from = end + 1;
    }
    keep(chunk.subarray(from));
  }
  if (keptBytes > 0) yield take(false);
}
