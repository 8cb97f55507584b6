/**
 * A GPU node in a VM, behind the fabric and beside it: the same accelerator once in a box of a pool, bound to the
 * VM, once served to the same QEMU by vfio-user without a fabric. Accesses and copies are the guest's own, timed by
 * its clock. What the fabric adds is measured against a raw TLS echo in its place. Blocks of all take turns.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { MonitoredVm } from '#testkit/vm/monitored-vm';
import { TestVm } from '#testkit/vm/test-vm';
import { vmNeeds } from '#testkit/vm/vm-needs';
import { BenchAuthority } from './support/bench-authority.ts';
import { addedFigure, type Figure, figure, type Pair, printFigures } from './support/figures.ts';
import { canPin, PinnedProcess, pinProcess } from './support/pinned-process.ts';
import { DirectDevice } from './support/vm-direct.ts';
import { VmBenchPool } from './support/vm-bench-pool.ts';
import type { EchoPlace, ToVmSide } from './support/vm-side.ts';

const HELP = `npm run bench -- vm [options]

A GPU node in a VM, behind the fabric and beside it. bench/README.md tells what each figure is.

  --output json   one JSON object, the last line of stdout
  --blocks N      blocks of each latency and rate at each placement, 10 unless given
  --plugs N       times each is plugged in and out, 3 unless given; 0 leaves them out
  --accesses N    accesses a block, 2000 unless given
  --mib N         copied a block and direction, 64 unless given, 4 at least
  --only NAME     one placement: same-core or across-cores
`;

const GOAL = 1.5;
const MIB = 2 ** 20;
const MEMORY_BYTES = 64 * MIB;
const WATCHDOG_MS = 1_800_000;
const COMMAND_WITHIN_MS = 120_000;
/** The buses behind the root ports, as firmware numbers them. */
const FABRIC = '0000:01:00.0';
const DIRECT = '0000:02:00.0';
/** The guest has a core; the others may share one. What waits for an answer needs none. */
const GUEST_CPU = 1;
const PLACEMENTS = [
  { name: 'same-core', host: 0, box: 0 },
  { name: 'across-cores', host: 0, box: 1 },
] as const;
type Placement = (typeof PLACEMENTS)[number];

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    blocks: { type: 'string', default: '10' },
    plugs: { type: 'string', default: '3' },
    accesses: { type: 'string', default: '2000' },
    mib: { type: 'string', default: '64' },
    only: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
});

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function count(option: 'blocks' | 'plugs' | 'accesses' | 'mib', least: number): number {
  const value = Number(options[option]);
  if (Number.isSafeInteger(value) && value >= least) return value;
  note(`--${option} is ${options[option]}: it must be a whole number from ${least}`);
  process.exit(2);
}

function placements(): readonly Placement[] {
  const { only } = options;
  const asked = PLACEMENTS.filter(({ name }) => only === undefined || only === name);
  if (asked.length > 0) return asked;
  note(`--only is ${only}: it must be ${PLACEMENTS.map(({ name }) => name).join(' or ')}`);
  process.exit(2);
}

interface Settings {
  readonly blocks: number;
  readonly plugs: number;
  readonly accesses: number;
  readonly mib: number;
  readonly placements: readonly Placement[];
}

interface AccessTimes {
  readonly median: number;
  /** A write, until it has reached the device. */
  readonly landed: number;
}

interface Rates {
  readonly htod: number;
  readonly dtoh: number;
}

class Bench {
  readonly #settings: Settings;
  readonly #pool = new VmBenchPool();
  readonly #monitored: MonitoredVm;
  readonly #vm: TestVm;
  readonly #direct: DirectDevice;
  readonly #echoServer = new PinnedProcess('./vm-side.js', PLACEMENTS[0].box);
  readonly #echoClient = new PinnedProcess('./vm-side.js', PLACEMENTS[0].host);
  readonly figures: Figure[] = [];

  constructor(settings: Settings, vm: MonitoredVm) {
    this.#settings = settings;
    this.#monitored = vm;
    this.#vm = vm.vm;
    const [, rootPort = ''] = this.#vm.ports;
    this.#direct = new DirectDevice(vm, rootPort, this.#pool.state, PLACEMENTS[0].host);
  }

  async run(): Promise<void> {
    pinProcess(this.#vm.pid, GUEST_CPU);
    await this.#pool.start(this.#vm);
    await this.#direct.start(MEMORY_BYTES, await this.#startEcho());
    this.#place(PLACEMENTS[0]);
    note('a first bind');
    await this.#pool.bind();
    await this.#direct.add();
    await this.#guest(DIRECT, 'there');
    for (const placement of this.#settings.placements) await this.#measure(placement);
    this.#place(PLACEMENTS[0]);
    if (this.#settings.plugs > 0) await this.#plugInAndOut();
  }

  async end(): Promise<void> {
    this.#direct.stop();
    this.#echoClient.stop();
    this.#echoServer.stop();
    await this.#monitored.stop();
    await this.#pool.end();
  }

  #place({ host, box }: Placement): void {
    this.#pool.pin('host', host);
    this.#pool.pin('box', box);
    this.#echoClient.pin(host);
    this.#echoServer.pin(box);
  }

  async #startEcho(): Promise<EchoPlace> {
    const authority = await BenchAuthority.create();
    const box = await authority.issue('box', 'echo');
    const credentials = await authority.issue('host', 'echo');
    const listen = { op: 'listen', credentials: box } satisfies ToVmSide;
    const { value: port } = await this.#echoServer.ask<{ value: number }>(listen);
    await this.#echoClient.ask({ op: 'connect', credentials, port } satisfies ToVmSide);
    return { port, credentials };
  }

  async #guest<T>(bdf: string, words: string): Promise<T> {
    return JSON.parse(await this.#vm.shell(`measure -d ${bdf} ${words}`, COMMAND_WITHIN_MS)) as T;
  }

  async #measure(placement: Placement): Promise<void> {
    this.#place(placement);
    const read: Pair[] = [];
    const write: Pair[] = [];
    const landed: Pair[] = [];
    const htod: Pair[] = [];
    const dtoh: Pair[] = [];
    const echoes: number[] = [];
    const inPlace: number[] = [];
    // The first block of each warms the code and is not counted.
    for (let block = -1; block < this.#settings.blocks; block++) {
      note(`${placement.name}, block ${block + 1} of ${this.#settings.blocks}`);
      const both = async <T>(words: string): Promise<{ value: T; baseline: T }> => {
        const baseline = await this.#guest<T>(DIRECT, words);
        return { value: await this.#guest<T>(FABRIC, words), baseline };
      };
      const readWords = `read ${this.#settings.accesses}`;
      const reads = await both<AccessTimes>(readWords);
      const behindEcho = await this.#direct.behindEcho(() =>
        this.#guest<AccessTimes>(DIRECT, readWords),
      );
      const echoNs = await this.#echo();
      const writes = await both<AccessTimes>(`write ${this.#settings.accesses}`);
      const rates = await both<Rates>(`dma ${this.#settings.mib}`);
      if (block < 0) continue;
      echoes.push(echoNs);
      inPlace.push(behindEcho.median - reads.baseline.median);
      read.push(pairOf(reads, (times) => times.median));
      write.push(pairOf(writes, (times) => times.median));
      landed.push(pairOf(writes, (times) => times.landed));
      htod.push(pairOf(rates, (rate) => rate.htod));
      dtoh.push(pairOf(rates, (rate) => rate.dtoh));
    }
    const where = placement.name.replace('-', ' ');
    const writeName = 'MMIO write, as the guest sees it';
    this.figures.push(
      figure(`MMIO read, ${where}`, 'ns', read),
      addedFigure(
        `MMIO read, added by the fabric, against a TLS echo in its place, ${where}`,
        read,
        inPlace,
        GOAL,
      ),
      addedFigure(`MMIO read, added, against a TLS echo in a tight loop, ${where}`, read, echoes),
      figure(`${writeName}, ${where}`, 'ns', write),
      addedFigure(
        `${writeName}, added, against a TLS echo in its place, ${where}`,
        write,
        inPlace,
        GOAL,
      ),
      figure(`MMIO write, until it has landed, ${where}`, 'ns', landed),
      figure(`DMA read (HtoD), ${where}`, 'B/s', htod),
      figure(`DMA write (DtoH), ${where}`, 'B/s', dtoh),
    );
  }

  async #echo(): Promise<number> {
    const echo = { op: 'echo', rounds: this.#settings.accesses } satisfies ToVmSide;
    return (await this.#echoClient.ask<{ value: number }>(echo)).value;
  }

  /** Both are plugged in when it begins, and out when it ends. */
  async #plugInAndOut(): Promise<void> {
    const attached: Pair[] = [];
    const seen: Pair[] = [];
    const free: Pair[] = [];
    const gone: Pair[] = [];
    for (let round = 0; round <= this.#settings.plugs; round++) {
      note(`plugs, round ${round} of ${this.#settings.plugs}`);
      const fabricGone = this.#when(FABRIC, 'gone');
      const unbindMs = Date.now();
      const freeMs = await this.#pool.unbind();
      const directGone = this.#when(DIRECT, 'gone');
      const removeMs = Date.now();
      await this.#direct.remove();
      const removedMs = Date.now() - removeMs;
      gone.push({ value: (await fabricGone) - unbindMs, baseline: (await directGone) - removeMs });
      free.push({ value: freeMs, baseline: removedMs });
      if (round === this.#settings.plugs) break;
      const fabricSeen = this.#when(FABRIC, 'there');
      const attachedMs = await this.#pool.bind();
      const fabricSeenMs = (await fabricSeen) - this.#pool.addedMs;
      const directSeen = this.#when(DIRECT, 'there');
      const addMs = Date.now();
      await this.#direct.add();
      const directSeenMs = (await directSeen) - addMs;
      seen.push({ value: fabricSeenMs, baseline: directSeenMs });
      attached.push({ value: attachedMs, baseline: directSeenMs });
    }
    this.figures.push(
      figure('hot-add: device_add until the guest has it', 'ms', seen),
      figure('hot-add: bind until attached, against device_add', 'ms', attached),
      figure('hot-remove: unbind until the guest has let go, against device_del', 'ms', gone),
      figure('hot-remove: unbind until free, against DEVICE_DELETED', 'ms', free),
    );
  }

  /** The time of `Date.now` at which the guest says so. */
  async #when(bdf: string, what: 'there' | 'gone'): Promise<number> {
    await this.#guest(bdf, what);
    return Date.now();
  }
}

function pairOf<T>(both: { value: T; baseline: T }, of: (one: T) => number): Pair {
  return { value: of(both.value), baseline: of(both.baseline) };
}

if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const settings: Settings = {
  blocks: count('blocks', 1),
  plugs: count('plugs', 0),
  accesses: count('accesses', 100),
  mib: count('mib', 4),
  placements: placements(),
};
const needs = await vmNeeds();
if (typeof needs === 'string') {
  note(`vm: ${needs}`);
  process.exit(1);
}
if (!canPin) note('taskset is not there: the processes are not pinned');
note(
  `others' load before: ${loadavg()
    .map((load) => load.toFixed(2))
    .join(' ')}`,
);
const bench = new Bench(
  settings,
  new MonitoredVm(await TestVm.start(needs, { slots: 2, watchdogMs: WATCHDOG_MS })),
);
try {
  await bench.run();
} finally {
  await bench.end();
}
printFigures('vm', bench.figures, options.output === 'json');
process.exit(0);
