/** A line of text with the bytes of one TLP as hexadecimal digits. */

const HASH = 0x23;
const ZERO = 0x30;
const LOWER_X = 0x78;

/** The value of a digit; −1 for what separates groups, −2 for anything else. By character code. */
const VALUES = makeValues();

function makeValues(): Int8Array {
  const values = new Int8Array(128).fill(-2);
  for (const separator of ' \t\r\v\f:,') values[separator.charCodeAt(0)] = -1;
  for (let digit = 0; digit < 16; digit++) {
    const text = digit.toString(16);
    values[text.charCodeAt(0)] = digit;
    values[text.toUpperCase().charCodeAt(0)] = digit;
  }
  return values;
}

/**
 * The bytes of a line, none for a blank one, undefined for what is no hexadecimal. Groups of whole bytes
 * may be parted by blanks, colons and commas, each may begin with 0x, and # begins a comment.
 */
export function bytesOfHexLine(line: string): Uint8Array | undefined {
  const bytes = new Uint8Array(line.length >> 1);
  let count = 0;
  let high = -1;
  let atStart = true;
  for (let at = 0; at < line.length; at++) {
    const code = line.charCodeAt(at);
    if (code === HASH) break;
    const value = code < 128 ? (VALUES[code] as number) : -2;
    if (value >= 0) {
      if (atStart && code === ZERO && (line.charCodeAt(at + 1) | 0x20) === LOWER_X) {
        at++;
        // 0x alone, or before anything but a digit, is no number.
        if (!((VALUES[line.charCodeAt(at + 1)] ?? -2) >= 0)) return undefined;
      } else if (high < 0) {
        high = value;
      } else {
        bytes[count++] = (high << 4) | value;
        high = -1;
      }
      atStart = false;
    } else if (value === -1 && high < 0) {
      atStart = true;
    } else {
      return undefined;
    }
  }
  return high < 0 ? bytes.subarray(0, count) : undefined;
}

/** The tool whose listing a line is the first of: it spreads bytes over lines, beside their offsets. */
export function listingTool(line: string): 'xxd' | 'hexdump' | undefined {
  if (/^0{7,8}: +[0-9a-f]{2}/i.test(line)) return 'xxd';
  if (/^0{6,8}\s.*\|.*\|\s*$/.test(line)) return 'hexdump';
  return undefined;
}
