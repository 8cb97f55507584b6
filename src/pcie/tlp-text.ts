/** TLPs as scripts read them: JSON objects of named fields. For people: `tlp-line.ts`. */
import { DxpuError } from '#base/errors';
import { encodedTlpBytes, encodeTlp } from './tlp-codec.ts';
import { addressText } from './tlp-line.ts';
import { checkRules, LAYOUTS, TLP_DECODE_NAMES, TlpDecode, TlpLayout } from './tlp-rules.ts';
import { CompletionStatus, resetTlp, TLP_KIND_NAMES, TlpKind, type Tlp } from './tlp.ts';

export { encodedStatus, tlpToLine } from './tlp-line.ts';

export type TlpJson = Readonly<Record<string, string | number>>;

type NumberField =
  | 'trafficClass'
  | 'attributes'
  | 'addressType'
  | 'processingHint'
  | 'tag'
  | 'lengthDw'
  | 'requesterId'
  | 'firstBe'
  | 'lastBe'
  | 'completerId'
  | 'register'
  | 'byteCount'
  | 'lowerAddress'
  | 'messageCode'
  | 'messageRouting'
  | 'messageDw2'
  | 'messageDw3';
type FlagField = 'poisoned' | 'hints' | 'digest' | 'byteCountModified';

/** The largest value of each numeric field. */
const MAXIMA: Readonly<Record<NumberField, number>> = {
  trafficClass: 7,
  attributes: 7,
  addressType: 3,
  processingHint: 3,
  tag: 1023,
  lengthDw: 1024,
  requesterId: 0xffff,
  firstBe: 15,
  lastBe: 15,
  completerId: 0xffff,
  register: 4092,
  byteCount: 4096,
  lowerAddress: 127,
  messageCode: 255,
  messageRouting: 7,
  messageDw2: 0xffffffff,
  messageDw3: 0xffffffff,
};

interface FieldNames {
  readonly numbers: readonly NumberField[];
  /** As `numbers`, but left out of the object while 0. */
  readonly rare: readonly NumberField[];
  readonly rareFlags: readonly FlagField[];
  readonly address: boolean;
  readonly status: boolean;
}

const ADDRESSED: FieldNames = {
  numbers: ['firstBe', 'lastBe'],
  rare: ['addressType', 'processingHint'],
  rareFlags: ['hints', 'digest'],
  address: true,
  status: false,
};
const PLAIN: FieldNames = { ...ADDRESSED, rare: [], rareFlags: ['digest'] };
/** The fields of each layout, beyond those all TLPs have. */
const FIELDS: Readonly<Record<number, FieldNames>> = {
  [TlpLayout.MEMORY]: ADDRESSED,
  [TlpLayout.ATOMIC]: ADDRESSED,
  [TlpLayout.IO]: PLAIN,
  [TlpLayout.CONFIG]: {
    ...PLAIN,
    numbers: ['firstBe', 'lastBe', 'completerId', 'register'],
    address: false,
  },
  [TlpLayout.MESSAGE]: {
    ...PLAIN,
    numbers: ['messageCode', 'messageRouting', 'messageDw2', 'messageDw3'],
    address: false,
  },
  [TlpLayout.COMPLETION]: {
    ...PLAIN,
    numbers: ['completerId', 'byteCount', 'lowerAddress'],
    rareFlags: ['digest', 'byteCountModified'],
    address: false,
    status: true,
  },
};
const COMMON_NUMBERS: readonly NumberField[] = [
  'trafficClass',
  'attributes',
  'tag',
  'lengthDw',
  'requesterId',
];
/** Taken as 0 when an object does not have them. */
const OPTIONAL: ReadonlySet<string> = new Set(['trafficClass', 'attributes', 'tag']);

function fieldsOf(kind: TlpKind): FieldNames {
  return FIELDS[LAYOUTS[kind] as number] ?? PLAIN;
}

function hasData(kind: TlpKind): boolean {
  return (kind & 0x40) !== 0;
}

function dataOf(tlp: Tlp): Buffer {
  const { payload, payloadOffset, payloadBytes } = tlp;
  return Buffer.from(payload.buffer, payload.byteOffset + payloadOffset, payloadBytes);
}

/**
 * The fields of a valid TLP under the names of `Tlp`: flags as 0 or 1, `address` as a hex string, `data`
 * as hex digits ('' for none). AT, TH with its hint, TD and BCM appear only when they are not 0.
 */
export function tlpToJson(tlp: Tlp): TlpJson {
  const { kind } = tlp;
  const fields = fieldsOf(kind);
  const json: Record<string, string | number> = { kind: TLP_KIND_NAMES[kind] ?? '' };
  json['trafficClass'] = tlp.trafficClass;
  json['attributes'] = tlp.attributes;
  json['poisoned'] = tlp.poisoned ? 1 : 0;
  json['tag'] = tlp.tag;
  json['lengthDw'] = tlp.lengthDw;
  json['requesterId'] = tlp.requesterId;
  if (fields.address) json['address'] = addressText(tlp);
  if (fields.status) json['status'] = tlp.status;
  for (const name of fields.numbers) json[name] = tlp[name];
  for (const name of fields.rare) if (tlp[name] !== 0) json[name] = tlp[name];
  for (const name of fields.rareFlags) if (tlp[name]) json[name] = 1;
  json['data'] = dataOf(tlp).toString('hex');
  return json;
}

function invalid(field: string, problem: string): DxpuError {
  return new DxpuError('invalid_argument', `TLP field ${field}: ${problem}`, {
    details: { field },
  });
}

/** Reads hex digits, with spaces or not. `field` is named in the error. */
export function bytesFromHex(text: string, field: string): Uint8Array {
  const digits = text.replace(/\s+/g, '');
  const odd = /[^0-9a-fA-F]/.exec(digits);
  if (odd !== null) throw invalid(field, `'${odd[0]}' at ${odd.index} is not a hex digit`);
  if (digits.length % 2 !== 0)
    throw invalid(field, `an odd number of hex digits, ${digits.length}`);
  return new Uint8Array(Buffer.from(digits, 'hex'));
}

function readNumber(object: Record<string, unknown>, field: string, maximum: number): number {
  const value = object[field];
  if (value === undefined && OPTIONAL.has(field)) return 0;
  if (value === undefined) throw invalid(field, 'missing');
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > maximum) {
    throw invalid(field, `${JSON.stringify(value)} is not an integer from 0 to ${maximum}`);
  }
  return value;
}

function readFlag(object: Record<string, unknown>, field: FlagField): boolean {
  const value = object[field];
  if (value === undefined || value === 0 || value === false) return false;
  if (value === 1 || value === true) return true;
  throw invalid(field, `${JSON.stringify(value)} is neither 0 nor 1`);
}

function readText(object: Record<string, unknown>, field: string): string {
  const value = object[field];
  if (typeof value === 'string') return value;
  throw invalid(
    field,
    value === undefined ? 'missing' : `${JSON.stringify(value)} is not a string`,
  );
}

function readAddress(object: Record<string, unknown>, into: Tlp): void {
  const text = readText(object, 'address');
  const is64 = (into.kind & 0x20) !== 0;
  const limit = is64 ? 16 : 8;
  if (!/^0x[0-9a-fA-F]+$/.test(text))
    throw invalid('address', `'${text}' is not 0x and hex digits`);
  const digits = text.slice(2).replace(/^0+(?=.)/, '');
  if (digits.length > limit) throw invalid('address', `${text} has more than ${limit * 4} bits`);
  const padded = digits.padStart(16, '0');
  into.addressHi = Number.parseInt(padded.slice(0, 8), 16);
  into.addressLo = Number.parseInt(padded.slice(8), 16);
  if (into.addressLo % 4 !== 0) throw invalid('address', `${text} is not a multiple of 4`);
}

function readStatus(object: Record<string, unknown>): CompletionStatus {
  const value = readNumber(object, 'status', 7);
  for (const status of Object.values(CompletionStatus)) if (status === value) return status;
  throw invalid('status', `${value} is not 0 (SC), 1 (UR), 2 (CRS) or 4 (CA)`);
}

function readKind(object: Record<string, unknown>): TlpKind {
  const name = readText(object, 'kind');
  for (const [known, kind] of Object.entries(TlpKind)) if (known === name) return kind;
  throw invalid('kind', `'${name}' is not one of ${Object.keys(TlpKind).join(', ')}`);
}

const BROKEN_RULE_FIELD: Readonly<Record<number, string>> = {
  [TlpDecode.MALFORMED_LENGTH]: 'lengthDw',
  [TlpDecode.MALFORMED_4K_CROSSING]: 'address',
};

/**
 * Sets `into` to what `tlpToJson` gave, payload included (a new array). An optional field `hex` must
 * be the encoded bytes. Throws a `DxpuError` naming the first field that is missing, out of range,
 * unknown, or at odds with the others; `into` is then half-set.
 */
export function tlpFromJson(json: unknown, into: Tlp): void {
  if (typeof json !== 'object' || json === null || Array.isArray(json)) {
    throw new DxpuError('invalid_argument', 'a TLP must be a JSON object');
  }
  const object = json as Record<string, unknown>;
  resetTlp(into);
  const kind = readKind(object);
  const fields = fieldsOf(kind);
  into.kind = kind;
  const numbers = [...COMMON_NUMBERS, ...fields.numbers];
  for (const name of numbers) into[name] = readNumber(object, name, MAXIMA[name]);
  for (const name of fields.rare) {
    if (object[name] !== undefined) into[name] = readNumber(object, name, MAXIMA[name]);
  }
  into.poisoned = readFlag(object, 'poisoned');
  for (const name of fields.rareFlags) into[name] = readFlag(object, name);
  if (fields.address) readAddress(object, into);
  if (fields.status) into.status = readStatus(object);
  if (into.register % 4 !== 0) throw invalid('register', `${into.register} is not a multiple of 4`);
  into.payload = object['data'] === undefined ? into.payload : readData(object);
  into.payloadBytes = into.payload.length;

  const known = new Set<string>([
    'kind',
    'poisoned',
    'address',
    'status',
    'data',
    'hex',
    ...numbers,
  ]);
  if (!fields.address) known.delete('address');
  if (!fields.status) known.delete('status');
  for (const name of [...fields.rare, ...fields.rareFlags]) known.add(name);
  for (const name of Object.keys(object)) {
    if (!known.has(name)) throw invalid(name, `not a field of ${TLP_KIND_NAMES[kind] ?? ''}`);
  }
  checkWhole(into);
  if (object['hex'] !== undefined) checkHex(object, into);
}

function readData(object: Record<string, unknown>): Uint8Array {
  return bytesFromHex(readText(object, 'data'), 'data');
}

/** Checks that the fields agree with each other. */
function checkWhole(tlp: Tlp): void {
  const { kind, lengthDw } = tlp;
  const layout = LAYOUTS[kind] as number;
  const noLength = !hasData(kind) && layout >= TlpLayout.MESSAGE;
  if (lengthDw === 0 && !noLength) throw invalid('lengthDw', '0 is not a length; 1 to 1024 are');
  if (lengthDw !== 0 && noLength) throw invalid('lengthDw', 'must be 0, for there is no data');
  const dataBytes = hasData(kind) ? lengthDw * 4 : 0;
  if (tlp.payloadBytes !== dataBytes) {
    throw invalid('data', `${tlp.payloadBytes} bytes where lengthDw asks for ${dataBytes}`);
  }
  if (layout === TlpLayout.COMPLETION && tlp.byteCount === 0) {
    throw invalid('byteCount', '0 is not an integer from 1 to 4096');
  }
  if (tlp.processingHint !== 0 && !tlp.hints) throw invalid('processingHint', 'needs hints 1');
  const fault = checkRules(tlp, layout);
  if (fault !== TlpDecode.OK) {
    throw invalid(brokenField(tlp, fault, layout), TLP_DECODE_NAMES[fault] ?? '');
  }
}

function brokenField(tlp: Tlp, fault: TlpDecode, layout: number): string {
  if (fault === TlpDecode.MALFORMED_BYTE_ENABLES) {
    const lastIsWrong = (tlp.lengthDw === 1) === (tlp.lastBe !== 0);
    return lastIsWrong ? 'lastBe' : 'firstBe';
  }
  if (fault === TlpDecode.MALFORMED_FIELD) {
    if (layout === TlpLayout.ATOMIC) return 'address';
    if (tlp.trafficClass !== 0) return 'trafficClass';
    return tlp.attributes === 0 ? 'addressType' : 'attributes';
  }
  return BROKEN_RULE_FIELD[fault] ?? 'kind';
}

/**
 * What is wrong with a TLP for which `decodeTlp` gave `fault`, in words: `malformed TLP: length`. `tlp`
 * is the record it left, which names the field where the rule is one of a field.
 */
export function faultText(fault: TlpDecode, tlp: Tlp): string {
  const words = (TLP_DECODE_NAMES[fault] ?? 'UNKNOWN').toLowerCase().split('_');
  const [first = '', ...rest] = words;
  const text = `${first === 'bad' ? 'bad' : `${first} TLP:`} ${rest.join(' ')}`;
  const layout = LAYOUTS[tlp.kind] as number;
  switch (fault) {
    case TlpDecode.MALFORMED_BYTE_ENABLES:
      return `${text}: ${brokenField(tlp, fault, layout)} (first ${tlp.firstBe}, last ${tlp.lastBe}, ${tlp.lengthDw} DW)`;
    case TlpDecode.MALFORMED_FIELD:
      return layout === TlpLayout.ATOMIC
        ? `${text} address: 0x${tlp.addressLo.toString(16)} is not aligned to the operand`
        : `${text} ${brokenField(tlp, fault, layout)}: must be 0`;
    default:
      return text;
  }
}

function checkHex(object: Record<string, unknown>, tlp: Tlp): void {
  const given = bytesFromHex(readText(object, 'hex'), 'hex');
  const bytes = new Uint8Array(encodedTlpBytes(tlp));
  encodeTlp(tlp, bytes, 0);
  if (Buffer.compare(given, bytes) !== 0) {
    throw invalid('hex', `the other fields encode to ${Buffer.from(bytes).toString('hex')}`);
  }
}
