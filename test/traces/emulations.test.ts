/** Shared traces emulated: the native run meets the record, the pooled one agrees with the replay. */
import { describe, expect, it } from 'vitest';
import { Emulator } from '#emulator/emulate';
import { termsOf } from '#perfmodel/terms';
import { WorkloadModel } from '#perfmodel/workload-model';
import { linkProfile } from '#pcie/link-profile';
import { readTrace } from '#trace/read-trace';
import { hasTraces, traceNames, tracePath, WHERE } from './shared-traces.ts';

/** No work or no calls: refused, as refusals.test.ts and below. */
const WITHOUT_CALLS = ['cpu-only', 'rank-missing', 'large-integers'];
/** Recorded on a faster link than the default profile's. */
const ON_GEN_4 = ['saxpy-mpi'];

const traces = ['kineto', 'nsys'].flatMap((kind) =>
  traceNames(kind)
    .filter((name) => !WITHOUT_CALLS.some((other) => name.startsWith(other)))
    .map((name): [string, string] => [`${kind}/${name}`, tracePath(kind, name)]),
);

describe.skipIf(!hasTraces)(`emulations of the shared traces (${WHERE})`, () => {
  it.each(traces)('%s', async (name, path) => {
    const isGen4 = ON_GEN_4.some((part) => name.includes(part));
    const link = isGen4 ? { generation: 4 as const, mpsBytes: 256, mrrsBytes: 512 } : {};
    const timeline = await readTrace(path);
    const profile = linkProfile({ ...link, addedRttNs: 5600 });
    const { nativeErrorPct, overheadPct } = new Emulator(timeline).run(profile);
    expect(Math.abs(nativeErrorPct)).toBeLessThan(1);
    const replayPct = new WorkloadModel(timeline).replayOverheadPct(termsOf(profile))!;
    expect(Math.abs(overheadPct - replayPct)).toBeLessThan(Math.max(0.3, 0.1 * replayPct));
  });

  it('refuses a trace without a CPU side, and says what to use', async () => {
    const timeline = await readTrace(tracePath('nvprof', 'vecadd-gtx950.csv'));
    expect(() => new Emulator(timeline).run(linkProfile({}))).toThrow(
      /no host calls.*dxpu predict/,
    );
  });
});
