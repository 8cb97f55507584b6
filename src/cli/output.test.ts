import { afterEach, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import { DxpuError } from '#base/errors';
import { jsonText, printNote, reportError, yamlOf } from './output.ts';
import { Progress } from './progress.ts';

const NAME = 'a\u001b[31mb\u009b2Jc\u202ed.json';

afterEach(() => vi.restoreAllMocks());

function printed(print: () => void): string {
  let text = '';
  vi.spyOn(process.stderr, 'write').mockImplementation((piece) => {
    text += String(piece);
    return true;
  });
  print();
  return text;
}

// The names of files, and names in them, reached the terminal as they are, escape sequences and all.
it('names in messages cannot act on a terminal', () => {
  const error = new DxpuError('not_found', `${NAME}: no such file\n${NAME}: nor this`);
  expect(printed(() => reportError(error, 'table', false))).toBe(
    'dxpu: a\ufffd[31mb\ufffd2Jc\ufffdd.json: no such file\na\ufffd[31mb\ufffd2Jc\ufffdd.json: nor this\n',
  );
  expect(printed(() => printNote(`wrote ${NAME}`))).toBe(
    'wrote a\ufffd[31mb\ufffd2Jc\ufffdd.json\n',
  );
  let told = '';
  const stream = { isTTY: true, columns: 80, write: (text: string) => (told += text) };
  let nowMs = 0;
  const progress = new Progress(stream, () => nowMs);
  nowMs = 2000;
  progress.tell(() => `reading ${NAME}`);
  expect(told).toBe('\r\u001b[Kreading a\ufffd[31mb\ufffd2Jc\ufffdd.json');
});

it('JSON escapes what could act on a terminal, and loses nothing', () => {
  const text = jsonText({ name: NAME });
  expect(text).toBe('{"name":"a\\u001b[31mb\\u009b2Jc\\u202ed.json"}');
  expect(JSON.parse(text)).toEqual({ name: NAME });
});

// C1 and bidirectional characters stood in YAML as they are.
it('YAML escapes what could act on a terminal, and loses nothing', async () => {
  const value = {
    name: NAME,
    lines: 'a\u202eb\nc\n',
    plain: ['a: b'],
    'k\u2066': { n: 1, e: null },
  };
  const text = await yamlOf(value);
  expect(text).toContain('name: "a\\e[31mb\\u009b2Jc\\u202ed.json"\n');
  expect(text).not.toMatch(/[\u007f-\u009f\u2028-\u202e\u2066-\u2069]/);
  expect(parse(text)).toEqual(value);
});
