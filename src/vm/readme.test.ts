import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { qemuArguments, slotPorts } from './qemu-command.ts';

/** Lines without their indentation, so that only the code counts. */
const linesOf = (text: string): string =>
  text
    .split('\n')
    .map((line) => line.trim())
    .join('\n');

it('the example of README.md runs, and gives two root ports', () => {
  // README example
  const MIB = 2 ** 20;
  const words = qemuArguments({
    kernel: '/boot/vmlinuz',
    initrd: '/boot/initrd.img',
    memoryMib: 512,
    cpus: 1,
    ports: slotPorts(2, { memoryBytes: 32 * MIB, prefetchableBytes: 256 * MIB }),
    qmp: ['/run/vm/host.qmp'],
    console: '/run/vm/console',
    consoleLog: '/run/vm/console.log',
    accelerator: 'tcg',
  });
  const ports = words.filter((word) => word.startsWith('pcie-root-port')); // two of them
  // end of the example
  expect(ports).toHaveLength(2);

  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const shown = /```ts\nimport .*\n\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? '';
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  expect(shown).toContain('qemuArguments(');
  expect(linesOf(shown)).toBe(linesOf(run));
});
