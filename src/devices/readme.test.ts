import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { Endpoint } from '#pcie/endpoint';
import { FakeHost } from '#testkit/fake-host';

/** Lines without their indentation, so that only the code counts. */
function linesOf(text: string): string {
  return text
    .split('\n')
    .map((line) => line.trim())
    .join('\n');
}

it('the example of README.md runs, and reads 42', () => {
  const host = new FakeHost(0, 4096);
  let count = 0;
  // README example
  const endpoint = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 2, revisionId: 1, classCode: 0xff0000 },
    serial: 1n,
    bars: [
      {
        index: 0,
        sizeBytes: 4096,
        is64Bit: false,
        prefetchable: false,
        target: {
          kind: 'registers',
          readRegister: (_now, offset) => (offset === 0 ? count : 0),
          writeRegister: (_now, offset, value) => {
            if (offset === 0) count += value;
          },
        },
      },
    ],
  });
  host.plug(endpoint);
  host.configWrite(0x10, 0xe000_0000); // BAR0
  host.configWrite(0x04, 2); // Memory Space Enable
  host.write32(0xe000_0000, 41);
  host.write32(0xe000_0000, 1);
  host.read32(0xe000_0000); // 42
  // end of the example
  expect(host.read32(0xe000_0000)).toBe(42);

  const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const shown = /```ts\n([\s\S]*?)\n```/.exec(readme)?.[1] ?? '';
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  expect(shown).toContain('new Endpoint(');
  expect(linesOf(shown)).toBe(linesOf(run));
});
