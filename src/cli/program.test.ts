import type { Command } from 'commander';
import { describe, expect, it } from 'vitest';
import { USUAL_SIZES } from './pool-words.ts';
import { buildProgram } from './program.ts';

function* commandsOf(parent: Command, prefix: string): Generator<[string, Command]> {
  for (const command of parent.commands) {
    const name = `${prefix}${command.name()}`;
    // These do something by themselves and have a command below them.
    if (command.commands.length === 0 || ['box', 'emulate', 'simulate'].includes(name))
      yield [name, command];
    yield* commandsOf(command, `${name} `);
  }
}

describe('the command tree', () => {
  const commands = [...commandsOf(buildProgram(), '')];

  it('has what the manual promises', () => {
    expect(commands.map(([name]) => name)).toEqual([
      'start',
      'up',
      'down',
      'get boxes',
      'get hosts',
      'get gpus',
      'get paths',
      'get bindings',
      'describe box',
      'describe host',
      'describe gpu',
      'describe binding',
      'bind',
      'unbind',
      'retry',
      'explain',
      'events',
      'manager',
      'box',
      'box screenshot',
      'host',
      'vm up',
      'vm console',
      'vm status',
      'vm down',
      'status',
      'tables',
      'reload',
      'stop',
      'capture',
      'fault link',
      'accel run',
      'predict',
      'emulate',
      'emulate bandwidth',
      'emulate latency',
      'emulate launch-rate',
      'simulate',
      'simulate merge',
      'bandwidth',
      'decode',
      'replay',
      'device serve',
      'cert init',
      'cert issue',
      'completion',
    ]);
  });

  it.each(commands)('%s explains itself with examples of itself', (name, command) => {
    let help = '';
    command.configureOutput({ writeOut: (text) => (help += text) });
    command.outputHelp();
    expect(command.description()).not.toBe('');
    const [, examples = ''] = help.split('Examples:');
    expect(examples).toContain(`dxpu ${name} `.trimEnd());
    for (const option of command.options) expect(option.description, option.flags).not.toBe('');
  });
});

/** The help of a command, its lines put together. */
function helpOf(name: string): string {
  const command = buildProgram().commands.find((one) => one.name() === name);
  return command?.helpInformation().replaceAll(/\s+/g, ' ') ?? '';
}

describe('dxpu box', () => {
  it('needs a configuration, the commands below it do not', async () => {
    const program = buildProgram();
    await expect(program.parseAsync(['box'], { from: 'user' })).rejects.toThrow(
      "required option '--config <file>' not specified",
    );
    const nowhere = ['box', 'screenshot', '0', 'x.png', '--state', '/nonexistent/state'];
    await expect(buildProgram().parseAsync(nowhere, { from: 'user' })).rejects.toThrow(
      'no dxpu process is running in /nonexistent/state',
    );
  });
});

describe('defaults in help', () => {
  it.each(['bind', 'unbind', 'retry'])('of %s: the timeout as people write it', (name) => {
    expect(helpOf(name)).toMatch(/--timeout <duration> [^(]*\(default: 30s\)/);
  });

  it('of up: the sizes of a new pool', () => {
    for (const size of ['boxes', 'gpus', 'hosts', 'slots'] as const) {
      expect(helpOf('up')).toMatch(
        new RegExp(`--${size} <n> [^(]*\\(default: ${USUAL_SIZES[size]}, or as before\\)`),
      );
    }
  });
});

describe('a form of output that there is not', () => {
  // csv was missing in the list of predict.
  it.each([
    [['predict', '--example', '--output', 'xml'], 'Allowed choices are table, json, yaml, csv'],
    [['decode', '-', '--output', 'xml'], 'Allowed choices are table, json, yaml;'],
    [['decode', '-', '--output', 'csv'], '--output csv is not a form of this command'],
  ])('is refused with those there are: %j', async (argv, message) => {
    const program = buildProgram();
    await expect(program.parseAsync(argv, { from: 'user' })).rejects.toThrow(message);
  });
});

describe('an empty value', () => {
  const demand = ['--gpus', '1', '--host', 'h1'];

  it.each([
    ['down', '--purge', '--state', ''],
    ['get', 'gpus', '--state='],
    ['bind', ...demand, '--model', ''],
    ['bind', ...demand, '--box-kind', ''],
    ['bind', ...demand, '--memory', ''],
    ['bind', ...demand, '--max-rtt', ''],
    ['bind', ...demand, '--request-id', ''],
    ['bind', '--gpus', '1', '--host', ''],
    ['explain', ...demand, '--model='],
    ['get', 'gpus', '--box', ''],
    ['get', 'boxes', ''],
    ['events', '--binding', ''],
  ])(
    'is wrong usage (regression: as if it had not been given): %s %s %s %s %s %s',
    async (...argv) => {
      const program = buildProgram();
      await expect(program.parseAsync(argv, { from: 'user' })).rejects.toMatchObject({
        code: 'commander.invalidArgument',
      });
    },
  );
});
