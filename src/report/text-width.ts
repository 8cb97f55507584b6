/** Columns of a terminal: how many a text takes, and how to make it take fewer. */

/** Takes no column: combining marks, among them variation selectors, and joiners. */
const NO_WIDTH = /^(?:\p{Mn}|\p{Me}|[\u200b-\u200d])$/u;
/** Takes two: the East Asian Wide and Fullwidth ranges (Unicode annex 11), and pictographs. */
const WIDE =
  /^[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1f64f}\u{1f900}-\u{1f9ff}\u{20000}-\u{3fffd}]$/u;
/** Moves a cursor, ends a line, or turns the direction of what follows. */
const UNSAFE = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]|\p{Surrogate}/gu;

/** `text` with nothing in it that could act on a terminal: such characters become `�`. */
export function plainText(text: string): string {
  return text.replaceAll(UNSAFE, '\ufffd');
}

export function displayWidth(text: string): number {
  if (!/[\u0300-\uffff]/.test(text)) return text.length;
  let width = 0;
  for (const character of text) width += widthOf(character);
  return width;
}

function widthOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE.test(character) ? 2 : 1;
}

export function padEnd(text: string, width: number): string {
  return text + ' '.repeat(Math.max(0, width - displayWidth(text)));
}

export function padStart(text: string, width: number): string {
  return ' '.repeat(Math.max(0, width - displayWidth(text))) + text;
}

/** At most `width` columns, the middle left out where it is longer: ends of paths tell them apart. */
export function withoutMiddle(text: string, width: number): string {
  if (displayWidth(text) <= width) return text;
  if (width <= 1) return '…'.slice(0, width);
  const tail = Math.ceil(((width - 1) * 2) / 3);
  return `${headOf(text, width - 1 - tail)}…${tailOf(text, tail)}`;
}

function headOf(text: string, width: number): string {
  let head = '';
  let taken = 0;
  for (const character of text) {
    taken += widthOf(character);
    if (taken > width) break;
    head += character;
  }
  return head;
}

function tailOf(text: string, width: number): string {
  let tail = '';
  let taken = 0;
  for (const character of Array.from(text).toReversed()) {
    taken += widthOf(character);
    if (taken > width) break;
    tail = character + tail;
  }
  return tail;
}

/** A space between a number and its unit, which does not part lines. */
const IN_FIGURE = / (?=(?:%|[nµm]?s|[kMGT]?B(?:\/s)?|Gb\/s)(?![\p{L}\p{N}]))/gu;

/**
 * Lines of at most `width` columns, parted at spaces, not between a number and its unit; a word that
 * is longer is cut. An empty text is one empty line.
 */
export function wrap(text: string, width: number): string[] {
  const room = Math.max(1, width);
  const words = text.replaceAll(IN_FIGURE, '\u00a0').split(' ');
  const lines: string[] = [];
  let line = '';
  for (let word of words) {
    if (line !== '' && displayWidth(line) + 1 + displayWidth(word) <= room) {
      line += ` ${word}`;
      continue;
    }
    if (line !== '') lines.push(line);
    while (displayWidth(word) > room) {
      const head = headOf(word, room) || (word[0] ?? '');
      lines.push(head);
      word = word.slice(head.length);
    }
    line = word;
  }
  lines.push(line);
  return lines.map((one) => one.replaceAll('\u00a0', ' '));
}

/** `text` over as many lines as it needs, those after the first behind `hang`. */
export function paragraph(text: string, width: number, first = '', hang = first): string[] {
  const indent = Math.max(displayWidth(first), displayWidth(hang));
  return wrap(text, width - indent).map((line, index) => `${index === 0 ? first : hang}${line}`);
}
