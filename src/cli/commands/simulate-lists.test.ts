/** Lists that will not do, of all three kinds: what `dxpu simulate` says of each, and where. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, describe, expect, it } from 'vitest';
import { printed } from '#testkit/printed';
import { errorObject } from '../output.ts';
import { buildProgram } from '../program.ts';
import { readLists } from '../simulate-lists.ts';
import { simulate, type SimulateCommandOptions } from './simulate.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-simulate-lists-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => path.join(folder, name);

const HEADERS = {
  nodes: 'sn,cpu_milli,memory_mib,gpu,model',
  pods: 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time',
  jobs: 'job_id,num_gpu,submit_time,duration',
} as const;
type Kind = keyof typeof HEADERS;
const GOOD: Readonly<Record<Kind, string>> = {
  nodes: `${HEADERS.nodes}\nn1,96000,393216,8,G2\n`,
  pods: `${HEADERS.pods}\np1,1000,1024,1,500,G2,3,5\n`,
  jobs: `${HEADERS.jobs}\n1,4,0,1000\n`,
};

async function optionsOf(kind: Kind, text: string | Uint8Array): Promise<SimulateCommandOptions> {
  const file = (name: Kind): string => {
    writeFileSync(at(`${name}.csv`), name === kind ? text : GOOD[name]);
    return at(`${name}.csv`);
  };
  const requests = kind === 'jobs' ? 'jobs' : 'pods';
  const argv = ['--nodes', file('nodes'), `--${requests}`, file(requests), '--output', 'json'];
  let options: SimulateCommandOptions | undefined;
  const program = buildProgram();
  program.commands
    .find((one) => one.name() === 'simulate')!
    .action((_options, self) => {
      options = self.optsWithGlobals();
    });
  await program.parseAsync(['simulate', ...argv], { from: 'user' });
  return options!;
}

const noWorker = (): never => {
  throw new Error('a list that will not do was run');
};

const under = (kind: Kind, ...rows: readonly string[]): string =>
  `${[HEADERS[kind], ...rows].join('\n')}\n`;
const N = 'n1,96000,393216,8,G2';
const P = 'p1,1000,1024,1,500,G2,3,5';
const J = '1,4,0,1000';

describe.each<[Kind, string, string, string]>([
  // Columns and fields: too few, too many.
  [
    'nodes',
    'a column is missing',
    'sn,cpu_milli,memory_mib,gpu\nn1,1,1,0\n',
    '1:25: column model is',
  ],
  ['pods', 'a column is missing', 'name,cpu_milli\np,1\n', '1:6: column memory_mib is missing'],
  [
    'jobs',
    'a column is missing',
    'job_id,num_gpu,duration\n1,1,1\n',
    '1:16: column submit_time is',
  ],
  ['nodes', 'a column too many', `${HEADERS.nodes},rack\n${N},1\n`, '1:35: unknown column "rack"'],
  ['pods', 'a column too many', `zone,${HEADERS.pods}\n1,${P}\n`, '1:1: unknown column "zone"'],
  ['jobs', 'a column too many', `${HEADERS.jobs},user\n${J},x\n`, '1:37: unknown column "user"'],
  ['nodes', 'a column twice', `${HEADERS.nodes},gpu\n${N},1\n`, '1:35: column gpu appears twice'],
  ['nodes', 'a field is missing', under('nodes', 'n1,96000,1,8'), '2:12: 4 of 5 fields: model is'],
  ['pods', 'a field is missing', under('pods', 'p1,1000'), '2:4: 2 of 8 fields: memory_mib is'],
  ['jobs', 'a field too many', under('jobs', `${J},7`), '2:12: 5 fields under a header of 4'],
  // Units.
  ['nodes', 'whole CPUs', under('nodes', 'n1,96,1,8,G2'), '2:4: cpu_milli 96 is less than one CPU'],
  ['nodes', 'milli GPUs', under('nodes', 'n1,96000,1,8000,G2'), '2:12: gpu 8000 is in whole GPUs'],
  ['pods', 'whole CPUs', under('pods', 'p,4,1,1,500,,,'), '2:3: cpu_milli 4 is in milli CPUs'],
  ['pods', 'whole GPUs', under('pods', 'p,4000,1,1,1,,,'), '2:12: gpu_milli 1 is in thousandths'],
  ['pods', 'milli GPUs', under('pods', 'p,4000,1,1000,1000,,,'), '2:10: num_gpu 1000 is in whole'],
  ['jobs', 'milli GPUs', under('jobs', '1,4000,0,1'), '2:3: num_gpu 4000 is in whole GPUs'],
  // Times.
  [
    'pods',
    'a negative time',
    under('pods', 'p,1000,1,1,500,,-3,5'),
    '2:17: creation_time is negative',
  ],
  [
    'pods',
    'an end before its start',
    under('pods', 'p,1000,1,1,500,,9,5'),
    '2:19: deletion_time 5 is',
  ],
  ['jobs', 'a negative time', under('jobs', '1,4,-5,1'), '2:5: submit_time is negative: -5'],
  ['jobs', 'a negative duration', under('jobs', '1,4,5,-1'), '2:7: duration is negative: -1'],
  // Names and models.
  ['nodes', 'a name twice', under('nodes', N, N), '3:1: sn n1 was used before, in line 2'],
  ['pods', 'a name twice', under('pods', P, P), '3:1: name p1 was used before, in line 2'],
  ['jobs', 'a name twice', under('jobs', J, J), '3:1: job_id 1 was used before, in line 2'],
  [
    'pods',
    'an unknown model',
    under('pods', 'p,1000,1,1,500,H9,,'),
    '2:16: no machine has the model H9',
  ],
  // Files.
  ['nodes', 'an empty file', '', '1:1: the file is empty'],
  ['pods', 'an empty file', '', '1:1: the file is empty'],
  ['jobs', 'a byte order mark alone', '\uFEFF', '1:1: the file is empty'],
  ['jobs', 'a header alone', `${HEADERS.jobs}\r\n`, '2:1: there is a header and nothing below it'],
  [
    'nodes',
    'an open quote',
    under('nodes', '"n1,96000,1,8,G2'),
    '2:1: the quote that starts here is',
  ],
  // Places are right with a mark, CRLF and quoted line ends before them.
  [
    'nodes',
    'mark and CRLF',
    `\uFEFF${under('nodes', N, 'n2,9,1,8,G2').replaceAll('\n', '\r\n')}`,
    '3:4: cpu_milli 9',
  ],
  [
    'pods',
    'quoted fields',
    under('pods', '"a\nb",1000,1,1,500,"G2",3,5', 'c,1000,1,1,"2",,,'),
    '4:12: gpu_milli 2',
  ],
])('%s: %s', (kind, _what, text, message) => {
  it(`says ${message}`, async () => {
    const options = await optionsOf(kind, text);
    const { thrown, stdout } = await printed(() => simulate(options, noWorker));
    // As `--output json` prints it.
    const error = errorObject(thrown);
    expect(error.message).toContain(`${at(`${kind}.csv`)}:${message}`);
    const [line, column] = message.split(':').map(Number);
    expect(error).toMatchObject({
      code: 'invalid_argument',
      details: { file: at(`${kind}.csv`), line, column },
    });
    expect(stdout).toBe('');
  });
});

it.each<[Kind, string, string]>([
  ['pods', 'p,97000,1,1,500,,,', 'pods.csv:2:1: p fits no machine, even an empty one'],
  ['jobs', '1,16,0,1', 'jobs.csv:2:3: job 1: 16 GPUs, and all machines have 8'],
])('%s: a demand no machine could hold is told with its place', async (kind, row, message) => {
  const { warnings } = readLists(await optionsOf(kind, under(kind, row)));
  expect(warnings).toEqual([expect.stringMatching(`${message}$`)]);
});

it.each<Kind>(['nodes', 'pods', 'jobs'])(
  '%s with a byte order mark, CRLF and quotes are the same list',
  async (kind) => {
    const plain = readLists(await optionsOf(kind, GOOD[kind])).lists;
    const quoted = GOOD[kind].replaceAll(/[^,\n]+/g, '"$&"').replaceAll('\n', '\r\n');
    const { machines, workload } = readLists(await optionsOf(kind, `\uFEFF${quoted}`)).lists;
    expect({ machines, workload }).toEqual({ machines: plain.machines, workload: plain.workload });
  },
);

it('a list in a gzip file is read, and a damaged one refused', async () => {
  const packed = gzipSync(GOOD.pods);
  const { lists } = readLists(await optionsOf('pods', packed));
  expect(lists).toEqual(readLists(await optionsOf('pods', GOOD.pods)).lists);
  const cut = await optionsOf('pods', packed.subarray(0, -9));
  expect(() => readLists(cut)).toThrow(/pods\.csv: as gzip it is damaged/);
});
