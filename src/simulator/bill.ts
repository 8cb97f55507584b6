/** What hardware is and costs: GPUs, machines, boxes, and ports on the network of a pool. */
import * as figures from '#report/figures';
import { gpusOf, type Machine } from './demand.ts';
import type { Fewest } from './fewest.ts';
import { type PoolShape, spreadMachines, takeApart } from './pool-hardware.ts';
import type { Cost, Prices } from './result.ts';

interface Hardware {
  readonly gpusByModel: Record<string, number>;
  readonly boxes?: number;
}

/** GPUs by model of the servers that were found, taken of the list as the search takes them. */
export function serverHardware(machines: readonly Machine[], { servers }: Fewest): Hardware {
  const gpusByModel: Record<string, number> = {};
  for (const { machine } of spreadMachines(machines, servers)) {
    if (machine.gpus > 0) add(gpusByModel, machine.model, machine.gpus);
  }
  return { gpusByModel };
}

/** The same of a pool, and its boxes. */
export function poolHardware(
  machines: readonly Machine[],
  { gpus }: Fewest,
  shape: PoolShape,
): Hardware {
  const lists = Math.ceil(gpus / gpusOf(machines));
  const sources = spreadMachines(machines, machines.length * lists);
  const { boxes } = takeApart([], sources, shape, gpus);
  const gpusByModel: Record<string, number> = {};
  for (const box of boxes) add(gpusByModel, box.model, box.gpus);
  return { gpusByModel, boxes: boxes.length };
}

function add(counts: Record<string, number>, name: string, count: number): void {
  counts[name] = (counts[name] ?? 0) + count;
}

/** A port for each host and each box; servers have none. Every model has a price. */
export function costOf(prices: Prices, servers: number, hardware: Hardware): Cost {
  const { boxes } = hardware;
  const gpus = Object.entries(hardware.gpusByModel).reduce(
    (sum, [model, count]) => sum + count * (prices.models[model] ?? prices.gpu ?? 0),
    0,
  );
  const parts = {
    gpus,
    servers: servers * prices.server,
    boxes: (boxes ?? 0) * prices.box,
    ports: boxes === undefined ? 0 : (servers + boxes) * prices.port,
  };
  return { ...parts, total: parts.gpus + parts.servers + parts.boxes + parts.ports };
}

/** `prices: GPU 9,000, T4 2,000, server or host 8,000, box 0, port 0`. */
export function priceWords({ gpu, models, server, box, port }: Prices): string {
  const all: [string, number][] = [
    ...(gpu === undefined ? [] : [['GPU', gpu] as [string, number]]),
    ...Object.entries(models),
    ['server or host', server],
    ['box', box],
    ['port', port],
  ];
  return `prices: ${all.map(([what, price]) => `${what} ${figures.count(price)}`).join(', ')}`;
}
