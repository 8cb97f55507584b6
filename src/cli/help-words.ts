/**
 * Help asked for by name. Commander shows the help of the parent for a command that does not exist, and
 * for one of a group; both are put right before it sees them.
 */
import type { Command } from 'commander';

/**
 * `argv` as it is, or `help COMMAND…` as `COMMAND… --help`. Fails as commander fails without the wish for
 * help, where it names a command that does not exist.
 */
export function withHelpWords(program: Command, argv: readonly string[]): readonly string[] {
  const [first, ...rest] = wordsOf(program, argv);
  const isHelp = first === 'help';
  if (!isHelp && !argv.includes('--help') && !argv.includes('-h')) return argv;
  const names = isHelp || first === undefined ? rest : [first, ...rest];
  let command = program;
  for (const name of names) {
    // From here on they are arguments.
    if (command.commands.length === 0) break;
    const next = command.commands.find((one) => one.name() === name);
    if (next === undefined) {
      // An argument of its own, as the trace of `emulate` is: parsing it would run it.
      if (command.registeredArguments.length > 0) break;
      // Parsing it is how to get its error, with what may have been meant.
      command.parse([name], { from: 'user' });
    } else command = next;
  }
  return isHelp ? [...names, '--help'] : argv;
}

/** What is neither an option nor the value of an option, of the program or of the commands named so far. */
function wordsOf(program: Command, argv: readonly string[]): string[] {
  const words: string[] = [];
  let command = program;
  const known = [...program.options];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? '';
    if (word === '--') break;
    if (!word.startsWith('-')) {
      words.push(word);
      const next = command.commands.find((one) => one.name() === word);
      if (next === undefined) continue;
      command = next;
      known.push(...next.options);
    } else if (known.some((one) => one.required && [one.long, one.short].includes(word))) at++;
  }
  return words;
}
