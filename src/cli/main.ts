#!/usr/bin/env node
/** Entry of the `dxpu` command. */
import { CommanderError } from 'commander';
import { type OutputFormat, parseOutputFormat, reportError, UsageError } from './output.ts';
import { fileProblem } from './file-problem.ts';
import { withHelpWords } from './help-words.ts';
import { buildProgram } from './program.ts';

const EXIT_FAILED = 1;
const EXIT_USAGE = 2;

/** What commander calls its way of saying that help or a version was asked for and printed. */
const SHOWN = new Set(['commander.helpDisplayed', 'commander.version']);

async function main(argv: readonly string[]): Promise<void> {
  // A reader that has seen enough (head, less) ends us without noise.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    reportError(fileProblem('write', 'stdout', error), format, debug);
    process.exit(EXIT_FAILED);
  });
  // With nobody to tell, the exit status says it.
  process.stderr.on('error', () => process.exit(EXIT_FAILED));
  const debug = argv.includes('--debug') || (process.env.DXPU_DEBUG ?? '') !== '';
  const format = outputFormat(argv);
  try {
    const program = buildProgram();
    if (argv[0] === 'complete' && argv[1] === '--') {
      const { printCompletions } = await import('./completion.ts');
      await printCompletions(program, argv.slice(2));
      return;
    }
    await program.parseAsync([...withHelpWords(program, argv)], { from: 'user' });
  } catch (error) {
    if (error instanceof CommanderError) {
      if (SHOWN.has(error.code)) return;
      process.exitCode = EXIT_USAGE;
      // Without a command, help has been shown: there is nothing to add.
      if (error.code === 'commander.help') return;
      reportError(new UsageError(usageMessage(error)), format, false);
      return;
    }
    process.exitCode = error instanceof UsageError ? EXIT_USAGE : EXIT_FAILED;
    reportError(error, format, debug);
  }
}

function usageMessage(error: CommanderError): string {
  const message = error.message.replace(/^error: /, '').replace(/\s*\n\s*/g, ' ');
  return `${message.replace(/\.$/, '')}; see --help`;
}

/** Read before anything is parsed: wrong usage is reported in the asked form too. */
function outputFormat(argv: readonly string[]): OutputFormat {
  const at = argv.findIndex((word) => word === '--output' || word.startsWith('--output='));
  const word = argv[at] === '--output' ? argv[at + 1] : argv[at]?.slice('--output='.length);
  return parseOutputFormat(word) ?? 'table';
}

await main(process.argv.slice(2));
