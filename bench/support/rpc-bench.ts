/**
 * Binds over RPC, each acknowledged at `reserved`: a manager in a process of its own with its store on
 * disk, and one user with one connection. Beside it raw one-row transactions on the same disk.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { connectPool, type PoolClient } from '#manager/rpc/pool-client';
import { BenchAuthority } from './bench-authority.ts';
import { type Figure, figure, type Pair } from './figures.ts';
import type { RpcAnswer, ToRpcManager } from './rpc-protocol.ts';
import { RawRows } from './store-raw.ts';

const OUTSTANDING = 64;
const BINDS_PER_BLOCK = 2048;
const RAW_MS = 1000;
/** 2048 GPU nodes and as many virtual slots: what a block of binds takes. */
const SIZES = { zones: 16, boxesPerZone: 16, slotsPerBox: 8, hostsPerZone: 8, slotsPerHost: 16 };
const LOOK_EACH_MS = 5;

type Pool = PoolClient['pool'];

/** The folder of the measured files goes below the current one: the disk of the checkout. */
export async function rpcFigures(blocks: number, note: (text: string) => void): Promise<Figure[]> {
  const parent = path.resolve('.dxpu');
  mkdirSync(parent, { recursive: true });
  const folder = mkdtempSync(path.join(parent, 'bench-rpc-'));
  const store = path.join(folder, 'pool');
  mkdirSync(store);
  const authority = await BenchAuthority.create();
  const manager = fork(fileURLToPath(new URL('./rpc-manager.js', import.meta.url)));
  const ended = once(manager, 'exit');
  const ask = async (message: ToRpcManager): Promise<RpcAnswer> => {
    manager.send(message);
    const answered = once(manager, 'message') as Promise<[RpcAnswer]>;
    const answer = await Promise.race([
      answered.then(([first]) => first),
      ended.then(() => undefined),
    ]);
    if (answer === undefined) throw new Error('the manager of the benchmark ended');
    if (answer.error !== undefined) throw new Error(answer.error);
    return answer;
  };
  const raw = new RawRows(folder);
  let client: PoolClient | undefined;
  try {
    note('binds over RPC');
    const { port = 0, hosts = [] } = await ask({
      op: 'start',
      folder: store,
      credentials: await authority.issue('manager', 'm1'),
      sizes: SIZES,
    });
    const credentials = await authority.issue('user', 'bench');
    client = connectPool({ host: '127.0.0.1', port, credentials });
    const { pool } = client;
    const pairs: Pair[] = [];
    await untilFree(pool);
    for (let block = -1; block < blocks; block++) {
      await ask({ op: 'hold' });
      const { ids, perSecond } = await bindAll(pool, hosts, block);
      const baseline = raw.rate(RAW_MS);
      if (block >= 0) pairs.push({ value: perSecond, baseline });
      await ask({ op: 'release' });
      await pool.unbind({ requestId: `unbind-${block}`, bindings: [...ids] });
      await untilFree(pool);
    }
    return [figure('binds over RPC, 64 outstanding', '1/s', pairs)];
  } finally {
    client?.close();
    if (manager.connected) manager.disconnect();
    await ended;
    raw.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function bindAll(
  pool: Pool,
  hosts: readonly string[],
  block: number,
): Promise<{ ids: readonly string[]; perSecond: number }> {
  const ids: string[] = [];
  let next = 0;
  const user = async (): Promise<void> => {
    while (next < BINDS_PER_BLOCK) {
      const index = next++;
      const host = hosts[index % hosts.length] ?? '';
      const { bindings } = await pool.bind({
        requestId: `bind-${block}-${index}`,
        demand: { gpus: 1, host },
      });
      for (const { id } of bindings) ids.push(id);
    }
  };
  const began = performance.now();
  await Promise.all(Array.from({ length: OUTSTANDING }, user));
  return { ids, perSecond: (BINDS_PER_BLOCK * 1000) / (performance.now() - began) };
}

async function untilFree(pool: Pool): Promise<void> {
  const gpus = SIZES.zones * SIZES.boxesPerZone * SIZES.slotsPerBox;
  while ((await pool.getStatus({})).gpusFree < gpus) {
    await new Promise((resolve) => setTimeout(resolve, LOOK_EACH_MS));
  }
}
