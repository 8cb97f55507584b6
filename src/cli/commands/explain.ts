/** `dxpu explain`: what the pool would answer to a demand, and why. Binds nothing. */
import {
  CandidateSchema,
  type ExplainResponse,
  PlanSchema,
  RefusalSchema,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { ListPrinter, tableOf } from '../list-printer.ts';
import { LineWriter, printData, printLine, yamlOf } from '../output.ts';
import { CANDIDATES, PLANNED } from '../pool-columns.ts';
import {
  type PoolConnection,
  poolFailure,
  type PoolOptions,
  withPool,
} from '../pool-connection.ts';
import { type DemandOptions, demandOf, refusalText } from '../pool-demand.ts';
import { plainOf } from '../pool-plain.ts';

export interface ExplainOptions extends PoolOptions, DemandOptions {
  readonly all?: boolean;
}

export function explain(options: ExplainOptions): Promise<void> {
  return withPool(options, (pool) => explainOn(pool, options));
}

/**
 * The answer, be it a plan or a refusal, is a result: the status is 0 either way. With `all` every
 * candidate comes first, and machines get a list of `{candidate}` with `{plan}` or `{refusal}` last.
 */
export async function explainOn(pool: PoolConnection, options: ExplainOptions): Promise<void> {
  const demand = demandOf(options);
  try {
    const stream = pool.pool.explain({ demand, all: options.all === true });
    if (options.all !== true) await printAnswer(stream, options);
    else if (options.output === 'table') await printTables(stream, options);
    else await printItems(stream, options.output);
  } catch (error) {
    throw poolFailure(error, pool);
  }
}

type Answers = AsyncIterable<ExplainResponse>;

async function printAnswer(stream: Answers, options: ExplainOptions): Promise<void> {
  for await (const answer of stream) {
    if (answer.message.case === 'candidate') continue;
    if (options.output === 'table') printVerdict(answer, options);
    else await printData(plainAnswer(answer), options.output);
  }
}

/** Candidates by the thousand: a portion of the table at a time. */
const PORTION = 500;

async function printTables(stream: Answers, options: ExplainOptions): Promise<void> {
  const printer = new ListPrinter('table', CANDIDATES);
  let waiting = [];
  for await (const answer of stream) {
    if (answer.message.case === 'candidate') {
      waiting.push(answer.message.value);
      if (waiting.length < PORTION) continue;
    }
    await printer.add(waiting);
    waiting = [];
    if (answer.message.case === 'candidate') continue;
    printLine('');
    printVerdict(answer, options);
  }
}

async function printItems(stream: Answers, output: 'json' | 'yaml'): Promise<void> {
  const out = new LineWriter(process.stdout);
  for await (const answer of stream) {
    const plain = plainAnswer(answer);
    out.line(output === 'json' ? JSON.stringify(plain) : (await yamlOf([plain])).trimEnd());
    if (out.isFull) await out.flush();
  }
  await out.flush();
}

function plainAnswer({ message }: ExplainResponse): unknown {
  switch (message.case) {
    case 'candidate':
      return { candidate: plainOf(CandidateSchema, message.value) };
    case 'plan':
      return { fits: true, plan: plainOf(PlanSchema, message.value) };
    case 'refusal':
      return { fits: false, refusal: plainOf(RefusalSchema, message.value) };
    case undefined:
      return {};
  }
}

function printVerdict({ message }: ExplainResponse, options: ExplainOptions): void {
  if (message.case === 'refusal') printLine(refusalText(message.value));
  if (message.case !== 'plan') return;
  const { gpus } = message.value;
  printLine(
    `it fits: ${gpus.length} GPU ${gpus.length === 1 ? 'node' : 'nodes'} for host ${options.host}`,
  );
  printLine(tableOf(PLANNED.columns, gpus));
}
