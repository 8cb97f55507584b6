/** The mix of demands: sizes 1, 2, 4 and 8, constraints, and one in twenty that cannot be met. */
import type { Prng } from '#base/prng';
import type { Demand } from '#placement/demand';
import { MEMORY_BYTES, MODELS } from './placement-pool.ts';

const ANYTHING: Omit<Demand, 'gpus' | 'host'> = {
  model: undefined,
  memoryBytes: undefined,
  sameBox: false,
  nvlink: false,
  boxKind: undefined,
  maxRttNs: undefined,
};

/** One in twenty is of the second kind. */
export function anyDemand(prng: Prng, host: string): Demand {
  return prng.chance(0.05) ? impossible(prng, host) : possible(prng, host);
}

function possible(prng: Prng, host: string): Demand {
  const gpus = prng.pick([1, 1, 1, 1, 2, 2, 2, 4, 4, 8]);
  const nvlink = gpus > 1 && prng.chance(0.2);
  return {
    ...ANYTHING,
    gpus,
    host,
    nvlink,
    sameBox: !nvlink && gpus > 1 && prng.chance(0.3),
    model: prng.chance(0.5) ? prng.pick(MODELS) : undefined,
    memoryBytes: prng.chance(0.3) ? prng.pick(MEMORY_BYTES) : undefined,
    boxKind: !nvlink && prng.chance(0.1) ? prng.pick(['pcie', 'nvswitch'] as const) : undefined,
    maxRttNs: prng.chance(0.3) ? prng.between(3000, 10_000) : undefined,
  };
}

/** Each for a reason that shows only once everything the host reaches was asked. */
function impossible(prng: Prng, host: string): Demand {
  const demand = possible(prng, host);
  return prng.pick<Demand>([
    { ...demand, model: 'H100-SXM6' },
    { ...demand, memoryBytes: 2 ** 40 },
    { ...demand, maxRttNs: 1400 },
    { ...demand, gpus: 9, sameBox: true },
    { ...demand, gpus: 8, nvlink: true, boxKind: 'pcie' },
  ]);
}

export function nvlink8(host: string): Demand {
  return { ...ANYTHING, gpus: 8, host, nvlink: true };
}
