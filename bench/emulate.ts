/**
 * How fast the emulator is: TLPs a second on one core through both proxies, against the same copy natively,
 * and a trace emulated whole, with the memory that takes. Each side is a process of its own: what another
 * made of the code it shares does not matter then.
 */
import { parseArgs } from 'node:util';
import type { RateResult, TraceResult } from './support/emulate-side.ts';
import { atLeast, atMost, type Figure, printFigures } from './support/figures.ts';
import { sideResult } from './support/side-process.ts';

const HELP = `npm run bench -- emulate [options] [TRACE]

TLPs a second of the emulator, and a trace emulated whole; without TRACE a made-up one. bench/README.md
tells what each figure is.

  --output json   one JSON object, the last line of stdout
  --rounds N      copies of 32 MiB each way, the best of which counts, 8 unless given; the first few compile
  --only NAME     rates or trace
`;

const TLPS_PER_S = 500_000;
const WITHIN_S = 120;
const MOST_BYTES = 1e9;
const MB = 1e6;

function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

function refuse(text: string): never {
  note(text);
  process.exit(2);
}

function parsed() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        output: { type: 'string', default: 'text' },
        rounds: { type: 'string', default: '8' },
        only: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    return refuse(`${(error as Error).message}\n\n${HELP}`);
  }
}

const side = <Result>(...args: readonly string[]): Result => sideResult('emulate-side', args);

function versus(name: string, unit: string, value: number, baseline: number, goal: string): Figure {
  return { name, unit, value, baseline, ratio: value / baseline, goal };
}

/** The best round of each: others on the machine only ever slow it down. */
function rates(direction: 'htod' | 'dtoh', rounds: string): Figure[] {
  note(`${direction}, natively`);
  const native = side<RateResult>('rate', 'native', direction, rounds);
  note(`${direction}, pooled`);
  const pooled = side<RateResult>('rate', 'pooled', direction, rounds);
  const thousands = pooled.perCpuS.map((one) => Math.round(one / 1e3));
  note(`${direction}, pooled, thousand TLPs a second of CPU by round: ${thousands.join(' ')}`);
  const name = `${direction === 'htod' ? 'HtoD' : 'DtoH'}, pooled against native`;
  const goal = (value: number): string => atLeast('value', value, TLPS_PER_S);
  const [byClock, nativeByClock] = [Math.max(...pooled.perS), Math.max(...native.perS)];
  const [ofCpu, nativeOfCpu] = [Math.max(...pooled.perCpuS), Math.max(...native.perCpuS)];
  return [
    versus(`${name}, by the clock`, 'TLPs/s', byClock, nativeByClock, goal(byClock)),
    versus(`${name}, a second of CPU`, 'TLPs/s', ofCpu, nativeOfCpu, goal(ofCpu)),
  ];
}

function trace(file: string | undefined): Figure[] {
  return (['bulk', 'whole'] as const).flatMap((how) => {
    const what = `${file ?? 'made-up training'}, ${how === 'bulk' ? 'copies in bulk' : 'every TLP'}`;
    note(what);
    const result = side<TraceResult>('trace', how, ...(file === undefined ? [] : [file]));
    const { lastedS, peakRssBytes, overheadPct, nativeErrorPct } = result;
    note(`overhead ${overheadPct.toFixed(3)} %, native error ${nativeErrorPct.toFixed(3)} %`);
    const goal = (is: number, most: number): string => atMost('ratio', is / most, 1);
    return [
      versus(`${what}, against 2 minutes`, 's', lastedS, WITHIN_S, goal(lastedS, WITHIN_S)),
      versus(
        `${what}, peak RSS against 1 GB`,
        'MB',
        peakRssBytes / MB,
        MOST_BYTES / MB,
        goal(peakRssBytes, MOST_BYTES),
      ),
    ];
  });
}

const { values: options, positionals } = parsed();
if (options.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
const { output, rounds, only } = options;
if (output !== 'text' && output !== 'json')
  refuse(`--output is ${output}: it must be text or json`);
if (!Number.isSafeInteger(Number(rounds)) || Number(rounds) < 1) {
  refuse(`--rounds is ${rounds}: it must be a whole number from 1`);
}
if (only !== undefined && only !== 'rates' && only !== 'trace') {
  refuse(`--only is ${only}: it must be rates or trace`);
}
if (positionals.length > 1) refuse(`one TRACE at most, not ${positionals.length}`);
const figures = [
  ...(only === 'trace' ? [] : [...rates('htod', rounds), ...rates('dtoh', rounds)]),
  ...(only === 'rates' ? [] : trace(positionals[0])),
];
printFigures('emulate', figures, output === 'json');
