/** Bytes that mean something in JSON, and which bytes may stand where. */
export const TAB = 0x09;
export const NEWLINE = 0x0a;
export const RETURN = 0x0d;
export const SPACE = 0x20;
export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const COLON = 0x3a;
export const OPEN_ARRAY = 0x5b;
export const BACKSLASH = 0x5c;
export const CLOSE_ARRAY = 0x5d;
export const OPEN_OBJECT = 0x7b;
export const CLOSE_OBJECT = 0x7d;

/** In text; plain bytes are 0. */
export const IN_TEXT = { plain: 0, quote: 1, backslash: 2, control: 3 } as const;
export const TEXT = new Uint8Array(256);
TEXT.fill(IN_TEXT.control, 0, SPACE);
TEXT[QUOTE] = IN_TEXT.quote;
TEXT[BACKSLASH] = IN_TEXT.backslash;

/** Behind a backslash. */
export const ESCAPES = new Uint8Array(256);
for (const byte of Buffer.from('"\\/bfnrtu')) ESCAPES[byte] = 1;

/** The escape that four hexadecimal digits follow. */
export const UNICODE_ESCAPE = 0x75;
export const HEX = new Uint8Array(256);
for (const byte of Buffer.from('0123456789abcdefABCDEF')) HEX[byte] = 1;

/** Outside of text; all that stands for itself alone is 0. */
export const OUTSIDE = { other: 0, space: 1, number: 2, letter: 3 } as const;
export const BARE = new Uint8Array(256);
for (const byte of [TAB, NEWLINE, RETURN, SPACE]) BARE[byte] = OUTSIDE.space;
BARE.fill(OUTSIDE.letter, 0x41, 0x5b);
BARE.fill(OUTSIDE.letter, 0x61, 0x7b);
for (const byte of Buffer.from('0123456789+-.')) BARE[byte] = OUTSIDE.number;

/** A running hash of the letters of a word. */
export const hashByte = (hash: number, byte: number): number => (Math.imul(hash, 31) + byte) | 0;

/**
 * Words that may stand for a value or end a number. Beyond RFC 8259 these are what C and Python programs
 * print for numbers that are none.
 */
export const WORDS: ReadonlySet<number> = new Set(
  ['true', 'false', 'null', 'NaN', 'nan', 'Infinity', 'inf', 'e', 'E'].map((word) =>
    Buffer.from(word).reduce((hash, byte) => hashByte(hash, byte), 0),
  ),
);

export function isSpace(byte: number): boolean {
  return byte === SPACE || byte === NEWLINE || byte === RETURN || byte === TAB;
}
