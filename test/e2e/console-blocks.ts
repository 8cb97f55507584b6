/** The commands that a document shows in its `console` blocks, and what it says they print. */
import { readFileSync } from 'node:fs';

export interface Step {
  readonly line: number;
  /** What is piped into it. */
  readonly input: string | undefined;
  readonly args: readonly string[];
  readonly expected: string;
}

/** In order. `file` is a URL; every command is one of `dxpu`. */
export function consoleSteps(file: URL): Step[] {
  const found: Step[] = [];
  let inBlock = false;
  let expected: string[] = [];
  for (const [index, line] of readFileSync(file, 'utf8').split('\n').entries()) {
    if (!inBlock) inBlock = line === '```console';
    else if (line === '```') inBlock = false;
    else if (line.startsWith('$ ')) {
      const match = /^\$ (?:echo (\S+) \| )?dxpu (.*)$/.exec(line);
      if (match === null) throw new Error(`${file.pathname}:${index + 1}: not a command of dxpu`);
      const lines: string[] = [];
      expected = lines;
      found.push({
        line: index + 1,
        input: match[1],
        args: (match[2] ?? '').split(' '),
        get expected() {
          return lines.join('\n');
        },
      });
    } else expected.push(line);
  }
  return found;
}

/** `…` stands for any text in a line; alone on a line, for any lines. */
export function patternOf(expected: string): RegExp {
  const escaped = expected.split(/(\n…(?=\n|$)|…)/).map((part) => {
    if (part === '…') return '.*';
    return part === '\n…' ? '\n[^]*' : part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  });
  return new RegExp(`^${escaped.join('')}\\s*$`);
}
