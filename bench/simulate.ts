/**
 * How long simulations take: the published study on two cores, and pools of 1,000 to 100,000 GPUs with ten
 * requests for every GPU, each in a process of its own. The baseline reads the lists and draws the same
 * requests, without placing any.
 *
 *     npm run bench -- simulate [--output json] [--only study|pool] [--policies fgd,best-fit,placement]
 *
 * Lists are the shared ones (`DXPU_DATA`, ../shared/data); without them the study is left out, and pools
 * have the mix of made-up lists.
 */
import { parseArgs } from 'node:util';
import { type Figure, figure, printFigures } from './support/figures.ts';
import { hasShared, NO_SHARED } from './support/simulate-lists.ts';
import type { RunResult } from './support/simulate-run.ts';
import type { SixtyResult } from './support/simulate-sixty.ts';
import type { Took } from './support/spent.ts';
import { sideResult } from './support/side-process.ts';

const SIZES = [1000, 10_000, 100_000];
const REQUESTS_PER_GPU = 10;
const MB = 1e6;
const GIB = 2 ** 30;

const { values: options } = parseArgs({
  options: {
    output: { type: 'string', default: 'text' },
    only: { type: 'string' },
    policies: { type: 'string', default: 'fgd,best-fit,placement' },
  },
});

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

const run = <Result>(script: string, ...args: readonly string[]): Result =>
  sideResult(script, args);

/** By the clock, with the processor time beside it; `each` of them is one of the unit. */
function timeFigure(name: string, unit: 's' | 'µs', took: Took, each: number, goal?: string) {
  const perUnit = unit === 's' ? 1e3 : 1e-3;
  const pair = {
    value: took.ms / perUnit / each,
    baseline: took.rawMs / perUnit / each,
    cpu: { value: took.cpuNs / each, baseline: took.rawCpuNs / each },
  };
  return figure(name, unit, [pair], goal);
}

function peakFigure(name: string, bytes: number): Figure {
  return figure(
    `${name}, peak RSS against 2 GiB`,
    'MB',
    [{ value: bytes / MB, baseline: (2 * GIB) / MB }],
    'ratio ≤ 1.0',
  );
}

function study(): Figure[] {
  if (!hasShared) {
    note(`the published study is left out: ${NO_SHARED}`);
    return [];
  }
  const result = run<SixtyResult>('simulate-sixty');
  note(`published study: ${result.runs} runs of ${result.requests} requests altogether`);
  return [
    timeFigure(`${result.runs} runs of the default list, 2 workers`, 's', result, 1, '≤ 180 s'),
    timeFigure('the same, a request', 'µs', result, result.requests),
  ];
}

function pools(policy: string): Figure[] {
  return SIZES.flatMap((gpus) => {
    const result = run<RunResult>(
      'simulate-run',
      policy,
      String(gpus),
      String(gpus * REQUESTS_PER_GPU),
    );
    const { hosts, requests, placed, askedPct } = result;
    note(
      `${policy}, ${gpus} GPUs, ${hosts} hosts: ${requests} requests for ${askedPct.toFixed(0)} %, ${placed} placed`,
    );
    const name = `${policy}, pool of ${gpus} GPUs`;
    const perRequest = timeFigure(`${name}, a request`, 'µs', result, requests);
    if (gpus < Math.max(...SIZES)) return [perRequest];
    return [
      perRequest,
      timeFigure(`${name}, ${requests} requests`, 's', result, 1, '≤ 120 s'),
      peakFigure(name, result.peakRssBytes),
    ];
  });
}

if (!hasShared) note(`pools have the mix of made-up lists: ${NO_SHARED}`);
const figures = [
  ...(options.only === 'pool' ? [] : study()),
  ...(options.only === 'study' ? [] : options.policies.split(',').flatMap(pools)),
];
printFigures('simulate', figures, options.output === 'json');
