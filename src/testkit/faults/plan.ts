/** What a world looks like, drawn from its seed before anything happens. */
import type { Prng } from '#base/prng';
import type { CreditWindow, LinkOptions } from '#fabric/link-options';
import type { VirtualPathOptions } from '#fabric/virtual-network';
import type { Binding } from './binding.ts';

export interface WorldPlan {
  readonly hosts: readonly string[];
  /** The kinds of device in the slots of each box. */
  readonly boxes: ReadonlyMap<string, readonly Binding['kind'][]>;
  readonly virtualSlots: number;
  readonly pathsPerLink: number;
  readonly path: VirtualPathOptions;
  readonly link: Partial<LinkOptions>;
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
  readonly accelTags: number;
  readonly outstandingReads: number | undefined;
  readonly fairShareBytes: number;
  readonly firstGeneration: number;
  readonly lagNs: number;
  readonly faults: number;
  readonly work: number;
}

const LARGEST_TLP_UNITS = 256;

export function drawPlan(prng: Prng): WorldPlan {
  const hosts = prng.chance(0.5) ? ['h0', 'h1'] : ['h0'];
  const boxes = new Map<string, Binding['kind'][]>();
  // Something to be judged by, something to be judged, and something useful.
  const kinds: Binding['kind'][] = ['probe', 'hostile', 'accel'];
  if (prng.chance(0.4)) kinds.push('probe');
  const boxCount = prng.chance(0.5) ? 2 : 1;
  for (let box = 0; box < boxCount; box++) boxes.set(`b${box}`, []);
  for (const kind of kinds) boxes.get(`b${prng.below(boxCount)}`)?.push(kind);
  const slow = prng.chance(0.3);
  return {
    hosts,
    boxes,
    virtualSlots: kinds.length + (prng.chance(0.5) ? 1 : 0),
    pathsPerLink: prng.chance(0.3) ? 2 : 1,
    path: {
      rttNs: prng.pick([0, 2e3, 20e3, 300e3]),
      ...(slow ? { rateToListener: 1e9, rateToDialer: prng.pick([1e9, 10e9]) } : {}),
      overheadBytes: prng.pick([0, 60]),
      connectTimeoutNs: prng.pick([200e6, 1e9]),
    },
    link: drawLink(prng),
    maxPayloadBytes: prng.pick([128, 256]),
    maxReadRequestBytes: prng.pick([128, 512]),
    accelTags: prng.pick([1, 4, 32]),
    outstandingReads: prng.chance(0.3) ? prng.between(1, 4) : undefined,
    fairShareBytes: prng.pick([200, 16384]),
    // All 53 bits are in use in some worlds.
    firstGeneration: prng.chance(0.3) ? 2 ** 53 - 5000 : prng.between(2, 1000),
    lagNs: prng.pick([0, 1e6, 100e6, 800e6, 4e9]),
    faults: prng.between(3, 9),
    work: prng.between(3, 8),
  };
}

function drawLink(prng: Prng): Partial<LinkOptions> {
  const tight = prng.chance(0.5);
  const window = (tlps: number, dataUnits = LARGEST_TLP_UNITS): CreditWindow => ({
    tlps,
    dataUnits,
  });
  return {
    maxFrameBytes: 8192,
    replayBytes: 32768,
    replayFrames: prng.pick([8, 64]),
    queueBytes: 16384,
    queueTlps: prng.pick([4, 64]),
    windows: tight
      ? [window(prng.between(1, 6)), window(prng.between(1, 3)), window(prng.between(1, 6))]
      : [window(256, 2048), window(64), window(256, 2048)],
    ackDelayNs: prng.pick([0, 100e3, 1e6]),
    // Sequence numbers have 32 bits, and wrap in some worlds.
    initialSequence: prng.chance(0.5) ? 2 ** 32 - prng.between(1, 40) : 0,
  };
}

/** Which slot is behind which virtual slot at first. */
export function drawBindings(prng: Prng, { hosts, boxes, work }: WorldPlan): Binding[] {
  const taken = new Map<string, number>(hosts.map((host) => [host, 0]));
  const bindings: Binding[] = [];
  for (const [box, kinds] of boxes) {
    for (const [slot, kind] of kinds.entries()) {
      const host = prng.pick(hosts);
      const virtualSlot = taken.get(host) ?? 0;
      taken.set(host, virtualSlot + 1);
      const place = { box, slot, host, virtualSlot, generation: 0 };
      bindings.push({ kind, ...place, work: { left: work } });
    }
  }
  return bindings;
}
