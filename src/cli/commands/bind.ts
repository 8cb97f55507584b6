/** `dxpu bind`, `unbind` and `retry`: what changes the pool. */
import { DxpuError } from '#base/errors';
import {
  type Binding,
  BindingSchema,
  BindingState,
  type BindResponse,
} from '#proto/generated/dxpu/pool/v1/pool_pb';
import { ListPrinter } from '../list-printer.ts';
import { printData, printLine, printNote } from '../output.ts';
import { BINDINGS, bindingState, WOULD_BE_BOUND } from '../pool-columns.ts';
import { type PoolConnection, type PoolOptions, withPool } from '../pool-connection.ts';
import { type DemandOptions, demandOf, spelledOut } from '../pool-demand.ts';
import { plainOf } from '../pool-plain.ts';
import { Deadline, newRequestId, Settling, untilAnswered } from '../pool-request.ts';
import { isStuck, waitForBindings, type WaitGoal, type WaitResult } from '../pool-wait.ts';
import { formatDuration } from '../quantity.ts';

interface ChangeOptions extends PoolOptions {
  /** Of `unbind` alone. */
  readonly force?: boolean;
  readonly wait?: boolean;
  /** Nanoseconds, for everything. */
  readonly timeout: number;
  readonly requestId?: string;
}

export interface BindOptions extends ChangeOptions, DemandOptions {
  readonly dryRun?: boolean;
  /** As commander has `--no-retry`. */
  readonly retry: boolean;
}

export type UnbindOptions = ChangeOptions;

export const bind = (options: BindOptions): Promise<void> =>
  withPool(options, (pool) => bindOn(pool, options));

export const unbind = (ids: readonly string[], options: UnbindOptions): Promise<void> =>
  withPool(options, (pool) => unbindOn(pool, ids, options));

export const retry = (ids: readonly string[], options: ChangeOptions): Promise<void> =>
  withPool(options, (pool) => retryOn(pool, ids, options));

export async function bindOn(pool: PoolConnection, options: BindOptions): Promise<void> {
  const demand = demandOf(options);
  const { dryRun = false, retry: retries } = options;
  await change(pool, options, dryRun ? undefined : 'attached', (requestId, call) =>
    pool.pool.bind({ requestId, demand, dryRun, noRetry: !retries }, call),
  );
}

export async function unbindOn(
  pool: PoolConnection,
  ids: readonly string[],
  options: UnbindOptions,
): Promise<void> {
  const bindings = [...new Set(ids)];
  await change(pool, options, 'free', (requestId, call) =>
    pool.pool.unbind({ requestId, bindings, force: options.force === true }, call),
  );
}

export async function retryOn(
  pool: PoolConnection,
  ids: readonly string[],
  options: ChangeOptions,
): Promise<void> {
  const bindings = [...new Set(ids)];
  await change(
    pool,
    options,
    'attached',
    (requestId, call) => pool.pool.retry({ requestId, bindings }, call),
    (answer) => {
      for (const binding of answer.bindings.filter(isAttached)) {
        printNote(`binding ${binding.id} is attached: nothing to retry`);
      }
    },
  );
}

type Answer = Pick<BindResponse, 'bindings'>;

const isAttached = ({ state, leaving }: Binding): boolean =>
  state === BindingState.ATTACHED && !leaving;

/** `goal` undefined: nothing is changed, there is nothing to wait for. */
async function change(
  pool: PoolConnection,
  options: ChangeOptions,
  goal: WaitGoal | undefined,
  call: (requestId: string, options: { timeoutMs?: number }) => Promise<Answer>,
  onAnswer: (answer: Answer) => void = () => {},
): Promise<void> {
  const deadline = new Deadline(options.timeout);
  const requestId = options.requestId ?? newRequestId();
  const wait = options.wait === true && goal !== undefined;
  let answer: Answer;
  let position = 0;
  try {
    const settling = new Settling();
    if (wait) position = await currentPosition(pool, requestId, deadline, settling);
    answer = await untilAnswered(pool, requestId, deadline, settling, (attempt) =>
      call(requestId, attempt),
    );
  } catch (error) {
    throw spelledOut(DxpuError.from(error));
  }
  if (goal === undefined) return printPlanned(answer.bindings, options);
  onAnswer(answer);
  if (!wait) {
    await printBindings(answer.bindings, options, requestId);
    if (options.output === 'table') adviseToLook(answer.bindings, goal);
    return;
  }
  const result = await waitForBindings(pool, answer.bindings, position, goal, deadline);
  await printBindings(result.bindings, options, requestId);
  if (result.end === 'interrupted') {
    printNote(`not waiting any more; ${whatStays(result, goal, options)}`);
    process.exitCode = 130;
  } else if (result.end !== 'reached') throw unreached(result, goal, options);
}

/** Nothing of what the request causes comes before it in the log. */
async function currentPosition(
  pool: PoolConnection,
  requestId: string,
  deadline: Deadline,
  settling: Settling,
): Promise<number> {
  const { position } = await untilAnswered(pool, requestId, deadline, settling, (attempt) =>
    pool.pool.getStatus({}, attempt),
  );
  return Number(position);
}

async function printBindings(
  bindings: readonly Binding[],
  { output }: PoolOptions,
  requestId: string,
): Promise<void> {
  if (output !== 'table') {
    const plain = bindings.map((binding) => plainOf(BindingSchema, binding));
    await printData({ requestId, bindings: plain }, output);
    return;
  }
  const printer = new ListPrinter(output, BINDINGS);
  await printer.add(bindings);
  // Repeated after everything it bound is gone: there is nothing to show.
  if (bindings.length === 0) printLine('done before; its bindings are gone');
}

/** Of a dry run: nothing has an id, a state or a generation. */
async function printPlanned(bindings: readonly Binding[], { output }: PoolOptions): Promise<void> {
  if (output === 'table') {
    await new ListPrinter(output, WOULD_BE_BOUND).add(bindings);
    return;
  }
  await printData({ dryRun: true, bindings: bindings.map(WOULD_BE_BOUND.plain) }, output);
}

function adviseToLook(bindings: readonly Binding[], goal: WaitGoal): void {
  const [first] = goal === 'attached' ? bindings.filter((one) => !isAttached(one)) : bindings;
  if (first === undefined) return;
  printNote(
    goal === 'attached'
      ? `follow with dxpu events --follow --binding ${first.id}, or use --wait next time`
      : `the GPU nodes are free once dxpu get bindings no longer shows them`,
  );
}

function unreached(result: WaitResult, goal: WaitGoal, options: ChangeOptions): DxpuError {
  const stuck = result.bindings.filter((binding) => isStuck(binding, goal));
  // Where the time is up, one that is tried again has a reason, too.
  const told =
    result.end === 'stuck'
      ? stuck
      : result.bindings.filter(({ state }) => state === BindingState.FAILED);
  const failed = told.map((binding) => {
    const { message = goal === 'attached' ? 'somebody gives it back' : '' } = binding.failure ?? {};
    return `${binding.id} ${bindingState(binding)}${message === '' ? '' : `: ${message}`}`;
  });
  const what =
    result.end === 'stuck'
      ? failed.join('\n')
      : `not all ${goal} within ${formatDuration(options.timeout)}` +
        (result.lost === undefined ? '' : `: ${result.lost}`) +
        failed.map((line) => `\n${line}`).join('');
  return new DxpuError(
    result.end === 'stuck' ? 'failed_precondition' : 'deadline_exceeded',
    `${what}\n${whatStays(result, goal, options)}`,
    {
      details: {
        bindings: result.bindings.map((binding) => ({
          id: binding.id,
          state: bindingState(binding),
          ...(binding.failure === undefined ? {} : { failure: binding.failure.message }),
        })),
      },
    },
  );
}

/** How things stand, and the ways on and back. */
function whatStays(
  { bindings }: WaitResult,
  goal: WaitGoal,
  { force }: { readonly force?: boolean },
): string {
  const left = bindings.filter(({ state }) => state !== BindingState.FREE).map(({ id }) => id);
  const [first = ''] = left;
  if (left.length === 0) return 'no binding is left';
  const ids = left.join(' ');
  if (goal === 'attached') {
    return (
      `the bindings stay (${left.join(', ')}): look with dxpu describe binding ${first}, try again ` +
      `with dxpu retry ${ids}, give them back with dxpu unbind ${ids}`
    );
  }
  const still = `still there: ${left.join(', ')}: look with dxpu describe binding ${first}; `;
  // It waits for no host; a box that still has the row may let its host in.
  return force === true
    ? `${still}they end by themselves once the agents of their boxes are connected: dxpu get boxes ` +
        'shows which are away'
    : `${still}dxpu unbind --force ${ids} does not wait for the host's programs`;
}
