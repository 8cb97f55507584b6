/**
 * The manager, part by part: who gets which GPU nodes, and what it costs to remember it.
 *
 *     npm run bench -- manager [--output json] [--blocks 10] [--only placement|store|rpc]
 */
import { parseArgs } from 'node:util';
import { type Figure, printFigures } from './support/figures.ts';
import { placementFigures } from './support/placement-bench.ts';
import { rpcFigures } from './support/rpc-bench.ts';
import { storeFigures } from './support/store-bench.ts';

type Part = (blocks: number, note: (text: string) => void) => Figure[] | Promise<Figure[]>;

const PARTS: Readonly<Record<string, Part>> = {
  placement: placementFigures,
  store: storeFigures,
  rpc: rpcFigures,
};

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    blocks: { type: 'string', default: '10' },
    only: { type: 'string' },
  },
});
const blocks = Math.max(1, Number(options.blocks));
const names = options.only === undefined ? Object.keys(PARTS) : [options.only];
const figures: Figure[] = [];
for (const name of names) {
  const part = PARTS[name];
  if (part === undefined) {
    process.stderr.write(
      `there is no part ${name}: take one of ${Object.keys(PARTS).join(', ')}\n`,
    );
    process.exit(2);
  }
  figures.push(...(await part(blocks, (text) => process.stderr.write(`${text}\n`))));
}
printFigures('manager', figures, options.output === 'json');
