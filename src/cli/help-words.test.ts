import { describe, expect, it } from 'vitest';
import { withHelpWords } from './help-words.ts';
import { buildProgram } from './program.ts';

const words = (...argv: string[]): readonly string[] => withHelpWords(buildProgram(), argv);

describe('asking for help', () => {
  it.each([
    [['sttus', '--help'], "unknown command 'sttus'"],
    [['help', 'nosuch'], "unknown command 'nosuch'"],
    [['accel', 'list', '-h'], "unknown command 'list'"],
    [['--output', 'json', 'accel', 'list', '--help'], "unknown command 'list'"],
  ])('%j is wrong usage (regression: help of something else, status 0)', (argv, message) => {
    expect(() => words(...argv)).toThrow(message);
  });

  it('of a command that is there is left alone, help COMMAND becomes COMMAND --help', () => {
    expect(words('accel', 'run', 'x', '--help')).toEqual(['accel', 'run', 'x', '--help']);
    const valued = ['simulate', '--nodes', 'n.csv', '--help'];
    expect(words(...valued), 'regression: n.csv was taken for a command').toEqual(valued);
    expect(words('decode', 'help')).toEqual(['decode', 'help']);
    expect(words('help')).toEqual(['--help']);
    expect(words('help', 'accel', 'run')).toEqual(['accel', 'run', '--help']);
  });

  it('of a command with arguments and commands of its own runs nothing (regression: the trace was run)', () => {
    const program = buildProgram();
    const ran: unknown[] = [];
    const emulate = program.commands.find((command) => command.name() === 'emulate')!;
    emulate.action((trace) => void ran.push(trace));
    const argv = ['emulate', 'trace.json', '--help'];
    expect(withHelpWords(program, argv)).toEqual(argv);
    expect(ran).toEqual([]);
  });
});
