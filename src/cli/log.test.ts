import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLog, type Logger } from './log.ts';
import { RepeatedLog } from '#agent/daemon/repeated-log';

afterEach(() => {
  vi.unstubAllEnvs();
  vi.useRealTimers();
});

describe('the level of the log', () => {
  it('named wrong by DXPU_LOG is refused with the choices, not by the library', () => {
    vi.stubEnv('DXPU_LOG', 'loud');
    expect(() => createLog('box-b1')).toThrow(
      'DXPU_LOG is "loud": it must be one of debug, info, warn, error',
    );
    vi.stubEnv('DXPU_LOG', 'warn');
    expect(createLog('box-b1').level).toBe('warn');
    vi.stubEnv('DXPU_LOG', '');
    expect(createLog('box-b1').level).toBe('info');
  });
});

it('a log that is no terminal is plain, even where CI is set (regression: coloured)', async () => {
  vi.stubEnv('CI', 'true');
  vi.resetModules();
  const written = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const { createLog: createFresh } = await import('./log.ts');
    createFresh('box-b1', { format: 'text' }).warn({ port: 7 }, 'refused');
    expect(written.mock.calls.join('')).toMatch(/^[\d:.]{12} warn {2}box-b1 {2}refused port=7\n$/);
  } finally {
    written.mockRestore();
  }
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
