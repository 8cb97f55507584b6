/** docs/configuration.md has every field the schemas know, in the right section, and no other. */
import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { boxSchema } from './box-config.ts';
import { hostSchema } from './host-config.ts';
import { DEFAULT_TIMEOUTS } from '#manager/domain/pool-options';
import { managerSchema } from './manager-config.ts';
import { parseDuration } from './quantity.ts';

const text = readFileSync(new URL('../../docs/configuration.md', import.meta.url), 'utf8');

/** The fields of the tables of a section, in order. */
function documented(section: string): string[] {
  const [, body = ''] =
    new RegExp(`^## ${section}\\n([^]*?)(?=^## |$(?![^]))`, 'm').exec(text) ?? [];
  return [...body.matchAll(/^\| `([^`]+)` \|/gm)].map(([, field]) => field ?? '');
}

/** All fields below a schema, as the document writes them. */
function fieldsOf(schema: unknown, at = ''): string[] {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) {
    return fieldsOf(schema.unwrap(), at);
  }
  if (schema instanceof z.ZodPipe) return fieldsOf(schema.in, at);
  if (schema instanceof z.ZodArray) return fieldsOf(schema.element, `${at}[]`);
  if (!(schema instanceof z.ZodObject)) return [];
  return Object.entries(schema.shape).flatMap(([name, inner]) => {
    const field = at === '' ? name : `${at}.${name}`;
    return [field, ...fieldsOf(inner, field)];
  });
}

const isLink = (field: string): boolean => field.startsWith('link.');

describe('the reference of configurations', () => {
  it.each([
    ['Host', hostSchema],
    ['Box', boxSchema],
  ])('has every field of a %s and no other', (section, schema) => {
    const expected = fieldsOf(schema).filter((field) => !isLink(field));
    expect(expected.length).toBeGreaterThan(15);
    expect(documented(section).sort()).toEqual(expected.sort());
    expect(documented('Link').sort()).toEqual(fieldsOf(schema).filter(isLink).sort());
  });

  it('has every field of a Manager and no other, with the defaults of the timeouts', () => {
    expect(documented('Manager').sort()).toEqual(fieldsOf(managerSchema).sort());
    const rows = [...text.matchAll(/^\| `timeouts\.(\w+)` \| duration, (\w+) \|/gm)];
    const defaults = rows.map(([, name, span]) => [`${name}Ms`, parseDuration(span ?? '') / 1e6]);
    expect(Object.fromEntries(defaults)).toEqual(DEFAULT_TIMEOUTS);
  });
});
