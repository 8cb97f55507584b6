/** A host whose functions a VM uses. */
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { configTexts } from '#testkit/config-text';
import { readHostConfig, type VmOfHost } from './host-config.ts';
import { runHost } from './host-process.ts';
import { UsageError } from './output.ts';

const { folder, written, complaint: ofText, remove } = configTexts();
afterAll(remove);

const HOST = `host: h1
certificates: { ca: ca.pem, cert: h.pem, key: h-key.pem }
paths:
  - { name: p0, box: b1, address: "127.0.0.1:7001" }
table:
  - { virtualSlot: 1, box: b1, slot: 3, path: p0, generation: 7 }
`;
const VM = 'vm: { qmp: run/vm.qmp, rootPorts: [rp0, rp1] }\n';
const SLOTS = `slots:
  - slot: 0
    secondaryBus: 1
    nonPrefetchable: { base: 0xe0000000, size: 16MiB }
    prefetchable: { base: 0x4000000000, size: 64MiB }
`;
const MEMORY = 'memory: [{ base: 0, size: 64MiB }]\n';
const GIVEN: VmOfHost = { qmp: '/run/other.qmp', rootPorts: ['a', 'b', 'c'] };

const complaint = (text: string): string => ofText(readHostConfig, text);

describe('a host with a VM', () => {
  it('has a slot for each root port, with nothing known of it, and no memory', () => {
    const config = readHostConfig(written(HOST + VM));
    expect(config.vm).toEqual({
      qmp: path.join(folder, 'run/vm.qmp'),
      rootPorts: ['rp0', 'rp1'],
    });
    expect(config.softHost.memory).toEqual([]);
    const port = {
      nonPrefetchableBase: 2 ** 20,
      nonPrefetchableBytes: 0,
      prefetchableBase: 2 ** 20,
      prefetchableBytes: 0,
    };
    expect(config.softHost.ports).toEqual([
      { secondaryBus: 255, ...port },
      { secondaryBus: 254, ...port },
    ]);
    const empty = { base: 2 ** 20, limit: 2 ** 20 - 1 };
    expect(config.rows).toMatchObject([
      { virtualSlot: 1, secondaryBus: 254, nonPrefetchable: empty, prefetchable: empty },
    ]);
  });

  it('has no slots and no memory of its own', () => {
    const both = complaint(HOST + VM + SLOTS + MEMORY);
    expect(both).toContain('slots: a host with vm has no slots of its own');
    expect(both).toContain('memory: a host with vm has no memory of its own');
    expect(complaint(HOST + VM + MEMORY)).not.toContain('no slots of its own');
  });

  it('needs one or the other', () => {
    expect(complaint(HOST)).toContain('needs slots, or vm where a VM uses the functions');
  });

  it('names rows that have no root port', () => {
    const text = HOST.replace('virtualSlot: 1', 'virtualSlot: 2') + VM;
    expect(complaint(text)).toContain(
      'table[0].virtualSlot: there is no virtual slot 2; slots has 0, 1',
    );
  });

  it.each([
    ['qmp: run/vm.qmp, rootPorts: []', 'vm.rootPorts: needs at least one root port'],
    ['qmp: "", rootPorts: [rp0]', 'vm.qmp: must not be empty'],
    // 108 bytes with its slash; unix(7) has room for 107.
    [
      `qmp: /${'a'.repeat(107)}, rootPorts: [rp0]`,
      'has 108 bytes, the system allows 107: choose a shorter path',
    ],
    ['rootPorts: [rp0]', 'vm.qmp: is missing'],
    ['qmp: run/vm.qmp', 'vm.rootPorts: is missing'],
    ['qmp: run/vm.qmp, rootPorts: ["a b"]', 'vm.rootPorts[0]: must be 1 to 63 letters'],
    ['qmp: run/vm.qmp, rootPorts: [rp0, rp0]', 'vm.rootPorts[1]: root port rp0 is twice'],
    [
      `qmp: run/vm.qmp, rootPorts: [${Array.from({ length: 32 }, (_, n) => `rp${n}`).join(', ')}]`,
      'vm.rootPorts: a host has room for 31 virtual slots',
    ],
  ])('says what is wrong with { %s }', (vm, message) => {
    expect(complaint(`${HOST}vm: { ${vm} }\n`)).toContain(message);
  });
});

describe('a VM of the command line', () => {
  it.each([
    ['nothing', ''],
    ['vm', VM],
    ['slots and memory', SLOTS + MEMORY],
  ])('stands for what the file says of it: %s', (_what, rest) => {
    const config = readHostConfig(written(HOST + rest), undefined, GIVEN);
    expect(config.vm).toEqual(GIVEN);
    expect(config.softHost.ports.map(({ secondaryBus }) => secondaryBus)).toEqual([255, 254, 253]);
    expect(config.softHost.memory).toEqual([]);
  });

  it('is a socket together with root ports', () => {
    const config = written(HOST + VM);
    for (const half of [{ qmp: '/run/vm.qmp' }, { slot: ['rp0'] }]) {
      expect(() => runHost({ config, ...half })).toThrow(UsageError);
    }
  });

  it.each([
    ['no root port', []],
    ['one that is twice', ['rp0', 'rp0']],
    ['more than 31', Array.from({ length: 32 }, (_, index) => `rp${index}`)],
  ])('is refused with %s', (_what, rootPorts) => {
    expect(() =>
      readHostConfig(written(HOST), undefined, { qmp: '/run/vm.qmp', rootPorts }),
    ).toThrow(DxpuError);
  });
});
