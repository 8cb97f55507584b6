import { describe, expect, it } from 'vitest';
import { Progress } from './progress.ts';

function rig(isTTY: boolean): {
  at: (ms: number, text: string) => void;
  progress: Progress;
  written: string[];
} {
  const written: string[] = [];
  let now = 0;
  const stream = { isTTY, columns: 20, write: (text: string) => void written.push(text) };
  const progress = new Progress(stream, () => now);
  const at = (ms: number, text: string): void => {
    now = ms;
    progress.tell(() => text);
  };
  return { at, progress, written };
}

describe('progress', () => {
  it('says nothing within the first second', () => {
    const { at, progress, written } = rig(true);
    at(0, 'a');
    at(999, 'b');
    progress.clear();
    expect(written).toEqual([]);
  });

  it('changes one line of a terminal, cut to its width, and takes it away', () => {
    const { at, progress, written } = rig(true);
    at(1000, 'reading 1 %');
    at(1050, 'too soon');
    at(1100, 'reading a trace of a long name 2 %');
    progress.clear();
    expect(written).toEqual([
      '\r\u001b[Kreading 1 %',
      '\r\u001b[Kreading a trace of ',
      '\r\u001b[K',
    ]);
  });

  it('is a line now and then elsewhere, none twice', () => {
    const { at, progress, written } = rig(false);
    at(1000, 'reading 1 %');
    at(3000, 'reading 20 %');
    at(6000, 'reading 40 %');
    at(11_000, 'reading 40 %');
    progress.clear();
    expect(written).toEqual(['reading 1 %\n', 'reading 40 %\n']);
  });
});
