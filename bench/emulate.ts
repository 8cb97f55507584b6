/**
 * How fast the emulator is: TLPs a second on one core, natively and through both proxies, and a trace
 * emulated whole, with the memory that takes. `npm run bench -- emulate [TRACE]`; without TRACE a
 * made-up one.
 */
import { Emulator } from '#emulator/emulate';
import { type EmulatedSystem, nativeSystem, pooledSystem } from '#emulator/emulated-system';
import { CopySpace, QueueBuilder } from '#emulator/queue-builder';
import { runWorkload } from '#emulator/run-workload';
import { singleCall } from '#emulator/workload';
import { linkProfile } from '#pcie/link-profile';
import { readTrace } from '#trace/read-trace';
import { syntheticTrace } from '#trace/synthetic';
import { now, Spent } from './support/spent.ts';

const COPY_BYTES = 32 * 2 ** 20;
const ROUNDS = 3;
const profile = linkProfile({});
const device = { channels: 1 };
const memory = { hostBytes: COPY_BYTES, deviceBytes: COPY_BYTES };

/** By the clock, and by the CPU time of the process, which others on the machine disturb less. */
const tlpsPerS = (make: () => EmulatedSystem, direction: 'htod' | 'dtoh'): [number, number] => {
  const spent = new Spent();
  let tlps = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    const system = make();
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
  return [(tlps * 1e3) / Math.min(...spent.ms), (tlps * 1e9) / Math.min(...spent.cpuNs)];
};

const print = (text: string): boolean => process.stdout.write(`${text}\n`);
for (const [name, make] of [
  ['native', () => nativeSystem({ profile, device, ...memory })],
  ['pooled', () => pooledSystem({ profile, device, ...memory })],
] as const) {
  for (const direction of ['htod', 'dtoh'] as const) {
    const [rate, ofCpu] = tlpsPerS(make, direction).map((one) => Math.round(one / 1e3));
    print(
      `${name} ${direction}: ${rate} thousand TLPs/s, ${ofCpu} a second of CPU ` +
        `(best of ${ROUNDS}; goal 500)`,
    );
  }
}
const [, , file] = process.argv;
const timeline = file === undefined ? syntheticTrace('training', 1) : await readTrace(file);
for (const wholeCopies of [false, true]) {
  const beganMs = performance.now();
  const { overheadPct, nativeErrorPct } = new Emulator(timeline).run(profile, { wholeCopies });
  const lastedS = (performance.now() - beganMs) / 1e3;
  const residentMb = process.resourceUsage().maxRSS / 1024;
  print(
    `${file ?? 'synthetic training'}, ${wholeCopies ? 'every TLP' : 'copies in bulk'}: ` +
      `${lastedS.toFixed(1)} s (goal 120), ${residentMb.toFixed(0)} MB resident at most (goal 1000), ` +
      `overhead ${overheadPct.toFixed(3)} %, native error ${nativeErrorPct.toFixed(3)} %`,
  );
}
