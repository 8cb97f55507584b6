import * as os from 'node:os';
import * as path from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { UsageError } from './output.ts';
import { stateFolder } from './state-folder.ts';

describe('the state folder', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it('is never the usual one for an empty option (regression: down --purge of the wrong pool)', () => {
    expect(() => stateFolder('')).toThrow(UsageError);
  });

  it('is the usual one for empty variables', () => {
    vi.stubEnv('DXPU_STATE', '');
    vi.stubEnv('XDG_STATE_HOME', '');
    expect(stateFolder(undefined)).toBe(path.join(os.homedir(), '.local', 'state', 'dxpu'));
    vi.stubEnv('XDG_STATE_HOME', '/x');
    expect(stateFolder(undefined)).toBe('/x/dxpu');
    vi.stubEnv('DXPU_STATE', '/y');
    expect(stateFolder(undefined)).toBe('/y');
    expect(stateFolder('/z')).toBe('/z');
  });
});
