import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import type { BoxHello, BoxReport } from '#proto/agent-messages';
import { nodeOf } from '#testkit/core-pool-box';
import { PoolCore } from './domain/pool-core.ts';
import type { PoolSink } from './domain/pool-sink.ts';
import { FAILURE_REASONS, type FailureReason } from './domain/records.ts';
import { TRANSITIONS } from './domain/transitions.ts';
import { MemoryStore } from './store/memory-store.ts';

const readme = readFileSync(new URL('./README.md', import.meta.url), 'utf8');

const hello: BoxHello = {
  kind: 'box',
  id: 'b1',
  instance: 'i1',
  version: '0.1.0',
  boxKind: 'pcie',
  zone: '',
  endpoints: [],
};
const slot = { slot: 0, node: nodeOf('GPU-0'), state: 'unused', clean: true, reason: '' } as const;
const report: BoxReport = {
  kind: 'box',
  applied: 0,
  whole: true,
  slots: [{ ...slot, row: undefined }],
  refused: '',
};

it('the example of README.md runs', () => {
  const orders: unknown[] = [];
  const sink: PoolSink = {
    answer: () => undefined,
    order: (_session, order) => orders.push(order),
    endSession: () => undefined,
    logged: () => undefined,
  };
  const wallMs = (): number => 0;
  const now = nanos(1e9);

  // README example
  const store = new MemoryStore(); // or await SqliteStore.open(folder, { version })
  const core = new PoolCore({ sink, snapshot: store.load(), wallMs });
  core.connected(now, 1, hello); // hello and report of an agent, as plain checked values
  core.report(now, 1, report);
  const batch = core.takeBatch(); // the turn ends
  if (batch !== undefined) store.commit(batch);
  core.committed(now); // only now: sink.order(1, { kind: 'box', revision: 1, whole: true, slots: [] })
  core.status(); // { boxes: 1, boxesConnected: 1, gpus: 1, gpusFree: 0, … }
  core.report(now, 1, { ...report, applied: 1, whole: false, slots: [] });
  core.status(); // gpusFree: 1: clean, and the order that the slot be empty is in force
  // end

  expect(orders).toEqual([{ kind: 'box', revision: 1, whole: true, slots: [] }]);
  expect(core.status()).toMatchObject({ boxes: 1, boxesConnected: 1, gpus: 1, gpusFree: 1 });
  const source = readFileSync(new URL('./readme.test.ts', import.meta.url), 'utf8');
  const run = /\/\/ README example\n([\s\S]*?)\n *\/\/ end/.exec(source)?.[1] ?? '';
  for (const line of run.split('\n')) expect(readme).toContain(line.trim());
});

it('the life in README.md is that of the table', () => {
  const steps = TRANSITIONS.filter(({ to }) => to !== 'failed').map(
    ({ from, to, condition }) => `| ${from} | ${to} | ${condition} |`,
  );
  expect(rowsUnder('from | to')).toEqual(steps);
  const reasons = Object.keys(FAILURE_REASONS) as FailureReason[];
  const failures = reasons.map((reason) => {
    const from = TRANSITIONS.filter((row) => row.reason === reason).map((row) => row.from);
    const again = FAILURE_REASONS[reason].retries ? 'yes' : 'no';
    return `| ${reason} | ${[...new Set(from)].join(', ')} | ${again} |`;
  });
  expect(rowsUnder('failed | from')).toEqual(failures);
});

/** The rows of the table whose first column has this head. */
function rowsUnder(head: string): string[] {
  const lines = readme.split('\n');
  const start = lines.findIndex((line) => line.startsWith(`| ${head} |`));
  const end = lines.findIndex((line, index) => index > start && !line.startsWith('|'));
  return lines.slice(start + 2, end);
}
