import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { BOX_CONFIG as BOX, changed, configTexts, HOST_CONFIG as HOST } from '#testkit/config-text';
import { readBoxConfig } from './box-config.ts';
import { ignoredChanges } from './fixed-part.ts';
import { readHostConfig } from './host-config.ts';

const { folder, written, complaint, remove } = configTexts();
afterAll(remove);

const hostComplaint = (from: string, to: string): string =>
  complaint(readHostConfig, changed(HOST, from, to));
const boxComplaint = (from: string, to: string): string =>
  complaint(readBoxConfig, changed(BOX, from, to));

describe('a host configuration', () => {
  it('becomes rows whose bus and windows are those of the slot', () => {
    const config = readHostConfig(written(HOST));
    expect(config.rows).toEqual([
      {
        virtualSlot: 0,
        used: true,
        secondaryBus: 1,
        nonPrefetchable: { base: 0xe000_0000, limit: 0xe0ff_ffff },
        prefetchable: { base: 0x40_0000_0000, limit: 0x40_03ff_ffff },
        box: 'b1',
        slot: 3,
        path: 'p0',
        generation: 7,
      },
    ]);
    expect(config.paths).toEqual([{ name: 'p0', box: 'b1', host: '127.0.0.1', port: 7001 }]);
    expect(config.credentialFiles.key).toBe(path.join(folder, 'h-key.pem'));
    expect(config.softHost.ports).toHaveLength(2);
  });

  it('names line, column, field and the likely word for a mistyped field', () => {
    expect(hostComplaint('secondaryBus: 2', 'secondryBus: 2')).toContain(
      '11:5: slots[1].secondryBus: unknown field; did you mean secondaryBus?',
    );
    expect(hostComplaint('secondaryBus: 2', 'secondryBus: 2')).toContain(
      '10:5: slots[1].secondaryBus: is missing',
    );
    expect(hostComplaint('host: h1', 'host: h1\ncolour: red')).toBe(
      '2:1: colour: unknown field; known here: host, certificates, manager, reach, paths, slots, vm, table, ' +
        'memory, maxPayload, maxReadRequest, link',
    );
  });

  it.each([
    ['host: h1', 'host: "h 1"', '1:7: host: must be 1 to 63 letters'],
    ['host: h1\n', '', '1:1: host: is missing'],
    ['"127.0.0.1:7001"', '7001', '4:35: paths[0].address: must be a text, not 7001'],
    ['"127.0.0.1:7001"', '"127.0.0.1"', '4:35: paths[0].address: "127.0.0.1" is not an address'],
    ['size: 16MiB', 'size: 16MB', '8:48: slots[0].nonPrefetchable.size: must be 1 MiB aligned'],
    ['size: 16MiB', 'size: 16 elephants', '8:48: slots[0].nonPrefetchable.size: "16 elephants" is'],
    [
      '0x4000000000',
      '0x4000080000',
      '9:27: slots[0].prefetchable.base: must be 1 MiB aligned; the next is 0x4000100000',
    ],
    ['0xe0000000', '0xfff00000', 'must end below 4 GiB'],
    ['0xe1000000', '0xe0000000', '12:22: slots[1].nonPrefetchable: overlaps the nonPrefetchable'],
    ['secondaryBus: 2', 'secondaryBus: 1', '11:19: slots[1].secondaryBus: bus 1 is that of slot 0'],
    ['secondaryBus: 2', 'secondaryBus: 256', 'must be a whole number from 1 to 255'],
    ['base: 0, size: 64MiB', 'base: 0, size: 4GiB', '15:5: memory[0]: overlaps a window of slot 0'],
    [
      'base: 0, size: 64MiB',
      'base: 7, size: 64MiB',
      '15:13: memory[0].base: must be 4 KiB aligned',
    ],
    ['slot: 1\n', 'slot: 2\n', '6:3: slots: virtual slots must be numbered from 0 without gaps; 1'],
    ['virtualSlot: 0', 'virtualSlot: 5', '17:20: table[0].virtualSlot: there is no virtual slot 5'],
    ['box: b1, slot', 'box: b9, slot', '17:28: table[0].box: no path leads to box b9'],
    ['path: p0', 'path: p9', 'table[0].path: there is no path p9 to box b1; there is: p0'],
    ['generation: 7', 'generation: 0', 'table[0].generation: must be a whole number from 1'],
    ['generation: 7', 'generation: seven', 'generation: must be a number, not "seven"'],
    ['host: h1', 'host: h1\nhost: h2', 'Map keys must be unique'],
    ['host: h1', 'host: [h1', '2:'],
  ])('with %j changed to %j says %j', (from, to, message) => {
    expect(hostComplaint(from, to)).toContain(message);
  });

  it('shows every problem, in the order of the file', () => {
    const text = HOST.replace('secondaryBus: 1', 'secondaryBus: 0');
    const lines = complaint(readHostConfig, text.replace('generation: 7', 'generation: -1'));
    expect(lines.split('\n').map((line) => line.split(':')[0])).toEqual(['7', '17']);
  });

  it('shows what the proxy itself refuses at its place', () => {
    // 0xfee00000 to 0xfeefffff is where interrupts go: no window may be there.
    const message = hostComplaint('0xe0000000', '0xfee00000');
    expect(message).toMatch(/^8:\d+: slots\[0\]\.nonPrefetchable/);
  });

  it('knows what a reload cannot change', () => {
    const before = readHostConfig(written(HOST)).fixedPart;
    const table = readHostConfig(written(HOST.replace('generation: 7', 'generation: 8')));
    expect(ignoredChanges(before, table.fixedPart)).toBeUndefined();
    const port = readHostConfig(written(`${HOST.replace('7001', '7003')}maxPayload: 128\n`));
    expect(ignoredChanges(before, port.fixedPart)).toBe(
      'only the table was reloaded; what changed in paths, maxPayload needs a restart',
    );
  });

  // A reload once built rows from windows and buses the running soft host did not have.
  it.each([
    [
      'secondaryBus: 1',
      'secondaryBus: 9',
      '7:19: slots[0].secondaryBus: a running host keeps the windows of slot 0: restart the host ' +
        '(dxpu stop --process host-h1, then dxpu host), or put back bus 1',
    ],
    [
      '{ base: 0xe0000000, size: 16MiB }',
      '{ base: 0xd0000000, size: 16MiB }',
      /^8:22: slots\[0\]\.nonPrefetchable: .* put back 0xe0000000-0xe0ffffff$/,
    ],
    [
      'table:\n',
      `  - { base: 0x8000000, size: 1MiB }\ntable:
  - { virtualSlot: 2, box: b1, slot: 4, path: p0, generation: 8 }\n`,
      /there is no virtual slot 2/,
    ],
    [
      'memory:\n',
      `  - slot: 2
    secondaryBus: 3
    nonPrefetchable: { base: 0xe2000000, size: 16MiB }
    prefetchable: { base: 0x4008000000, size: 64MiB }
memory:\n`,
      undefined,
    ],
    [
      'generation: 7 }',
      'generation: 7 }\n  - { virtualSlot: 1, box: b2, slot: 4, path: p1, generation: 8 }',
      /^19:\d+: table\[1\]\.path: path p1 to box b2 is not one the host was started with: restart/,
    ],
  ])('reloaded with %j changed to %j says what a running host cannot take', (from, to, message) => {
    const before = readHostConfig(written(HOST));
    const text = HOST.replace(from, to).replace(
      'slots:\n',
      to.includes('b2')
        ? '  - { name: p1, box: b2, address: "127.0.0.1:7009" }\nslots:\n'
        : 'slots:\n',
    );
    const again = (file: string): unknown => readHostConfig(file, before);
    if (message === undefined) {
      // A slot no row names is not in force, and in nobody's way.
      expect(() => again(written(text))).not.toThrow();
      const row = text.replace(
        'generation: 7 }',
        'generation: 7 }\n  - { virtualSlot: 2, box: b1, slot: 4, path: p0, generation: 8 }',
      );
      expect(complaint(again, row)).toMatch(
        /^22:\d+: table\[1\]\.virtualSlot: virtual slot 2 is not one the host was started with/,
      );
      return;
    }
    const said = complaint(again, text);
    if (typeof message === 'string') expect(said).toBe(message);
    else expect(said).toMatch(message);
  });

  // It once said of such a row that its bus and windows were taken, by itself.
  it('with a virtual slot or a box slot in two rows says that, and nothing else', () => {
    const row = (text: string): string => `${HOST}  - { ${text}, path: p0, generation: 8 }\n`;
    expect(complaint(readHostConfig, row('virtualSlot: 0, box: b1, slot: 4'))).toBe(
      '18:20: table[1].virtualSlot: virtual slot 0 is twice: line 17 has it already',
    );
    expect(complaint(readHostConfig, row('virtualSlot: 1, box: b1, slot: 3'))).toBe(
      '18:38: table[1].slot: slot 3 of box b1 is twice: line 17 has it already',
    );
  });

  // It once pointed at memory[0], which is not in the file, on line 2.
  it('with a window over the memory it does not have shows the window', () => {
    const text = HOST.replace('memory:\n  - { base: 0, size: 64MiB }\n', '');
    expect(complaint(readHostConfig, text.replace('0xe0000000', '0x2000000'))).toBe(
      "8:22: slots[0].nonPrefetchable: 0x2000000-0x2ffffff overlaps the host's memory, " +
        '0x0-0x3ffffff where the file has no memory: move the window, or write another memory',
    );
  });

  it('that could never run is refused by --check too', () => {
    expect(hostComplaint('127.0.0.1:7001', '127.0.0.1:0')).toContain(
      '4:35: paths[0].address: port 0 leads nowhere',
    );
    expect(hostComplaint('base: 0, size: 64MiB', 'base: 0, size: 0')).toContain(
      'from 4KiB to 4GiB',
    );
    expect(hostComplaint('base: 0, size: 64MiB', 'base: 0, size: 1024GiB')).toContain('to 4GiB');
    expect(hostComplaint('base: 0,', 'base: 0xfee00000,')).toContain(
      '0xfee00000-0xfeefffff, where interrupts go',
    );
    const same = '"127.0.0.1:7001", "127.0.0.1:7001"';
    expect(boxComplaint('"127.0.0.1:7001", "[::1]:7002"', same)).toBe(
      '3:28: listen[1]: port 7001 of this address is taken by listen[0] in line 3',
    );
    const all = '"127.0.0.1:7001", "0.0.0.0:7001"';
    expect(boxComplaint('"127.0.0.1:7001", "[::1]:7002"', all)).toContain('listen[1]: port 7001');
    const free = BOX.replace('"127.0.0.1:7001", "[::1]:7002"', '"127.0.0.1:0", "127.0.0.1:0"');
    expect(() => readBoxConfig(written(free))).not.toThrow();
  });

  it('that is missing or a folder is named', () => {
    const missing = path.join(folder, 'none.yaml');
    expect(() => readHostConfig(missing)).toThrow(
      `cannot read the configuration ${missing}: there is no such file`,
    );
    expect(() => readHostConfig(folder)).toThrow(`${folder}: it is a folder`);
  });
});

describe('a configuration with a manager', () => {
  const withManager = (text: string): string =>
    text
      .replace(/^paths:\n.*\n/m, '')
      .replace(/table:\n.*\n/, '')
      .replace('certificates', 'manager: { address: "10.0.0.9:7000" }\ncertificates');

  it('has neither table nor paths, and says where the manager is', () => {
    const host = readHostConfig(written(`${withManager(HOST)}reach: [z1, z2]\n`));
    expect(host).toMatchObject({
      manager: { address: { host: '10.0.0.9', port: 7000 }, id: undefined },
      reach: ['z1', 'z2'],
      rows: [],
      paths: [],
    });
    const box = readBoxConfig(
      written(
        `${withManager(BOX).replace('tags: 140', 'nvlinkGroup: nv0')}kind: nvswitch\nzone: z1\n` +
          'advertise: [{ path: fast, address: "[fd00::1]:7001" }]\n',
      ),
    );
    expect(box).toMatchObject({
      kind: 'nvswitch',
      zone: 'z1',
      advertise: [{ path: 'fast', address: '[fd00::1]:7001' }],
      devices: [{ slot: 3, nvlinkGroup: 'nv0' }],
      rows: [],
    });
  });

  it('refuses what the manager says, where it stands', () => {
    const both = HOST.replace('host: h1', 'host: h1\nmanager: { address: "10.0.0.9:7000" }');
    expect(complaint(readHostConfig, both).split('\n')).toEqual([
      '4:1: paths: the ways to boxes come from the manager: take paths out, or manager',
      '17:1: table: the rows of this host come from the manager: take table out, or manager',
    ]);
    const box = BOX.replace('box: b1', 'box: b1\nmanager: { address: "10.0.0.9:7000" }');
    expect(complaint(readBoxConfig, box)).toBe(
      '7:1: table: the rows of this box come from the manager: take table out, or manager',
    );
  });

  it('without one needs them', () => {
    const text = withManager(HOST).replace(/manager: .*\n/, '');
    expect(complaint(readHostConfig, text)).toBe('1:1: paths: is missing\n1:1: table: is missing');
    const box = withManager(BOX).replace(/manager: .*\n/, '');
    expect(complaint(readBoxConfig, box)).toBe('1:1: table: is missing');
  });

  it('must give hosts an address to connect to, and names for the ways', () => {
    const box = withManager(BOX);
    const wild = box.replace('"127.0.0.1:7001", "[::1]:7002"', '"0.0.0.0:7001", "[::]:7002"');
    expect(complaint(readBoxConfig, wild)).toBe(
      '1:1: advertise: is missing: listen names no address that a host could connect to; write ' +
        'such as [{ path: net0, address: "10.0.0.1:7001" }]',
    );
    const one = '{ path: p, address: "10.0.0.1:1" }';
    expect(() => readBoxConfig(written(`${wild}advertise: [${one}]\n`))).not.toThrow();
    expect(complaint(readBoxConfig, `${box}advertise: [${one}, ${one}]\n`)).toContain(
      'advertise[1].path: path p is twice',
    );
    expect(complaint(readBoxConfig, box.replace('10.0.0.9:7000', '10.0.0.9:0'))).toContain(
      'manager.address: port 0 leads nowhere: write the port the manager listens on',
    );
  });

  // It would have emptied the table of the running process.
  it('is not taken by a reload of a process that has none', () => {
    const before = readHostConfig(written(HOST));
    expect(complaint((file) => readHostConfig(file, before), withManager(HOST))).toBe(
      '2:10: manager: whether there is a manager is settled at the start: restart the process',
    );
  });
});

describe('the example of the README', () => {
  it('is a pair of configurations that fit each other', () => {
    const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');
    const [box, host] = [...readme.matchAll(/```yaml\n([^]*?)```/g)].map((match) => match[1] ?? '');
    const boxConfig = readBoxConfig(written(box ?? ''));
    const hostConfig = readHostConfig(written(host ?? ''));
    expect(boxConfig.rows[0]?.host).toBe(hostConfig.id);
    expect(hostConfig.rows[0]?.box).toBe(boxConfig.id);
    expect(hostConfig.rows[0]?.generation).toBe(boxConfig.rows[0]?.generation);
    expect(hostConfig.paths[0]?.port).toBe(boxConfig.listen[0]?.port);
  });
});
