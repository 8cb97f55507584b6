/** What `dxpu emulate` prints, refuses and writes. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { emulateAnswer, type MicrobenchAnswer, type TraceAnswer } from '#emulator/answer';
import { microbenchTable, spanWords, tagWords } from '#emulator/answer-words';
import { sharedProfile } from '#emulator/emulate-answer';
import { linkProfile } from '#pcie/link-profile';
import { TLP_KIND_NAMES } from '#pcie/tlp';
import { nearWorker } from '#testkit/near-worker';
import { printed, type Printed } from '#testkit/printed';
import { nvprofSample } from '#testkit/trace-samples';
import { runEmulateJob } from '../emulate-job.ts';
import { TracePrinter } from '../emulate-printer.ts';
import { PcapngReader } from '../pcapng-reader.ts';
import type { AnswerFormat } from '../program-options.ts';
import { buildProgram } from '../program.ts';
import { emulate, type EmulateCommandOptions } from './emulate.ts';
import { emulateMicrobench, type MicrobenchOptions } from './emulate-microbench.ts';

const folder = mkdtempSync(path.join(tmpdir(), 'dxpu-emulate-'));
const at = (name: string): string => path.join(folder, name);
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => {
  process.exitCode = undefined;
});

const OPTIONS: EmulateCommandOptions = {
  sharing: 1,
  budget: 10,
  seed: 1,
  traceDetail: 200,
  output: 'table',
};

function run(options: Partial<EmulateCommandOptions>, file?: string): Promise<Printed> {
  return printed(() => emulate(file, { ...OPTIONS, ...options }, () => nearWorker(runEmulateJob)));
}

function runBench(
  kind: 'bandwidth' | 'latency' | 'launch-rate',
  options: Partial<MicrobenchOptions>,
): Promise<Printed> {
  return printed(() =>
    emulateMicrobench(kind, { sharing: 1, output: 'table', ...options }, () =>
      nearWorker(runEmulateJob),
    ),
  );
}

/** Of TLPs by direction and kind, in the order they are in the file. */
function tlpsOf(file: string): string[] {
  const reader = new PcapngReader();
  const tlps: string[] = [];
  for (const packet of reader.push(readFileSync(file))) {
    if ('error' in packet) throw new Error(packet.error);
    const { direction, tlp } = packet.packet;
    tlps.push(`${direction} ${TLP_KIND_NAMES[tlp[0] ?? 0] ?? ''}`);
  }
  reader.end();
  expect(reader.lost).toBe(0);
  return tlps;
}

describe('dxpu emulate', () => {
  it('is unsure where its native run is not what was recorded', async () => {
    const { stdout } = await run({ example: 'training', gen: 1, lanes: 1, output: 'json' });
    const answer = emulateAnswer.parse(JSON.parse(stdout)) as TraceAnswer;
    expect(Math.abs(answer.nativeErrorPct)).toBeGreaterThan(1);
    expect(answer.within).toBe('unsure');
  });

  it('prints the three estimates by the schema; its files hold every TLP it counts', async () => {
    const [trace, capture] = [at('happened.json'), at('link.pcapng')];
    const files = { trace, capture, plot: at('overhead.png'), html: at('answer.html') };
    const { stdout, stderr } = await run({ example: 'inference', ...files, output: 'json' });
    const answer = emulateAnswer.parse(JSON.parse(stdout)) as TraceAnswer;
    const { additiveOverheadPct, replayOverheadPct, emulatedOverheadPct } = answer.estimates;
    expect(Math.abs(answer.nativeErrorPct)).toBeLessThan(1);
    expect(Math.abs(emulatedOverheadPct - replayOverheadPct!)).toBeLessThan(
      Math.max(0.3, 0.1 * replayOverheadPct!),
    );
    expect(additiveOverheadPct).toBeGreaterThanOrEqual(replayOverheadPct!);
    expect(answer.within).toBe(emulatedOverheadPct <= 10 ? 'yes' : 'no');

    // The capture: what is printed, behind what setting up took.
    const { up, down } = answer.pooled;
    const tlps = tlpsOf(capture);
    const setUp = tlps.length - up.total - down.total;
    const counts: Record<string, number> = {};
    for (const tlp of tlps.slice(setUp)) counts[tlp] = (counts[tlp] ?? 0) + 1;
    const printedCounts = Object.fromEntries(
      (['up', 'down'] as const).flatMap((way) =>
        Object.entries(answer.pooled[way].tlps).map(([kind, count]) => [`${way} ${kind}`, count]),
      ),
    );
    expect(counts).toEqual(printedCounts);
    expect(tlps[0]).toBe('down CfgRd0');

    // The Chrome trace: the same TLPs, in no more bursts than were asked for.
    const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8')) as { traceEvents: Event[] };
    const slices = traceEvents.filter(({ ph }) => ph === 'X');
    expect(slices.every(({ dur = 0 }) => dur >= 0)).toBe(true);
    const pids = Object.fromEntries(
      traceEvents
        .filter(({ name }) => name === 'process_name')
        .map(({ pid, args }) => [args?.['name'], pid]),
    );
    expect(Object.keys(pids)).toEqual(['host', 'GPU work', 'accelerator', 'TLPs', 'device link']);
    const ofTlps = slices.filter(({ pid }) => pid === pids['TLPs']);
    const seen = [0, 1, 2, 3].map((tid) =>
      ofTlps
        .filter((event) => event.tid === tid)
        .reduce((sum, { args = {} }) => {
          const { bytes: _bytes, ...sorts } = args;
          return sum + Object.values(sorts).reduce((all: number, one) => all + Number(one), 0);
        }, 0),
    );
    expect(ofTlps.length).toBeLessThanOrEqual(4 * 200);
    // At both ends of the path.
    expect(
      seen.map((count, tid) => [down.total, down.total, up.total, up.total][tid]! - count),
    ).toEqual(seen.map(() => 0));
    const kernels = slices.filter(({ pid, tid }) => pid === pids['GPU work'] && tid === 0);
    expect(kernels.some(({ name }) => name.includes('gemm'))).toBe(true);
    // Every command of a ring was fetched once.
    const ofDevice = slices.filter(({ pid }) => pid === pids['accelerator']);
    const fetches = ofDevice.filter(({ name }) => name === 'fetch');
    const fetched = fetches.reduce((sum, { args }) => sum + Number(args?.['commands']), 0);
    expect(fetched).toBe(ofDevice.length - fetches.length);
    expect(traceEvents.some(({ ph, name }) => ph === 'C' && name === 'tags in use, most')).toBe(
      true,
    );

    expect(readFileSync(at('overhead.png')).subarray(1, 4).toString()).toBe('PNG');
    expect(readFileSync(at('answer.html'), 'utf8')).toContain('What passed the link');
    expect(
      stderr
        .trimEnd()
        .split('\n')
        .map((line) => line.split(':')[0]),
    ).toEqual(
      [capture, trace, at('overhead.png'), at('answer.html')].map((file) => `wrote ${file}`),
    );
    expect(readdirSync(folder).filter((name) => name.endsWith('.tmp'))).toEqual([]);
  });

  it('has an answer for each link in every form', async () => {
    const both = { example: 'inference', link: ['dxpu-4.9us', 'native'] } as const;
    const { stdout } = await run({ ...both, sharing: 2, output: 'json' });
    const answers = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as TraceAnswer);
    expect(answers.map(({ link }) => [link.name, link.networkGbps, link.sharing])).toEqual([
      ['dxpu-4.9us', 200, 2],
      ['native', null, 2],
    ]);
    // Proxies and a network without a round trip: nothing is lost that can be seen.
    expect(Math.abs(answers[1]!.estimates.emulatedOverheadPct)).toBeLessThan(0.1);
    const shown = async (format: AnswerFormat, all = answers): Promise<string> => {
      const printer = new TracePrinter(format);
      const { stdout: text } = await printed(async () => {
        for (const answer of all) printer.add(answer);
        await printer.end();
      });
      return text;
    };
    const rows = (await shown('csv'))
      .trimEnd()
      .split('\n')
      .map((line) => line.split(','));
    expect(rows.map((row) => row.length)).toEqual(rows.map(() => rows[0]!.length));
    expect(rows[0]!.slice(0, 4)).toEqual(['file', 'format', 'gpus', 'link']);
    const table = await shown('table');
    expect(table).toContain('FITS');
    expect(table).toContain('SYNTHETIC: a made-up trace');
    expect(table.split('\n').every((line) => line.length <= 80)).toBe(true);
    // Warnings reached the terminal as they are, and a long name ran over its edge.
    const evil = `\u001b[2J${'x'.repeat(90)}`;
    const link = { ...answers[0]!.link, name: evil };
    const named = { ...answers[0]!, trace: evil, gpus: [evil], link, warnings: [evil] };
    const lines = await shown('table', [{ ...named, format: 'kineto' }]);
    expect(lines).not.toContain('\u001b');
    expect(lines.split('\n').every((line) => line.length <= 80)).toBe(true);
    expect(await shown('yaml')).toMatch(/^- schema: dxpu.emulate\/1\n/);
  });

  it('gives one of two GPUs half the rate of the network', () => {
    const link = linkProfile({ name: 'x', networkGbps: 20 });
    expect(sharedProfile(link, 2)).toEqual({ ...link, networkGbps: 10 });
    expect(sharedProfile(link, 1)).toEqual(link);
  });
});

interface Event {
  readonly ph: string;
  readonly pid: number;
  readonly tid?: number;
  readonly name: string;
  readonly dur?: number;
  readonly args?: Readonly<Record<string, unknown>>;
}

describe('what a reader of an answer has to know', () => {
  it('says what was lost in reading the trace (regression: an end that is missing was not told)', async () => {
    const event = { ph: 'X', pid: 1, args: { correlation: 1, device: 0, stream: 7 } };
    const traceEvents = [
      { ...event, cat: 'cuda_runtime', name: 'cudaLaunchKernel', tid: 1, ts: 100, dur: 5 },
      { ...event, cat: 'kernel', name: 'k', tid: 7, ts: 110, dur: 20 },
    ];
    const whole = JSON.stringify({ traceEvents });
    writeFileSync(at('cut.json'), `${whole.slice(0, -2)},{"ph":"X","na`);
    const removed: unknown[] = [];
    const onRemoved = (name: unknown): void => void removed.push(name);
    process.on('removeListener', onRemoved);
    const { stdout } = await run({ output: 'json' }, at('cut.json'));
    process.removeListener('removeListener', onRemoved);
    // Node ignores it until a listener is removed: past `ulimit -f` a picture then ended the process.
    expect(removed).not.toContain('SIGXFSZ');
    const { warnings } = JSON.parse(stdout) as TraceAnswer;
    expect(warnings[0]).toContain('1 part at the end is missing');
  });

  it('rounds neither a rate nor an error to what it is not', () => {
    // A launch a second is a millionth of a million.
    const launch = {
      kind: 'launch-rate',
      rows: [{ rttNs: 1e9, isNative: false, launchesPerS: 1 }],
    };
    expect(microbenchTable(launch as unknown as MicrobenchAnswer).rows[0]![1]).toBe('0.000001');
    const copy = { rttNs: 1e9, isNative: false, bytes: 4096, htodGbytesPerS: 4.096e-6 };
    const bandwidth = { kind: 'bandwidth', rows: [{ ...copy, dtohGbytesPerS: 11.7534 }] };
    expect(microbenchTable(bandwidth as unknown as MicrobenchAnswer).rows[0]!.slice(1)).toEqual([
      '4 KiB',
      '0.0000041',
      '11.753',
    ]);
    const spans = { recordedSpanNs: 1e6, native: { spanNs: 1e6 }, pooled: { spanNs: 2e6 } };
    const words = spanWords({ ...spans, nativeErrorPct: -0.001 } as unknown as TraceAnswer);
    expect(words).toContain('(0.00 % off)');
    // Frames of copies in bulk are not counted: a network that was full had 2 % of it used.
    const run = { meanTags: 1, mostTags: 2 };
    const bulk = { htodBytes: 1e9, dtohBytes: 0 };
    const inBulk = { link: { tags: 140 }, pooled: run, bulk } as unknown as TraceAnswer;
    expect(tagWords(inBulk)).toMatch(/^of network, .* without copies in bulk: 1 of 140 on average/);
  });
});

describe('dxpu emulate refuses', () => {
  const noCalls = at('no-calls.csv');
  writeFileSync(at('broken.json'), '{"traceEvents": [{"ph": "X", "na');
  const inference = { example: 'inference' } as const;

  it.each<[Partial<EmulateCommandOptions>, string | undefined, string]>([
    [{}, undefined, '--example'],
    [{ example: 'training' }, 'a.json', 'leave the file out'],
    [{}, at('no.json'), 'no such file'],
    [{}, at('broken.json'), 'broken.json'],
    [{}, folder, 'folder'],
    [{ ...inference, link: ['native', 'native'], trace: at('x') }, undefined, 'give one --link'],
    [{ ...inference, link: ['native', 'native'], capture: at('x') }, undefined, 'give one --link'],
    [{ ...inference, capture: '-' }, undefined, 'stdout has the answer'],
    [{ ...inference, capture: at('no/x') }, undefined, 'no/x'],
    [{ ...inference, trace: folder }, undefined, 'folder'],
    [{ ...inference, trace: at('x'), capture: at('x') }, undefined, 'name one file'],
    [{ ...inference, plot: at('x.gif') }, undefined, '.svg or .png'],
    [{ ...inference, prefetch: 3 }, undefined, 'power of two'],
    [{ ...inference, prefetch: 4, fetchSize: 8 }, undefined, '--prefetch'],
    [{ ...inference, rtt: 500 }, undefined, '--rtt'],
    [{ trace: at('broken.json') }, at('broken.json'), 'one of the inputs'],
  ])('%j of %s', async (options, file, message) => {
    const { thrown, stdout } = await run(options, file);
    expect(String(thrown)).toContain(message);
    expect(stdout).toBe('');
    expect(existsSync(at('x'))).toBe(false);
  });

  it('a trace without host calls, and says what to use instead; nothing is written', async () => {
    writeFileSync(noCalls, nvprofSample());
    const { thrown } = await run({ capture: at('x'), trace: at('y') }, noCalls);
    expect(thrown).toMatchObject({ code: 'failed_precondition' });
    expect(String(thrown)).toContain('no-calls.csv');
    expect(String(thrown)).toContain('dxpu predict');
    expect(readdirSync(folder).filter((name) => /^\.?[xy](?:\.|$)/.test(name))).toEqual([]);
  });

  // Its native error was infinite, which no JSON holds.
  it('a trace that lasts no time', async () => {
    const event = { ph: 'X', pid: 1, ts: 100, dur: 0 };
    const args = { correlation: 1, device: 0, stream: 7 };
    const traceEvents = [
      { ...event, cat: 'cuda_runtime', name: 'cudaLaunchKernel', tid: 1, args },
      { ...event, cat: 'kernel', name: 'k', tid: 7, args },
    ];
    writeFileSync(at('zero.json'), JSON.stringify({ traceEvents }));
    const { thrown } = await run({}, at('zero.json'));
    expect(thrown).toMatchObject({ code: 'failed_precondition' });
    expect(String(thrown)).toContain('lasts no time');
  });

  it.each([
    [['emulate', '--example', '--fetches', '2'], '--prefetch'],
    [['emulate', 'latency', '--fetches', '2'], '--prefetch'],
    [['emulate', '--example', '--per-iteration'], 'dxpu predict'],
    [['emulate', '--example', '--peers', 'spread'], 'dxpu predict --peers spread'],
    [['emulate', 'latency', '--trace', 'x'], '--trace is of a trace'],
    [['emulate', '--seed', '3', 'latency'], '--seed is of a trace'],
    [['emulate', '--example', '--sharing', '0'], '0'],
  ])('what cannot be here, rather than to leave it out: %j', async (argv, message) => {
    await expect(buildProgram().parseAsync(argv, { from: 'user' })).rejects.toThrow(message);
  });
});

describe('dxpu emulate latency', () => {
  it('prints a row for each round trip, and draws them', async () => {
    const files = { plot: at('latency.png'), html: at('latency.html') };
    const options = { at: [1200, 6800, 1200], ...files };
    const { stdout } = await runBench('latency', options);
    // By hand in microbench.test.ts.
    expect(stdout).toContain('1.2 µs, native         2.398 µs\n6.8 µs                13.597 µs\n');
    expect(readFileSync(files.plot).subarray(1, 4).toString()).toBe('PNG');
    expect(readFileSync(files.html, 'utf8')).toContain('13.597 µs');
    const json = await runBench('latency', { ...options, plot: at('l.svg'), output: 'json' });
    expect(emulateAnswer.parse(JSON.parse(json.stdout))).toMatchObject({ kind: 'latency' });
    const csv = await runBench('latency', { at: [1200], output: 'csv' });
    expect(csv.stdout).toMatch(
      /^microbenchmark,link,rttNs,isNative,launchAndWaitNs\nlatency,dxpu-6.8us,1200,true,2397\.9/,
    );
  });

  // It was left out: `--rtt` then changed nothing.
  it("has the link's own round trip among the usual ones", async () => {
    const { stdout } = await runBench('latency', { rtt: 3200, output: 'json' });
    const { rows } = JSON.parse(stdout) as { rows: { rttNs: number; launchAndWaitNs: number }[] };
    expect(rows.map(({ rttNs }) => rttNs)).toEqual([1200, 2000, 3200, 4900, 6800, 10_000, 20_000]);
    // Two round trips: half for the doorbell, one for the fetch, half for the fence.
    expect(Math.abs(rows[2]!.launchAndWaitNs - 2 * 3200)).toBeLessThan(10);
  });

  it('names the round trip at which it fails', () => {
    // No device of these options.
    const device = { prefetchCommands: 3 };
    const job = {
      kind: 'latency',
      profile: linkProfile({ name: 'x' }),
      device,
      rttNs: 6800,
    } as const;
    return expect(runEmulateJob(job)).rejects.toThrow(/^latency at 6.8 us: ./);
  });

  it('refuses what is no round trip of the link', async () => {
    expect(String((await runBench('latency', { at: [1000] })).thrown)).toContain('--at 1 us');
    expect(String((await runBench('latency', { at: [2e9] })).thrown)).toContain('--at 2 s');
    const two = await runBench('latency', { link: ['native', 'dxpu-4.9us'] });
    expect(String(two.thrown)).toContain('one --link');
  });
});
