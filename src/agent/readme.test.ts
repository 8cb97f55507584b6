import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import type { AgentReport, BoxHello } from '#proto/agent-messages';
import { ModelBoxPlane } from '#testkit/model-plane';
import { BoxAgentCore } from './core/box-agent.ts';

it('the example of README.md runs', () => {
  const now = 0 as Nanos;
  const plane = new ModelBoxPlane(1);
  const heard: AgentReport[] = [];
  const hello: BoxHello = {
    kind: 'box',
    id: 'b1',
    instance: 'i1',
    version: '0',
    boxKind: 'pcie',
    zone: '',
    endpoints: [],
  };
  // README example
  const agent = new BoxAgentCore({ hello, plane });
  agent.connected(now, { hello: () => {}, report: (report) => heard.push(report) });
  const row = { host: 'h1', generation: 7, path: 'net0' };
  agent.order(now, { kind: 'box', revision: 1, whole: true, slots: [{ slot: 0, row }] });
  const said = heard.at(-1); // applied: 1, slots: [{ slot: 0, row: { host: 'h1', generation: 7 }, … }]
  // end
  expect(said).toMatchObject({
    applied: 1,
    slots: [{ slot: 0, row: { host: 'h1', generation: 7 } }],
  });
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});
