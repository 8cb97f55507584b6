/** The commands that ask the manager of a pool. */
import { Argument, type Command, Option } from 'commander';
import { MAX_GPUS } from '#placement/demand';
import { DESCRIBE_KINDS, GET_KINDS, STATE_WORDS } from './pool-words.ts';
import { duration, examples, filled, name, size, stateOption, whole } from './program-options.ts';

const DEFAULT_TIMEOUT_NS = 30e9;

export function addPool(program: Command): void {
  addGet(program);
  addDescribe(program);
  addChanges(program);
  examples(
    withDemand(poolCommand(program, 'explain'))
      .description('what the pool would answer to a demand, and why; binds nothing')
      .option('--all', 'every GPU node of the pool, with what rules it out')
      .action(async (_options, command: Command) =>
        (await import('./commands/explain.ts')).explain(command.optsWithGlobals()),
      ),
    [
      'dxpu explain --gpus 8 --host h1 --nvlink',
      'dxpu explain --gpus 2 --host h1 --max-rtt 8us --all --output json',
    ],
  );
  examples(
    poolCommand(program, 'events')
      .description('the log of the pool: who did what, and what became of it')
      .option('--follow', 'goes on with what comes; resumes by itself after a lost manager')
      .option(
        '--after <position>',
        'entries behind this position',
        whole(0, Number.MAX_SAFE_INTEGER),
      )
      .option('--last <n>', 'only the newest entries', whole(0, Number.MAX_SAFE_INTEGER))
      .option('--binding <id>', 'only of this binding', filled)
      .action(async (_options, command: Command) =>
        (await import('./commands/events.ts')).events(command.optsWithGlobals()),
      ),
    [
      'dxpu events --last 20 --follow',
      'dxpu events --binding b1',
      'dxpu events --after 1234 --output json',
    ],
  );
}

/** A command with the options that say where the manager is. */
export function poolCommand(parent: Command, title: string): Command {
  return parent
    .command(title)
    .addOption(stateOption())
    .option('--manager <address>', 'address:port of a manager elsewhere; with --ca, --cert, --key')
    .option('--ca <file>', 'certificate of the authority of its pool')
    .option('--cert <file>', 'your certificate, of dxpu cert issue user NAME')
    .option('--key <file>', 'its private key');
}

const GET_TEXTS = {
  boxes: 'boxes, and how many of their GPU nodes are free',
  hosts: 'hosts, and the bindings they have',
  gpus: 'GPU nodes: where, what, whose',
  paths: 'the ways between hosts and boxes, with round trips',
  bindings: 'which GPU node is behind which virtual slot of which host',
} as const;

const GET_EXAMPLES = {
  boxes: ['dxpu get boxes', 'dxpu get boxes --output yaml'],
  hosts: ['dxpu get hosts', 'dxpu get hosts h1 --output json'],
  gpus: ['dxpu get gpus --free', 'dxpu get gpus --box b1 --output json   # JSON lines'],
  paths: ['dxpu get paths --host h1'],
  bindings: ['dxpu get bindings', 'dxpu get bindings --host h1 --binding-state failed'],
} as const;

function addGet(program: Command): void {
  const get = program.command('get').description('the lists of the pool');
  for (const kind of GET_KINDS) {
    const command = poolCommand(get, kind).description(GET_TEXTS[kind]);
    if (kind !== 'paths') {
      command.argument(
        `[${kind === 'gpus' ? 'gpu' : kind.replace(/(?:es|s)$/, '')}]`,
        'only this one',
        filled,
      );
    }
    if (kind === 'paths' || kind === 'bindings')
      command.option('--host <host>', 'only of this host', filled);
    if (kind !== 'boxes' && kind !== 'hosts')
      command.option('--box <box>', 'only of this box', filled);
    if (kind === 'gpus') command.option('--free', 'only those nobody has');
    if (kind === 'bindings') {
      command
        .addOption(
          new Option('--binding-state <state>', 'only those in this state').choices(STATE_WORDS),
        )
        .option('--request-id <id>', 'only those this request made', filled);
    }
    command.action(async (...args: unknown[]) => {
      const id = kind === 'paths' ? undefined : (args[0] as string | undefined);
      const options = (args.at(-1) as Command).optsWithGlobals();
      return (await import('./commands/get.ts')).get(kind, id, options as never);
    });
    examples(command, GET_EXAMPLES[kind]);
  }
}

const DESCRIBE_EXAMPLES = {
  box: ['dxpu describe box b1'],
  host: ['dxpu describe host h1'],
  gpu: ['dxpu describe gpu b1/0       # slot 0 of box b1; or the UUID'],
  binding: ['dxpu describe binding b1', 'dxpu describe binding b1 --log 100 --output json'],
} as const;

function addDescribe(program: Command): void {
  const describe = program
    .command('describe')
    .description('one thing of the pool: its record, how it does, what happened to it last');
  for (const kind of DESCRIBE_KINDS) {
    examples(
      poolCommand(describe, kind)
        .description(kind === 'gpu' ? 'a GPU node' : `a ${kind}`)
        .argument(`<${kind}>`, kind === 'gpu' ? 'its UUID, or BOX/SLOT' : 'its id', filled)
        .option('--log <n>', 'entries of the log at most', whole(0, 2000), 10)
        .action(async (id: string, _options, command: Command) =>
          (await import('./commands/describe.ts')).describe(kind, id, command.optsWithGlobals()),
        ),
      DESCRIBE_EXAMPLES[kind],
    );
  }
}

/** What is asked of the GPU nodes. */
function withDemand(command: Command): Command {
  return command
    .requiredOption('--gpus <n>', 'how many GPU nodes: all of them or none', whole(1, MAX_GPUS))
    .requiredOption('--host <host>', 'for which host', name)
    .option('--model <model>', 'of this model', filled)
    .option('--memory <bytes>', 'with at least this much memory each, as in 64MiB', size)
    .option('--same-box', 'all from one box')
    .option('--nvlink', 'all of one NVLink group')
    .addOption(
      new Option('--box-kind <kind>', 'from boxes of this kind').choices(['pcie', 'nvswitch']),
    )
    .option('--max-rtt <duration>', 'over paths of at most this round trip, as in 8us', duration);
}

function withWaiting(command: Command, goal: string): Command {
  return command
    .option('--wait', `returns once ${goal}`)
    .addOption(
      new Option(
        '--timeout <duration>',
        'for how long to wait, and to try when the manager does not answer',
      )
        .argParser(duration)
        .default(DEFAULT_TIMEOUT_NS, '30s'),
    )
    .option('--request-id <id>', 'asked with this id before, it is not done again', filled);
}

function addChanges(program: Command): void {
  examples(
    withWaiting(
      withDemand(poolCommand(program, 'bind')),
      'the host can use all of them, with status 0; 1 when one fails or the time is up',
    )
      .description('give GPU nodes to a host: as many as asked for, or none')
      .option('--dry-run', 'show what would be bound, and bind nothing')
      .option('--no-retry', 'when a binding fails, leave it so')
      .action(async (_options, command: Command) =>
        (await import('./commands/bind.ts')).bind(command.optsWithGlobals()),
      ),
    [
      'dxpu bind --gpus 1 --host h1 --wait',
      'dxpu bind --gpus 4 --host h1 --nvlink --memory 64MiB --wait --timeout 60s',
      'dxpu bind --gpus 2 --host h2 --same-box --max-rtt 8us --dry-run',
    ],
  );
  const ids = new Argument('<binding...>', 'ids of bindings; all of them or none');
  examples(
    withWaiting(poolCommand(program, 'unbind'), 'the GPU nodes are scrubbed and free')
      .description('give GPU nodes back')
      .addArgument(ids)
      .option('--force', "by surprise: waits neither for the host's programs nor for the host")
      .action(async (bindings: string[], _options, command: Command) =>
        (await import('./commands/bind.ts')).unbind(bindings, command.optsWithGlobals()),
      ),
    ['dxpu unbind b1 --wait', 'dxpu unbind b1 b2 --force'],
  );
  examples(
    withWaiting(poolCommand(program, 'retry'), 'the host can use all of them')
      .description('try failed bindings again, under generations that were never used')
      .addArgument(ids)
      .action(async (bindings: string[], _options, command: Command) =>
        (await import('./commands/bind.ts')).retry(bindings, command.optsWithGlobals()),
      ),
    ['dxpu retry b1', 'dxpu retry b1 b2 --wait'],
  );
}
