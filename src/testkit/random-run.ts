/** Runs a random workload pooled and compares everything with what must be; see `random-workload.ts`. */
import assert from 'node:assert/strict';
import { Prng } from '#base/prng';
import { type EmulatedSystem, pooledSystem } from '#emulator/emulated-system';
import { runWorkload, type WorkloadRun } from '#emulator/run-workload';
import { linkProfile } from '#pcie/link-profile';
import { randomWorkload, SOURCE_BYTES, sourceByte, TARGET_BYTES } from './random-workload.ts';

const HOST_BYTES = SOURCE_BYTES + TARGET_BYTES;

export interface RandomRunOptions {
  /** Called as the run begins. */
  readonly begun?: (system: EmulatedSystem) => void;
  /** In place of what the seed says; the rest of it is then another. */
  readonly addedRttNs?: number;
  readonly networkGbps?: number;
  /** As `SystemOptions` has it. */
  readonly lagNs?: number;
}

/** One run with the settings of the seed. Throws, naming the seed, when anything is not as it must be. */
export function checkedRandomRun(seed: number, options: RandomRunOptions = {}): WorkloadRun {
  const prng = new Prng(seed);
  const mps = prng.pick([128, 256, 512]);
  const profile = linkProfile({
    tags: prng.pick([1, 2, 7, 32, 140]),
    mpsBytes: mps,
    mrrsBytes: prng.pick([128, 256, 512, 4096]),
    addedRttNs: options.addedRttNs ?? prng.pick([0, 700, 5600, 20_000]),
    networkGbps: options.networkGbps ?? prng.pick([1, 25, 200]),
  });
  const system = pooledSystem({
    profile,
    seed,
    ...(options.lagNs === undefined ? {} : { lagNs: options.lagNs }),
    deviceBytes: 2 ** 20,
    hostBytes: HOST_BYTES,
    device: {
      channels: 4,
      prefetchCommands: prng.pick([1, 4, 16, 64]),
      fetchCommands: 1,
      fetchesInFlight: prng.pick([1, 2, 8]),
      sharedCopyEngines: prng.chance(0.5),
    },
  });
  const host = system.soft.memory.alloc(HOST_BYTES, 4096);
  const random = randomWorkload(seed, host.address);
  for (let i = 0; i < SOURCE_BYTES; i++) {
    host.bytes[i] = sourceByte(i, true);
    system.deviceMemory[i] = sourceByte(i, false);
  }
  const run = runWorkload(system, random.workload, {
    profile,
    limitNs: 10e9,
    begun: () => options.begun?.(system),
  });
  const { counts } = run;
  const { up, down } = counts;
  const of = (tlps: Readonly<Record<string, number>>, ...kinds: string[]): number =>
    kinds.reduce((sum, kind) => sum + (tlps[kind] ?? 0), 0);
  const reads = of(up.tlps, 'MRd32', 'MRd64');
  const found = {
    asked: counts.bytesAsked,
    answered: counts.bytesAnswered,
    readsOpen: counts.readsOpen,
    readsAnswered: counts.readsAnswered,
    written: up.payloadBytes,
    doorbells: of(down.tlps, 'MWr32', 'MWr64'),
    otherUp: up.total - reads - of(up.tlps, 'MWr32', 'MWr64'),
    otherDown: down.total - of(down.tlps, 'CplD', 'MWr32', 'MWr64'),
    deviceDiffers: Buffer.compare(
      system.deviceMemory.subarray(SOURCE_BYTES, SOURCE_BYTES + TARGET_BYTES),
      random.deviceTarget,
    ),
    hostDiffers: Buffer.compare(host.bytes.subarray(SOURCE_BYTES), random.hostTarget),
    tooManyReads: Math.max(0, counts.mostReads - profile.tags),
    strayInterrupts: system.soft.strayInterrupts,
  };
  const expected = {
    asked: random.readBytes,
    answered: random.readBytes,
    readsOpen: 0,
    readsAnswered: reads,
    written: random.writeBytes,
    doorbells: random.doorbells,
    otherUp: 0,
    otherDown: 0,
    deviceDiffers: 0,
    hostDiffers: 0,
    tooManyReads: 0,
    strayInterrupts: 0,
  };
  assert.deepEqual(found, expected, `seed ${seed}`);
  return run;
}
