/**
 * Shell completion from the program's own commands and options. The scripts of the shells call
 * `dxpu complete -- WORDS`, the last word being the one at the cursor, and are answered with a value
 * and its description a line, then a line `:DIRECTIVE`.
 */
import tab from '@bomb.sh/tab';
import type { Argument, Command, Option } from 'commander';
import { bashScript, CompletionDirective } from './completion-bash.ts';
import { linkProfileNames } from '#pcie/link-profile';
import { knownProcesses, stateFolder } from './state-folder.ts';
import type { PoolConnection } from './pool-connection.ts';
import { allStatus, isProxy } from './status-report.ts';

export interface Completions {
  readonly values: readonly { readonly value: string; readonly description: string }[];
  readonly directive: CompletionDirective;
}

/** Somebody waits with a finger on the key. */
const ANSWER_WITHIN_MS = 700;
const MANAGER_WITHIN_MS = 300;
/** More than anybody reads. */
const MAX_IDS = 200;
const { FILES, FOLDERS, VALUES } = CompletionDirective;

/** The script for one of bash, zsh, fish and powershell, on stdout. */
export function printCompletionScript(program: Command, shell: string): void {
  if (shell === 'bash') process.stdout.write(bashScript(program.name()));
  else tab.setup(program.name(), program.name(), shell);
}

/** Answers the script of a shell. */
export async function printCompletions(program: Command, words: readonly string[]): Promise<void> {
  const { values, directive } = await completionsOf(program, words);
  const lines = values.map(({ value, description }) => `${value}\t${description}`);
  process.stdout.write(`${[...lines, `:${directive}`].join('\n')}\n`);
}

/** What may stand where the last of `words` is. */
export async function completionsOf(
  program: Command,
  words: readonly string[],
): Promise<Completions> {
  const current = words.at(-1) ?? '';
  const line = readLine(program, words.slice(0, -1));
  const found = await candidates(line, current);
  const typed = current.startsWith('-') ? current.replace(/^[^=]*=/, '') : current;
  return {
    directive: found.directive,
    values: found.values.filter(({ value }) => value.startsWith(typed)),
  };
}

interface Line {
  readonly command: Command;
  /** The option whose value comes next. */
  readonly pending: Option | undefined;
  readonly positionals: number;
  /** Where processes and the manager are, by the options so far. */
  readonly place: Place;
}

type Place = Partial<Record<PlaceOption, string>>;
type PlaceOption = 'state' | 'manager' | 'ca' | 'cert' | 'key';
const PLACE_OPTIONS: readonly string[] = ['--state', '--manager', '--ca', '--cert', '--key'];

function readLine(program: Command, words: readonly string[]): Line {
  let command = program;
  let pending: Option | undefined;
  let positionals = 0;
  const place: Place = {};
  for (const word of words) {
    if (pending !== undefined) {
      const { long = '' } = pending;
      if (PLACE_OPTIONS.includes(long)) place[long.slice(2) as PlaceOption] = word;
      pending = undefined;
    } else if (word.startsWith('-') && word !== '-') {
      const option = optionsOf(command).find((one) => isNamed(one, word));
      if (option !== undefined && takesValue(option)) pending = option;
    } else {
      const next = command.commands.find((one) => one.name() === word);
      if (next === undefined) positionals++;
      else command = next;
    }
  }
  return { command, pending, positionals, place };
}

/** Those of a command, and the ones all commands have that it has not in a form of its own. */
function optionsOf(command: Command): readonly Option[] {
  let program = command;
  while (program.parent !== null) program = program.parent;
  const above = program.options.filter(({ long }) =>
    command.options.every((own) => own.long !== long),
  );
  const all = command === program ? program.options : [...command.options, ...above];
  return all.filter(({ hidden }) => !hidden);
}

function isNamed({ short, long }: Option, flag: string): boolean {
  return flag === short || flag === long;
}

function takesValue(option: Option): boolean {
  return option.required || option.optional;
}

async function candidates(line: Line, current: string): Promise<Completions> {
  const { command, pending, place } = line;
  if (pending !== undefined) return valuesOf(pending, place);
  if (current.startsWith('-')) {
    const [name = '', value] = current.split('=');
    const options = optionsOf(command);
    if (value !== undefined) {
      const option = options.find((one) => isNamed(one, name));
      return option === undefined ? among([]) : valuesOf(option, place);
    }
    const flags = options.flatMap(({ short, long, description }) =>
      [long, short]
        .filter((flag) => flag !== undefined)
        .map((flag) => ({ value: flag, description })),
    );
    return { directive: VALUES, values: [...flags, { value: '--help', description: 'help' }] };
  }
  if (command.commands.length > 0) {
    const values = command.commands.map((one) => ({
      value: one.name(),
      description: one.description(),
    }));
    // What else it takes is the shell's, where none of the commands begins so.
    return { directive: command.registeredArguments.length > 0 ? FILES : VALUES, values };
  }
  const { registeredArguments } = command;
  const last = registeredArguments.at(-1);
  // The last one may stand for any number.
  const argument =
    registeredArguments[line.positionals] ?? (last?.variadic === true ? last : undefined);
  return argument === undefined ? among([]) : valuesOf(argument, place);
}

const among = (values: readonly string[]): Completions => ({
  directive: VALUES,
  values: values.map((value) => ({ value, description: '' })),
});

async function valuesOf(taker: Option | Argument, place: Place): Promise<Completions> {
  if (taker.argChoices !== undefined) return among(taker.argChoices);
  switch ('long' in taker ? taker.long : taker.name()) {
    case '--process':
      return among(knownProcesses(stateFolder(place.state)).map((one) => one.name));
    case '--slot':
    case 'slot':
      return among(await runningSlots(place.state));
    case '--binding':
    case 'binding':
      return among(await idsOf(place, bindingIds));
    case '--host':
    case 'host':
      return among(await idsOf(place, hostIds));
    case '--box':
    case 'box':
      return among(await idsOf(place, boxIds));
    case 'gpu':
      return among(await idsOf(place, gpuIds));
    case '--config':
    case '--out':
    case '--ca':
    case '--cert':
    case '--key':
    case 'file':
    case 'trace':
    case '--nodes':
    case '--pods':
    case '--jobs':
    case '--plot':
    case '--html':
    case '--trace':
    case '--capture':
      return { directive: FILES, values: [] };
    case '--link':
      return { directive: FILES, values: among(linkProfileNames()).values };
    case '--dir':
    case '--state':
      return { directive: FOLDERS, values: [] };
    default:
      return among([]);
  }
}

/** The slots of all processes that answer soon enough. */
async function runningSlots(state: string | undefined): Promise<string[]> {
  const asked = allStatus(state === undefined ? {} : { state }).then(
    ({ statuses }) => statuses.filter(isProxy).flatMap((one) => one.slots.map(({ slot }) => slot)),
    () => [],
  );
  const late = new Promise<number[]>((resolve) => {
    setTimeout(() => resolve([]), ANSWER_WITHIN_MS).unref();
  });
  const slots = new Set(await Promise.race([asked, late]));
  return [...slots].sort((a, b) => a - b).map(String);
}

type Ids = (pool: PoolConnection['pool'], pageSize: number) => Promise<readonly string[]>;

const bindingIds: Ids = async (pool, pageSize) =>
  (await pool.listBindings({ pageSize })).bindings.map(({ id }) => id);
const hostIds: Ids = async (pool, pageSize) =>
  (await pool.listHosts({ pageSize })).hosts.map(({ id }) => id);
const boxIds: Ids = async (pool, pageSize) =>
  (await pool.listBoxes({ pageSize })).boxes.map(({ id }) => id);
const gpuIds: Ids = async (pool, pageSize) =>
  (await pool.listGpus({ pageSize })).gpus.map(({ box, slot }) => `${box}/${slot}`);

/** What the manager says soon enough; nothing when there is none, and not a word about it. */
async function idsOf(place: Place, ids: Ids): Promise<readonly string[]> {
  const { hasManager, openPool } = await import('./pool-connection.ts');
  if (!hasManager(place)) return [];
  let pool: PoolConnection | undefined;
  try {
    // It takes a moment to load, and has not asked anybody yet.
    pool = await openPool(place);
    return await Promise.race([ids(pool.pool, MAX_IDS), tooLate()]);
  } catch {
    return [];
  } finally {
    pool?.close();
  }
}

function tooLate(): Promise<readonly string[]> {
  return new Promise((resolve) => {
    setTimeout(() => resolve([]), MANAGER_WITHIN_MS).unref();
  });
}
