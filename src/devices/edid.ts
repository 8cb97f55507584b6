/**
 * The EDID of a display that is not there: one 128-byte block (VESA E-EDID 1.4) with one preferred mode
 * at 60 Hz, timed by VESA CVT 1.1 with reduced blanking.
 */
import { assert } from '#base/assert';

export const EDID_BYTES = 128;

/** Not assigned to anybody at the time of writing: for experiments only, as the PCI vendor ID. */
const MANUFACTURER = 'DXP';
const YEAR = 2026;

/** Times of a mode: pixels and lines in all, where the sync pulses lie in the blanking. */
export interface CvtTiming {
  /** In steps of 10 kHz; a multiple of 25, for CVT has steps of 0.25 MHz. */
  readonly clock10kHz: number;
  readonly horizontalTotal: number;
  readonly verticalTotal: number;
  readonly verticalSync: number;
}

// CVT 1.1, section 5: reduced blanking.
const HORIZONTAL_BLANK = 160;
const HORIZONTAL_FRONT_PORCH = 48;
const HORIZONTAL_SYNC = 32;
const VERTICAL_FRONT_PORCH = 3;
const LEAST_VERTICAL_BACK_PORCH = 6;
const LEAST_VERTICAL_BLANK_US = 460;
const REFRESH_HZ = 60;

/** Largest of a mode that a detailed timing descriptor can hold, with its clock. */
export const MAX_EDID_WIDTH = 3840;
export const MAX_EDID_HEIGHT = 2160;

/** The CVT reduced-blanking timing of a mode at 60 Hz. */
export function cvtReducedTiming(width: number, height: number): CvtTiming {
  const framePeriodUs = 1e6 / REFRESH_HZ;
  const linePeriodUs = (framePeriodUs - LEAST_VERTICAL_BLANK_US) / height;
  const blankLines = Math.floor(LEAST_VERTICAL_BLANK_US / linePeriodUs) + 1;
  const verticalSync = syncLines(width, height);
  const leastLines = VERTICAL_FRONT_PORCH + verticalSync + LEAST_VERTICAL_BACK_PORCH;
  const verticalTotal = height + Math.max(blankLines, leastLines);
  const horizontalTotal = width + HORIZONTAL_BLANK;
  const clockMHz = (REFRESH_HZ * verticalTotal * horizontalTotal) / 1e6;
  return {
    clock10kHz: 25 * Math.floor(clockMHz / 0.25),
    horizontalTotal,
    verticalTotal,
    verticalSync,
  };
}

/** The width of the vertical sync pulse tells the aspect ratio (CVT 1.1, table 3-2). */
function syncLines(width: number, height: number): number {
  const isRatio = (across: number, down: number): boolean => width * down === height * across;
  if (isRatio(4, 3)) return 4;
  if (isRatio(16, 9)) return 5;
  if (isRatio(16, 10)) return 6;
  if (isRatio(5, 4) || isRatio(15, 9)) return 7;
  return 10;
}

/** Established timings (table 3.18): byte, bit, and size of those at 60 Hz. */
const ESTABLISHED = [
  [0, 0x20, 640, 480],
  [0, 0x01, 800, 600],
  [1, 0x08, 1024, 768],
] as const;

// Offsets in the block (E-EDID 1.4, table 3.1).
const PRODUCT_CODE = 0x0a;
const VERSION = 0x12;
const ESTABLISHED_TIMINGS = 0x23;
const STANDARD_TIMINGS = 0x26;
const DESCRIPTORS = 0x36;
const DESCRIPTOR_BYTES = 18;
const CHECKSUM = 0x7f;

/** sRGB primaries and white point, as the ten bytes of table 3.16. */
const SRGB_CHROMATICITY = [0xee, 0x91, 0xa3, 0x54, 0x4c, 0x99, 0x26, 0x0f, 0x50, 0x54] as const;

const DESCRIPTOR_NAME = 0xfc;
const DESCRIPTOR_DUMMY = 0x10;

export interface EdidOptions {
  /** The preferred mode: widths from 64 to 3840, heights from 64 to 2160, in pixels. */
  readonly width: number;
  readonly height: number;
  /** As the display's name, of which 13 characters of printable ASCII are shown. */
  readonly name: string;
}

export function makeEdid({ width, height, name }: EdidOptions): Uint8Array {
  assert(width <= MAX_EDID_WIDTH && height <= MAX_EDID_HEIGHT, 'the mode fits into an EDID');
  const edid = new Uint8Array(EDID_BYTES);
  const view = new DataView(edid.buffer);
  edid.set([0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0]);
  view.setUint16(0x08, manufacturerCode(MANUFACTURER));
  view.setUint16(PRODUCT_CODE, 1, true);
  edid[0x10] = 0xff; // The year is that of the model, not of this one's manufacture.
  edid[0x11] = YEAR - 1990;
  edid[VERSION] = 1;
  edid[VERSION + 1] = 4;
  edid[0x14] = 0xa5; // Digital, 8 bits a colour, DisplayPort.
  const millimetres = sizeInMillimetres(width, height);
  edid[0x15] = Math.round(millimetres.width / 10);
  edid[0x16] = Math.round(millimetres.height / 10);
  edid[0x17] = 120; // Gamma 2.2.
  edid[0x18] = 0x06; // RGB 4:4:4, sRGB, the preferred mode is the native one.
  edid.set(SRGB_CHROMATICITY, 0x19);
  for (const [byte, bit, itsWidth, itsHeight] of ESTABLISHED) {
    if (itsWidth <= width && itsHeight <= height) {
      const at = ESTABLISHED_TIMINGS + byte;
      edid[at] = (edid[at] as number) | bit;
    }
  }
  edid.fill(0x01, STANDARD_TIMINGS, DESCRIPTORS); // All unused.
  writeDetailedTiming(edid, view, width, height);
  writeName(edid, DESCRIPTORS + DESCRIPTOR_BYTES, name);
  edid[DESCRIPTORS + 2 * DESCRIPTOR_BYTES + 3] = DESCRIPTOR_DUMMY;
  edid[DESCRIPTORS + 3 * DESCRIPTOR_BYTES + 3] = DESCRIPTOR_DUMMY;
  let sum = 0;
  for (const byte of edid) sum += byte;
  edid[CHECKSUM] = -sum & 0xff;
  return edid;
}

/** Three letters of five bits, A is 1 (table 3.5). */
function manufacturerCode(letters: string): number {
  let code = 0;
  for (const letter of letters) code = (code << 5) | (letter.charCodeAt(0) - 64);
  return code;
}

/** At 96 dots an inch. */
function sizeInMillimetres(width: number, height: number): { width: number; height: number } {
  return { width: Math.round((width * 25.4) / 96), height: Math.round((height * 25.4) / 96) };
}

/** The preferred mode (table 3.21), sync digital and separate, horizontal positive as CVT-RB says. */
function writeDetailedTiming(
  edid: Uint8Array,
  view: DataView,
  width: number,
  height: number,
): void {
  const at = DESCRIPTORS;
  const timing = cvtReducedTiming(width, height);
  const verticalBlank = timing.verticalTotal - height;
  const size = sizeInMillimetres(width, height);
  view.setUint16(at, timing.clock10kHz, true);
  edid[at + 2] = width & 0xff;
  edid[at + 3] = HORIZONTAL_BLANK & 0xff;
  edid[at + 4] = ((width >> 8) << 4) | (HORIZONTAL_BLANK >> 8);
  edid[at + 5] = height & 0xff;
  edid[at + 6] = verticalBlank & 0xff;
  edid[at + 7] = ((height >> 8) << 4) | (verticalBlank >> 8);
  edid[at + 8] = HORIZONTAL_FRONT_PORCH;
  edid[at + 9] = HORIZONTAL_SYNC;
  edid[at + 10] = (VERTICAL_FRONT_PORCH << 4) | timing.verticalSync;
  edid[at + 12] = size.width & 0xff;
  edid[at + 13] = size.height & 0xff;
  edid[at + 14] = ((size.width >> 8) << 4) | (size.height >> 8);
  edid[at + 17] = 0x1a;
}

/** A display descriptor with text (table 3.23): ended by a line feed, filled with spaces. */
function writeName(edid: Uint8Array, at: number, name: string): void {
  edid[at + 3] = DESCRIPTOR_NAME;
  const text = name.replace(/[^ -~]/g, '?').slice(0, 13);
  edid.fill(0x20, at + 5, at + DESCRIPTOR_BYTES);
  for (let index = 0; index < text.length; index++) edid[at + 5 + index] = text.charCodeAt(index);
  if (text.length < 13) edid[at + 5 + text.length] = 0x0a;
}
