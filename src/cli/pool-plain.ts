/** Messages of the pool's contract as plain values: for JSON, YAML and tables. */
import type { DescEnum, DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { type BindingState, BindingStateSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';

const TIMESTAMP = 'google.protobuf.Timestamp';

/**
 * Every field under its name in the contract (camelCase): enumerations as words in lower case, times as
 * ISO 8601, 64-bit numbers as numbers and beyond 2^53 as decimal text. Absent messages are left out.
 */
export function plainOf<D extends DescMessage>(
  schema: D,
  message: MessageShape<D>,
): Record<string, unknown> {
  return plainMessage(schema, message as unknown as Readonly<Record<string, unknown>>);
}

function plainMessage(
  schema: DescMessage,
  message: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const plain: Record<string, unknown> = {};
  for (const field of schema.fields) {
    const value = message[field.localName];
    if (value === undefined) continue;
    plain[field.localName] =
      field.fieldKind === 'list'
        ? (value as readonly unknown[]).map((item) => plainValue(field, item))
        : plainValue(field, value);
  }
  return plain;
}

function plainValue(field: DescField, value: unknown): unknown {
  if (typeof value === 'bigint') return plainInteger(value);
  if (field.message?.typeName === TIMESTAMP) return timeOf(value as Timestamp);
  if (field.message !== undefined) {
    return plainMessage(field.message, value as Readonly<Record<string, unknown>>);
  }
  if (field.enum !== undefined) return wordOf(field.enum, value as number);
  return value;
}

function plainInteger(value: bigint): number | string {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value.toString();
}

/** `box-kind` of BOX_KIND; a number this version does not know stays one. */
function wordOf(schema: DescEnum, value: number): string {
  const known = schema.value[value];
  if (known === undefined) return String(value);
  const name = known.name.toLowerCase();
  return name.replace(schema.sharedPrefix ?? '', '').replaceAll('_', '-');
}

/** `attached`, `failed`, … */
export function stateWord(state: BindingState): string {
  return wordOf(BindingStateSchema, state);
}

/** The state a word names; `undefined` for a word that names none. */
export function stateOfWord(word: string): BindingState | undefined {
  return BindingStateSchema.values.find(
    ({ number }) => number !== 0 && wordOf(BindingStateSchema, number) === word,
  )?.number as BindingState | undefined;
}

export function timeOf(time: Timestamp | undefined): string {
  return time === undefined ? '' : new Date(timestampMs(time)).toISOString();
}
