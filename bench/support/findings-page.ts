/** The page that docs/simulate-findings.md is: words around figures of studies. */
import type { SimulateResult } from '#simulator/result';
import type { Study } from './findings-run.ts';
import {
  AT_PCT,
  bestOf,
  breakEvenList,
  difference,
  fewestTable,
  mayBeChance,
  policyTable,
  reachTable,
  reasonsTable,
  sidesOf,
  spread,
  table,
  timedTable,
} from './findings-tables.ts';

type Lists = readonly (readonly [string, Study])[];

export interface Findings {
  /** By list. */
  readonly fills: Lists;
  readonly reach: Study;
  readonly fewest: Lists;
  readonly fewestByReach: Study;
  readonly fewestBySlots: Study;
  /** Jobs in time: without failures, with them, and on more servers. */
  readonly calm: Study;
  readonly failing: Study;
  readonly lighter: Study;
  readonly slots: readonly number[];
}

export function findingsPage(found: Findings): string {
  const { fills, reach, fewest, fewestByReach, fewestBySlots, calm, failing, lighter } = found;
  return `# What a pool saves on public lists

Written by \`npm run bench -- simulate-findings\` from the openb lists of Alibaba (1,213 GPU machines, 6,212
GPUs) and the second trace of Muri (5,755 timed jobs), which are public and not part of this repository.
[simulate.md](simulate.md) says how to ask the same of lists of your own,
[src/simulator/README.md](../src/simulator/README.md) how it is worked out.

${headline(found)}

Limits:
- The lists are of one operator and one benchmark; the pool is made of the machines of the list, and racks are
  guessed from the order of the list.
- Paths of the pool have no contention, and no overhead but the one that is stated. What distance costs a
  job is the question \`dxpu predict\` answers.
- Times in the openb list are not used, as in the published method: requests come in random order until they
  ask for all GPUs, and none departs.
- Policies are heuristics: another one may do better in either design. No prices are assumed, since none are
  published with the lists; \`--price\` takes yours.

## How full it gets

Allocated share of all GPUs when requests for ${AT_PCT} % of them have arrived, in percent: mean and standard
deviation over ten seeds. *chance*: within three standard errors of the difference. The last column is the
best policy of a pool against the best of servers.

${overview(fills)}

${fills.map(fillSection).join('\n\n')}

### By reach and slots

${reachWords(reach)} A pool of the default list with fgd, five seeds. A rack is 16 machines of the list, a pod
16 racks; servers with fgd allocate ${serverShare(fills)} %.

${reachTable(reach.result, found.slots)}

${commandOf(reach)}

## The fewest GPUs for the same demand

The smallest hardware with which each of three seeds places 99 % of a demand of 100 % of the GPUs of the list
(6,212). Servers shrink and grow in the mix of the list. **Break-even** is by how much longer jobs may take in
the pool until it needs as many GPUs as servers: servers ÷ pool − 1.

${fewestTable(fewest.map(([list, { result }]) => [list, result] as const))}

${fewest
  .slice(0, 1)
  .map(([, study]) => commandOf(study))
  .join('')}

gpuspec10 is of another kind: both designs need far more GPUs than the list has. Some of its requests name models,
and hardware grows in the mix of the list, all models together, so the figure says little of what it would take to
buy the models that are short.

The default list by reach, and by slots of a host:

${fewestTable(bySetting(fewestByReach.result, 'reach'), 'reach')}

${commandOf(fewestByReach)}

${fewestTable(bySetting(fewestBySlots.result, 'slots'), 'slots')}

${commandOf(fewestBySlots)}

## In time

The jobs of Muri on 48 servers of 8 GPUs and 96 CPUs (384 GPUs), against a pool of the same GPUs. The trace does
not say on how many GPUs it ran; 48 servers are chosen because its load makes a long queue there. A job needs
8 CPUs and 32 GiB for each GPU (the defaults; neither runs short), and jobs of more than 8 GPUs are tasks of 8.
First come first served with backfill, five seeds. Waits are in hours. Without failures nothing that matters here
is drawn, so seeds agree; and all GPUs being whole and of one model, both policies do the same in the pool.

![mean wait against overhead](plots/simulate-muri-overhead.svg)

${timedTable(calm.result)}

The overhead at which the mean wait in the pool is that of the best servers, straight between those that were run,
mean and standard deviation over seeds:

${breakEvenList(calm.result)}

${commandOf(calm)}

![GPUs allocated over time](plots/simulate-muri-allocated.svg)

![jobs that wait over time](plots/simulate-muri-queue.svg)

### With failures

The same with a GPU failing every 10,000 hours in the mean, a server, host or box every 20,000, repairs of 24
hours and checkpoints every 30 minutes. These rates are assumed, and bad, so that their effect shows. A wait is
until the first start: what a job that is put back waits again is not in it, but in how long it takes.

${timedTable(failing.result)}

${breakEvenList(failing.result)}

${commandOf(failing)}

### With fewer jobs a server

The same on 64 servers (512 GPUs), without failures:

${timedTable(lighter.result)}

${breakEvenList(lighter.result)}

${commandOf(lighter)}
`;
}

/** Two sentences. */
function headline({ fills, fewest, calm }: Findings): string {
  const gains = fills.map(([, { result }]) => {
    const [server, pool] = [bestOf(sidesOf(result, 'server')), bestOf(sidesOf(result, 'pool'))];
    return pool.at.mean - server.at.mean;
  });
  const saved = fewest
    .flatMap(([list, { result }]) => {
      const of = (design: string) => result.fewest?.find((row) => row.design === design)?.gpus;
      const [server, pool] = [of('server'), of('pool')];
      return server == null || pool == null ? [] : [{ list, pct: (1 - pool / server) * 100 }];
    })
    .toSorted((a, b) => a.pct - b.pct);
  const [least, median, most] = [0, Math.floor(saved.length / 2), saved.length - 1].map((at) => {
    const { pct = Number.NaN, list = '' } = saved[at] ?? {};
    return { list, words: `${pct.toFixed(1)} %` };
  });
  const even = (calm.result.breakEven ?? [])
    .filter(({ by, overheadPct }) => by === 'wait' && overheadPct !== null)
    .toSorted((a, b) => (b.overheadPct ?? 0) - (a.overheadPct ?? 0))[0];
  const wait =
    even === undefined
      ? 'at none of the overheads that were run as long as on servers'
      : `less in a pool than on servers, until it makes them take ${(even.overheadPct ?? 0).toFixed(1)} % longer`;
  return (
    `**On the openb lists the best policy fills a pool by ${Math.min(...gains).toFixed(2)} to ` +
    `${Math.max(...gains).toFixed(2)} points more than the best fills servers, and the same demand takes ` +
    `${least?.words} (${least?.list}) to ${most?.words} (${most?.list}) fewer GPUs, ${median?.words} in the ` +
    `median, while most simpler policies fill a pool less than servers. On 48 servers of 8 GPUs the jobs of ` +
    `Muri wait ${wait}.**`
  );
}

function overview(fills: Lists): string {
  const rows = fills.map(([list, { result }]) => {
    const [server, pool] = [bestOf(sidesOf(result, 'server')), bestOf(sidesOf(result, 'pool'))];
    const cell = ({ policy, at }: typeof server): string => `${policy}: ${spread(at)}`;
    return [list, cell(server), cell(pool), difference(pool.at, server.at)];
  });
  return table(['list', 'best servers', 'best pool', 'points'], rows);
}

function fillSection([list, study]: readonly [string, Study]): string {
  const worse = sidesOf(study.result, 'pool').flatMap(({ policy, at }) => {
    const server = sidesOf(study.result, 'server').find((side) => side.policy === policy)?.at;
    if (server === undefined || at.mean >= server.mean || mayBeChance(at, server)) return [];
    return [policy];
  });
  const words =
    worse.length === 0
      ? 'No policy fills a pool less than servers beyond chance.'
      : `Pooling does not help with ${worse.join(', ')}: the pool fills less.`;
  return `### ${list}

${words}

${policyTable(study.result)}

${reasonsTable(study.result, 'fgd')}

![allocated against asked for, ${list}](plots/simulate-${list}.svg)

${commandOf(study)}`;
}

/** By slots, with the reach that does best. */
function reachWords({ result }: Study): string {
  const at = (slots: number): number =>
    Math.max(
      ...result.summary
        .filter(({ setting, arrivedPct }) => setting['slots'] === slots && arrivedPct === AT_PCT)
        .map(({ allocatedPctMean }) => allocatedPctMean),
    );
  return `With 4 slots a host a pool stops at ${at(4).toFixed(1)} %, with 8 at ${at(8).toFixed(1)} %, with 16 at ${at(16).toFixed(1)} %, with the reach that does best.`;
}

function serverShare(fills: Lists): string {
  const [first] = fills;
  if (first === undefined) return '';
  const fgd = sidesOf(first[1].result, 'server').find(({ policy }) => policy === 'fgd');
  return fgd === undefined ? '' : spread(fgd.at);
}

/** Each row of a pool with the servers, named by its value of the setting. */
function bySetting(result: SimulateResult, name: string): [string, SimulateResult][] {
  const rows = result.fewest ?? [];
  const servers = rows.filter(({ design }) => design === 'server');
  return rows
    .filter(({ design }) => design === 'pool')
    .map((pool) => [String(pool.setting[name]), { ...result, fewest: [...servers, pool] }]);
}

function commandOf({ command }: Study): string {
  return `\`\`\`sh\n${command}\n\`\`\``;
}
