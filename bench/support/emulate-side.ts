/**
 * One side of the emulate benchmark, in a process of its own: `rate native|pooled htod|dtoh ROUNDS`, or
 * `trace bulk|whole [TRACE]`. Prints one JSON object.
 */
import { Emulator } from '#emulator/emulate';
import { nativeSystem, pooledSystem } from '#emulator/emulated-system';
import { CopySpace, QueueBuilder } from '#emulator/queue-builder';
import { runWorkload } from '#emulator/run-workload';
import { singleCall } from '#emulator/workload';
import { linkProfile } from '#pcie/link-profile';
import { readTrace } from '#trace/read-trace';
import { syntheticTrace } from '#trace/synthetic';
import { now, Spent } from './spent.ts';

const COPY_BYTES = 32 * 2 ** 20;
const profile = linkProfile({});

export interface RateResult {
  /** By the clock, and a second of the processor's time, round by round. */
  readonly perS: readonly number[];
  readonly perCpuS: readonly number[];
}

export interface TraceResult {
  readonly lastedS: number;
  readonly peakRssBytes: number;
  readonly overheadPct: number;
  readonly nativeErrorPct: number;
}

function rate(isPooled: boolean, direction: 'htod' | 'dtoh', rounds: number): RateResult {
  const spent = new Spent();
  let tlps = 0;
  for (let round = 0; round < rounds; round += 1) {
    const system = (isPooled ? pooledSystem : nativeSystem)({
      profile,
      device: { channels: 1 },
      hostBytes: COPY_BYTES,
      deviceBytes: COPY_BYTES,
    });
    const space = new CopySpace(system.soft.memory, COPY_BYTES);
    const builder = new QueueBuilder(0, profile, space);
    builder[direction](0, 0, COPY_BYTES, []);
    builder.fenceLast();
    const workload = singleCall(builder.take());
    const begin = now();
    const { counts } = runWorkload(system, workload, { profile });
    spent.since(begin);
    tlps = counts.up.total + counts.down.total;
  }
  return {
    perS: spent.ms.map((ms) => (tlps * 1e3) / ms),
    perCpuS: spent.cpuNs.map((ns) => (tlps * 1e9) / ns),
  };
}

async function trace(wholeCopies: boolean, file: string | undefined): Promise<TraceResult> {
  const timeline = file === undefined ? syntheticTrace('training', 1) : await readTrace(file);
  const begin = now();
  const { overheadPct, nativeErrorPct } = new Emulator(timeline).run(profile, { wholeCopies });
  return {
    lastedS: (now().ms - begin.ms) / 1e3,
    peakRssBytes: process.resourceUsage().maxRSS * 1024,
    overheadPct,
    nativeErrorPct,
  };
}

const [, , what, how, which, rounds] = process.argv;
const result =
  what === 'rate'
    ? rate(how === 'pooled', which === 'dtoh' ? 'dtoh' : 'htod', Number(rounds))
    : await trace(how === 'whole', which);
process.stdout.write(JSON.stringify(result));
