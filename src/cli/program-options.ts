/** Options and arguments that several commands share, and what they accept. */
import { readFileSync } from 'node:fs';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { DxpuError } from '#base/errors';
import { isIdentityName } from '#identity/identity';
import { ownFile } from './own-file.ts';
import { OUTPUT_FORMATS, type OutputFormat, parseOutputFormat, UsageError } from './output.ts';
import { parseDuration, parseRate, parseShare, parseSize, parseWhole } from './quantity.ts';

/** Wraps a parser so that its complaint is one of usage. */
export function checked<T>(parse: (text: string) => T): (text: string) => T {
  return (text) => {
    try {
      return parse(text);
    } catch (error) {
      throw new InvalidArgumentError(DxpuError.from(error).message);
    }
  };
}

export const whole = (low: number, high: number): ((text: string) => number) =>
  checked((text) => parseWhole(text, low, high));
/** What `--output` takes of some commands: those that have it in an `--output` of their own. */
export const CSV = 'csv';
export type AnswerFormat = OutputFormat | typeof CSV;
/** A word that is none of them stays as it is: which there are is known with the command. */
export const outputFormat = (text: string): string => parseOutputFormat(text) ?? text;

/** Throws where the command, with an `--output` of its own or without, has no such form. */
export function checkOutputFormat(format: unknown, own: Option | undefined): void {
  const choices: readonly string[] = own?.argChoices ?? OUTPUT_FORMATS;
  if (typeof format === 'string' && choices.includes(format)) return;
  if (format === CSV) {
    throw new UsageError('--output csv is not a form of this command; see --help');
  }
  throw new UsageError(
    `option '--output <format>' argument '${String(format)}' is invalid. ` +
      `Allowed choices are ${choices.join(', ')}; see --help`,
  );
}
export const name = checked(parseName);
/** Any text but an empty one, which is more often a variable that is not set than a wish. */
export const filled = checked((text: string): string => {
  if (text !== '') return text;
  throw new DxpuError('invalid_argument', 'It is empty: give a value, or leave it out.');
});
export const duration = checked(parseDuration);
export const share = checked(parseShare);
export const size = checked(parseSize);
export const rate = checked(parseRate);

export const percent = checked((text: string): number => {
  const match = /^\s*(\d+(?:\.\d+)?)\s*%?\s*$/.exec(text);
  const value = Number(match?.[1] ?? Number.NaN);
  if (value > 0 && value <= 1e6) return value;
  throw new DxpuError(
    'invalid_argument',
    `${JSON.stringify(text)} is not a share above 0: write percent, as in 10 or 2.5%`,
  );
});

function parseName(text: string): string {
  if (isIdentityName(text)) return text;
  throw new DxpuError(
    'invalid_argument',
    `${JSON.stringify(text.slice(0, 80))} cannot be a name: 1 to 63 letters, digits, dots, dashes ` +
      'and underscores, beginning with a letter or digit',
  );
}

/** An option that may be given again: all its values, in order. */
export const several =
  <T>(parse: (text: string) => T) =>
  (text: string, before: readonly T[] | undefined): readonly T[] => [
    ...(before ?? []),
    parse(text),
  ];

/**
 * Of a command with an answer: its picture, its page, and one more form. `--output` is parsed by the
 * program, which has it for all commands.
 */
export function answerOptions(command: Command, plotted: string): Command {
  return command
    .option('--plot <file>', `draw ${plotted}, as .svg or .png`, filled)
    .option('--html <file>', 'write one self-contained page', filled)
    .addOption(
      new Option('--output <format>', 'how results and errors are printed').choices([
        ...OUTPUT_FORMATS,
        CSV,
      ]),
    );
}

/**
 * A command parses its options wherever they stand, behind a command below it too. Fails where one is
 * given that `command` does not have itself; `why` goes on behind its name.
 */
export function refuseOptionsAbove(command: Command, why: string): void {
  const above = command.parent;
  const foreign = above?.options.find(
    (option) =>
      above.getOptionValueSource(option.attributeName()) === 'cli' &&
      command.options.every(({ long }) => long !== option.long),
  );
  if (foreign !== undefined) throw new UsageError(`${foreign.long ?? ''} ${why}`);
}

export function examples(command: Command, lines: readonly string[]): Command {
  return command.addHelpText(
    'after',
    `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}`,
  );
}

/** Without a default of commander's, which shows none where the value depends on the environment. */
export const stateOption = (): Option =>
  new Option(
    '--state <folder>',
    'where running processes are found (default: $DXPU_STATE, or ~/.local/state/dxpu)',
  ).argParser(filled);

export const processOption = (): Option =>
  new Option('--process <name>', 'which process, where several run: host-h1, box-b1, manager-m1');

export function version(): string {
  const file = ownFile('../../package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
