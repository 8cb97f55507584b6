import { afterEach, describe, expect, it, vi } from 'vitest';
import { createLog, outliveStderr } from './log.ts';

afterEach(() => {
  vi.unstubAllEnvs();
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

it('a log that cannot be written ends nobody (regression: a full log disk ended the manager)', () => {
  const before = process.stderr.listeners('error');
  const ending = vi.fn();
  process.stderr.on('error', ending);
  try {
    outliveStderr();
    process.stderr.emit('error', new Error('ENOSPC'));
    expect(ending).not.toHaveBeenCalled();
  } finally {
    process.stderr.removeAllListeners('error');
    for (const listener of before) process.stderr.on('error', listener as () => void);
  }
});
