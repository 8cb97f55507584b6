/** Shell completion, made from the program's own commands and options. */
import tab from '@bomb.sh/tab/commander';
import type { Command } from 'commander';

/** Replaces the `completion` command that help shows by one that works, and answers the shell. */
export function addCompletion(program: Command): void {
  const commands = program.commands as Command[];
  const shown = commands.findIndex((command) => command.name() === 'completion');
  if (shown >= 0) commands.splice(shown, 1);
  tab(program, { completionCommandName: 'completion' });
}
