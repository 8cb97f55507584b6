import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { agentMessageFromWire, reportToWire } from './agent-wire.ts';

it('the example of README.md runs', () => {
  // README example
  const slots = [
    { slot: 0, node: undefined, state: 'unused', clean: true, row: undefined, reason: '' },
  ] as const;
  const wire = reportToWire({ kind: 'box', applied: 0, whole: true, slots, refused: '' });
  const heard = agentMessageFromWire(wire).report; // with the same slots, checked
  // end
  expect(heard?.slots).toEqual(slots);
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});
