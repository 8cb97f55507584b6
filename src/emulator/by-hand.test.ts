import { expect, it } from 'vitest';
import { linkProfile } from '#pcie/link-profile';
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import { nativeSystem, pooledSystem } from './emulated-system.ts';
import { runWorkload } from './run-workload.ts';
it('x', () => {
  for (const added of [0, 2000, 5600]) {
  const profile = linkProfile({ addedRttNs: added });
  const w = { calls: [{ gapNs: 0, ownNs: 0, fences: [{ queue: 0, command: 1 }], after: [] }], threads: [[0]],
    queues: [[{ call: 0, delayNs: 0, commands: [{ opcode: Opcode.NOP, flags: FLAG_FENCE }] }]] };
  const n = runWorkload(nativeSystem({ profile }), w, { profile });
  const p = runWorkload(pooledSystem({ profile }), w, { profile });
  console.log(n.spanNs, p.spanNs, p.spanNs-n.spanNs, JSON.stringify(p.counts), p.frameBytesUp);
  }
});
