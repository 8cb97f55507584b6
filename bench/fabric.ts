/**
 * The data plane against raw sockets: codec rate, round trip of an MMIO read through both proxies in
 * separate processes, payload rates of posted writes and DMA reads. Each block of the fabric is
 * followed by a block of its baseline between the same two processes on the same cores. Beside the rates
 * stands the CPU time of both processes together, per byte or round trip: other load disturbs it less.
 *
 *     npm run bench -- fabric [--output json] [--blocks 10] [--only codec|round-trip|rates]
 */
import { parseArgs } from 'node:util';
import type { TlsCredentials } from '#identity/tls-identity';
import { BenchAuthority } from './support/bench-authority.ts';
import { codecFigures } from './support/codec.ts';
import { type Figure, figure, type Pair, printFigures } from './support/figures.ts';
import { canPin, PinnedProcess } from './support/pinned-process.ts';
import {
  type Answer,
  type Kind,
  type Ports,
  SIZES,
  type ToHost,
  TRANSPORTS,
  type TransportName,
} from './support/protocol.ts';

const ROUNDS = 4000;
const RATE_BYTES = 32 * 2 ** 20;

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    blocks: { type: 'string', default: '10' },
    only: { type: 'string' },
  },
});
const blocks = Math.max(1, Number(options.blocks));

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

async function cpuNs(processes: readonly PinnedProcess[]): Promise<number> {
  let sum = 0;
  for (const one of processes)
    sum += (await one.ask<Extract<Answer, { cpuNs: number }>>({ op: 'cpu' })).cpuNs;
  return sum;
}

/** Interleaves blocks of a measurement with blocks of its baseline. */
async function pairs(
  host: PinnedProcess,
  box: PinnedProcess,
  transport: TransportName,
  size: number,
  kind: Kind,
  baseline: Kind,
  amount: number,
): Promise<Pair[]> {
  const measure = async (what: Kind): Promise<{ value: number; cpuNs: number }> => {
    const message: ToHost = { op: 'measure', kind: what, transport, size, amount };
    const before = await cpuNs([host, box]);
    const { value } = await host.ask<Extract<Answer, { value: number }>>(message);
    return { value, cpuNs: ((await cpuNs([host, box])) - before) / amount };
  };
  const result: Pair[] = [];
  // The first block of each warms the code and is not counted.
  for (let block = -1; block < blocks; block++) {
    const one = await measure(kind);
    const raw = await measure(baseline);
    if (block < 0) continue;
    result.push({
      value: one.value,
      baseline: raw.value,
      cpu: { value: one.cpuNs, baseline: raw.cpuNs },
    });
  }
  return result;
}

async function measurePair(
  place: string,
  cpus: readonly [number, number],
  credentials: Record<'host' | 'box', TlsCredentials>,
): Promise<Figure[]> {
  const figures: Figure[] = [];
  const box = new PinnedProcess('./fabric-box.js', cpus[0]);
  const host = new PinnedProcess('./fabric-host.js', cpus[1]);
  try {
    const { ports } = await box.ask<{ ports: Ports }>({
      op: 'start',
      credentials: credentials.box,
    });
    await host.ask({ op: 'start', credentials: credentials.host, ports });
    for (const transport of TRANSPORTS) {
      const name = `${transport === 'tls' ? 'TLS' : 'plain'}, ${place}`;
      if (options.only === undefined || options.only === 'round-trip') {
        note(`round trips, ${name}`);
        figures.push(
          figure(
            `MMIO read round trip, ${name}`,
            'ns',
            await pairs(host, box, transport, 0, 'mmio-read', 'echo', ROUNDS),
            'ratio ≤ 1.3',
          ),
        );
      }
      if (options.only !== undefined && options.only !== 'rates') continue;
      for (const [size, { name: sizes }] of SIZES.entries()) {
        const goal = size === 0 ? 'ratio ≥ 0.5' : undefined;
        for (const [what, kind, baseline] of [
          ['DMA read (HtoD)', 'dma-read', 'raw-to-box'],
          ['DMA write (DtoH)', 'dma-write', 'raw-to-host'],
          ['posted MMIO write', 'mmio-write', 'raw-to-box'],
        ] as const) {
          note(`${what}, ${sizes}, ${name}`);
          figures.push(
            figure(
              `${what}, ${sizes}, ${name}`,
              'B/s',
              await pairs(host, box, transport, size, kind, baseline, RATE_BYTES),
              goal,
            ),
          );
        }
      }
    }
  } finally {
    host.stop();
    box.stop();
  }
  return figures;
}

const figures: Figure[] = [];
if (options.only === undefined || options.only === 'codec') {
  note('codec');
  figures.push(...codecFigures(blocks));
}
if (options.only !== 'codec') {
  if (!canPin) note('taskset is not there: the processes are not pinned');
  const authority = await BenchAuthority.create();
  const credentials = {
    host: await authority.issue('host', 'bench-host'),
    box: await authority.issue('box', 'bench-box'),
  };
  figures.push(...(await measurePair('same core', [0, 0], credentials)));
  figures.push(...(await measurePair('across cores', [0, 1], credentials)));
}
printFigures('fabric', figures, options.output === 'json');
