import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import type { Demand } from './demand.ts';
import type { HostSlotFacts, NodeFacts } from './facts.ts';
import { holds } from './holds.ts';
import { plan } from './plan.ts';
import { PoolIndex } from './pool-index.ts';

const a100: Omit<NodeFacts, 'box' | 'slot' | 'uuid'> = {
  model: 'A100',
  memoryBytes: 40 * 2 ** 30,
  nvlinkGroup: 'g0',
  bars: [{ sizeBytes: 2 ** 24, prefetchable: false, is64: false }],
  state: 'free',
};
const slots: HostSlotFacts[] = [0, 1, 2, 3].map((slot) => ({
  slot,
  free: true,
  nonPrefetchable: { base: 0xe000_0000 + slot * 2 ** 24, limit: 0xe0ff_ffff + slot * 2 ** 24 },
  prefetchable: { base: 1, limit: 0 },
}));
const anything: Omit<Demand, 'gpus' | 'host'> = {
  model: undefined,
  memoryBytes: undefined,
  sameBox: false,
  nvlink: false,
  boxKind: undefined,
  maxRttNs: undefined,
};

it('the example of README.md runs', () => {
  // README example
  const index = new PoolIndex();
  index.setBox({ id: 'b1', kind: 'nvswitch', reachable: true });
  for (const slot of [0, 1]) index.setNode({ ...a100, box: 'b1', slot, uuid: `GPU-${slot}` });
  // biome-ignore format: one line, as README.md shows it
  index.setHost({ id: 'h1', reachable: true, slots, paths: [{ box: 'b1', path: 'lan', up: true, rttNs: 1800 }] });

  const answer = plan(index, { ...anything, gpus: 2, host: 'h1', nvlink: true, maxRttNs: 5000 });
  if (answer.ok && holds(index, answer)) {
    for (const pick of answer.picks) index.setNodeState(pick.box, pick.slot, 'bound');
  }
  const next = plan(index, { ...anything, gpus: 1, host: 'h1' });
  // 1 GPU node is asked for, 0 are free for host h1: wait until others give theirs back
  // end
  expect(answer.ok && answer.picks.map((pick) => [pick.uuid, pick.hostSlot, pick.rttNs])).toEqual([
    ['GPU-0', 0, 1800],
    ['GPU-1', 1, 1800],
  ]);
  expect(!next.ok && next.summary).toBe(
    '1 GPU node is asked for, 0 are free for host h1: wait until others give theirs back',
  );
  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) {
    if (!line.includes('biome-ignore')) expect(readme).toContain(line.trim());
  }
});
