import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Logger } from './logger.ts';
import { RepeatedLog } from './repeated-log.ts';

afterEach(() => {
  vi.useRealTimers();
});

describe('lines that repeat', () => {
  it('come once at once and then as a number each second', () => {
    vi.useFakeTimers();
    const lines: string[] = [];
    const line =
      (level: string) =>
      (facts: object, message: string): void =>
        void lines.push(`${level} ${message} ${JSON.stringify(facts)}`);
    const log = new RepeatedLog({ warn: line('warn'), info: line('info') } as unknown as Logger);
    for (let port = 1; port <= 1000; port++) log.say('warn', { port }, `from ${port}`, 'refused');
    log.say('info', {}, 'another');
    expect(lines).toEqual(['warn from 1 {"port":1}', 'info another {}']);
    vi.advanceTimersByTime(1000);
    expect(lines.slice(2)).toEqual(['warn from 1000 {"port":1000,"times":999}']);
    vi.advanceTimersByTime(5000);
    expect(lines).toHaveLength(3);
    log.say('warn', { port: 7 }, 'from 7', 'refused');
    expect(lines.at(-1)).toBe('warn from 7 {"port":7}');
  });

  it('of ever new kinds take no memory without end', () => {
    vi.useFakeTimers();
    let lines = 0;
    const log = new RepeatedLog({ warn: () => lines++ } as unknown as Logger);
    for (let kind = 0; kind < 100_000; kind++) log.say('warn', {}, `kind ${kind}`);
    expect(lines).toBe(257);
  });
});
