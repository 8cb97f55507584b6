import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { identityUri, parseIdentityUri } from './identity.ts';

it('the example of README.md runs', () => {
  // README example
  const uri = identityUri({ kind: 'host', id: 'h1' }); // spiffe://pool/host/h1
  parseIdentityUri(uri); // { kind: 'host', id: 'h1' }
  parseIdentityUri('spiffe://elsewhere/host/h1'); // undefined
  // end
  expect(uri).toBe('spiffe://pool/host/h1');
  expect(parseIdentityUri(uri)).toEqual({ kind: 'host', id: 'h1' });
  expect(parseIdentityUri('spiffe://elsewhere/host/h1')).toBeUndefined();
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});
