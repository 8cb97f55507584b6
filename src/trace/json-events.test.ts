import { describe, expect, it } from 'vitest';
import { type EventsEnd, JsonEvents } from './json-events.ts';
import { endOfValue } from './json-skip.ts';

interface Found extends EventsEnd {
  readonly events: readonly string[];
  readonly fields: Readonly<Record<string, string>>;
  readonly damage: readonly number[];
  readonly isTrace: boolean;
}

/** Names of the events, and the rest, of a text that comes in pieces of `pieceBytes`. */
function find(text: string, pieceBytes = 1 << 20, maxEventBytes?: number): Found {
  const events: string[] = [];
  const fields: Record<string, string> = {};
  const damage: number[] = [];
  const finder = new JsonEvents(
    {
      event: (bytes, start, limit) => {
        const end = endOfValue(bytes, start, limit, 0);
        if (end < 0) return -1;
        const json = Buffer.from(bytes.subarray(start, end)).toString('utf8');
        events.push((JSON.parse(json) as { readonly name?: string }).name ?? '?');
        return end;
      },
      field: (key, bytes) => {
        fields[key] = Buffer.from(bytes).toString('utf8');
      },
      damage: (offset) => damage.push(offset),
    },
    maxEventBytes,
  );
  const bytes = Buffer.from(text);
  let isTrace = true;
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    isTrace = finder.push(new Uint8Array(bytes.subarray(from, from + pieceBytes))) && isTrace;
  }
  return { events, fields, damage, isTrace, ...finder.end() };
}

const event = (name: string): string =>
  `{"ph": "X", "name": "${name}", "args": {"x": [1, {"y": 2}]}}`;
const PIECES = [1, 2, 3, 7, 16, 61, 1000];

describe('JsonEvents', () => {
  const object = `{"a": {"traceEvents": [1]}, "traceEvents": [
  ${event('one')},
  ${event('two')}
 ], "traceName": "x]}.json", "n": 12}
`;

  it.each(PIECES)('finds events and fields, in pieces of %i', (pieceBytes) => {
    expect(find(object, pieceBytes)).toEqual({
      events: ['one', 'two'],
      fields: { a: '{"traceEvents": [1]}', traceName: '"x]}.json"', n: '12' },
      damage: [],
      isTrace: true,
      hasEvents: true,
      cutOffAt: undefined,
      bytes: object.length,
    });
  });

  it.each([
    ['a bare array', `[${event('one')},${event('two')}]`],
    ['one that is not closed', `[${event('one')},\n${event('two')},\n`],
    ['a byte order mark', `\uFEFF${object}`],
    ['white space around', `\r\n\t ${object} \n`],
    ['null and empty slots', `{"traceEvents": [null,,${event('one')}, 7, "x", ${event('two')},]}`],
  ])('reads %s without complaint', (_, text) => {
    for (const pieceBytes of PIECES) {
      const { events, damage, cutOffAt } = find(text, pieceBytes);
      expect([events, damage, cutOffAt]).toEqual([['one', 'two'], [], undefined]);
    }
  });

  it('has no events where the key is missing, or is no array', () => {
    expect(find('{"schema": "1.0.1", "nodes": [{"id": 1}]}').hasEvents).toBe(false);
    expect(find('{"traceEvents": {"name": "x"}}').hasEvents).toBe(false);
  });

  it.each(['SQLite format 3\u0000', 'Type,Time(%)', '"text"', '12'])('%j is no trace', (text) => {
    expect(find(text).isTrace).toBe(false);
  });

  it.each([
    ['a control character in text', '{"ph": "X", "name": "a\u0001b"}', 'a\u0001'.length + 20],
    ['a line break in text', '{"ph": "X", "name": "a\nb"}', 22],
    ['an unescaped quote', '{"ph": "X", "name": "a"b"}', 23],
    ['an object in unescaped quotes', '{"ph": "X", "name": "{"device": "cuda"}x"}', 23],
    ['an unescaped backslash at the end of text', '{"ph": "X", "name": "C:\\", "pid": 1}', 28],
    ['an unknown escape', '{"ph": "X", "name": "C:\\dir"}', 24],
    ['a missing comma', '{"ph": "X" "name": "a"}', 11],
    ['a missing brace', '{"ph": "X", "args": {"x": 1}', undefined],
    ['a missing bracket', '{"ph": "X", "args": {"x": [1}}', 28],
    ['a bracket that is never closed', '{"ph": "X", "args": [', undefined],
    ['text that is never closed', '{"ph": "X", "name": "a', undefined],
    ['something else', 'Segmentation fault', 'Segmentation'.length],
  ])('drops one event for %s', (_, damaged, at) => {
    const head = '{"traceEvents": [';
    const before = `${event('one')},\n`;
    const text = `${head}${before}${damaged},\n${event('two')},\n${event('three')}\n], "traceName": "x"}`;
    for (const pieceBytes of PIECES) {
      const { events, damage, fields, cutOffAt } = find(text, pieceBytes);
      expect([events, damage.length, cutOffAt]).toEqual([['one', 'two', 'three'], 1, undefined]);
      expect(fields['traceName']).toBe('"x"');
      if (at !== undefined) expect(damage[0]).toBe(head.length + before.length + at);
    }
  });

  it('goes on behind the events where the last one is damaged', () => {
    const text = `{"traceEvents": [${event('one')}, {"name": "a"b"}], "traceName": "x"}`;
    for (const pieceBytes of PIECES) {
      const { events, damage, fields, cutOffAt } = find(text, pieceBytes);
      expect([events, damage.length, fields['traceName'], cutOffAt]).toEqual([
        ['one'],
        1,
        '"x"',
        undefined,
      ]);
    }
  });

  it('finds the events behind a damaged field', () => {
    const text = `{"path": "C:\\", "traceEvents": [${event('one')}, ${event('two')}]}`;
    for (const pieceBytes of PIECES) {
      const { events, damage } = find(text, pieceBytes);
      expect([events, damage.length]).toEqual([['one', 'two'], 1]);
    }
  });

  it('says where a file that ends too early ends, and keeps what came before', () => {
    const start = object.indexOf('{"ph": "X", "name": "two"');
    const behindTwo = object.indexOf('\n ], "traceName"');
    for (let length = 1; length < object.trimEnd().length; length += 1) {
      const { events, damage, cutOffAt, fields } = find(object.slice(0, length), 10);
      expect(damage).toEqual([]);
      const isInTwo = length > start && length < behindTwo;
      expect(cutOffAt).toBe(isInTwo ? start : inEvent(object, length));
      expect(events).toEqual(
        ['one', 'two'].slice(0, length >= behindTwo ? 2 : length >= start - 4 ? 1 : 0),
      );
      expect(Object.keys(fields).length).toBeLessThan(3);
    }
  });

  it('survives many damaged events, one behind the other', () => {
    const texts = Array.from({ length: 2000 }, (_, index) =>
      index % 2 === 0 ? event(`e${index}`) : `{"ph": "X", "args": [{"x": "${index}`,
    );
    const { events } = find(`{"traceEvents": [${texts.join(',\n')}]}`, 5000);
    expect(events).toEqual(Array.from({ length: 1000 }, (_, index) => `e${2 * index}`));
  });

  it('takes an argument of 3 MB in small pieces', () => {
    const text = `[{"ph": "X", "name": "long", "args": {"x": "${'x'.repeat(3_000_000)}"}}, ${event('next')}]`;
    expect(find(text, 4096).events).toEqual(['long', 'next']);
  });

  it('passes over a field too long to be of use', () => {
    const text = `{"INFO": "${'x'.repeat(5_000_000)}", "traceEvents": [${event('one')}]}`;
    const { events, fields, damage } = find(text, 1 << 18);
    expect([events, fields, damage]).toEqual([['one'], {}, []]);
  });

  it('drops an event too long to hold, and keeps those behind it', () => {
    const text = `[${event('one')}, ${event('x'.repeat(100_000))}, ${event('two')}]`;
    const { events, damage } = find(text, 4096, 50_000);
    expect([events.map((name) => name.slice(0, 9)), damage.length]).toEqual([['one', 'two'], 1]);
  });
});

/** The start of the event that a cut at `length` lies in, or the cut. */
function inEvent(text: string, length: number): number {
  const start = text.indexOf('{"ph": "X", "name": "one"');
  const end = text.indexOf('},\n  {"ph"') + 1;
  return length > start && length < end ? start : length;
}
