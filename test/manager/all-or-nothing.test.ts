import { afterAll, beforeAll, expect, it } from 'vitest';
import type { DxpuError } from '#base/errors';
import { Prng } from '#base/prng';
import type { PoolClient } from '#manager/rpc/pool-client';
import { type Binding, BindingState, type Refusal } from '#proto/generated/dxpu/pool/v1/pool_pb';
import { until } from '../e2e/processes.ts';
import { ManagerRig } from './manager-rig.ts';

type Pool = PoolClient['pool'];

const CLIENTS = 100;
const USERS = 10;
/** 64 GPU nodes behind as many virtual slots of each host: GPU nodes are what is short. */
const SIZES = { zones: 1, boxesPerZone: 8, slotsPerBox: 8, hostsPerZone: 4, slotsPerHost: 64 };
const GPUS = SIZES.boxesPerZone * SIZES.slotsPerBox;

let rig: ManagerRig;
beforeAll(async () => {
  rig = await ManagerRig.prepare();
  await rig.start(SIZES);
}, 60_000);
afterAll(() => rig.end());

interface Wish {
  readonly client: Pool;
  readonly requestId: string;
  readonly host: string;
  readonly gpus: number;
}

type Outcome = { readonly granted: readonly Binding[] } | { readonly refusal: Refusal };

async function ask({ client, requestId, host, gpus }: Wish): Promise<Outcome> {
  try {
    return { granted: (await client.bind({ requestId, demand: { host, gpus } })).bindings };
  } catch (error) {
    const { code, details } = error as DxpuError;
    expect(code).toBe('resource_exhausted');
    return { refusal: details['refusal'] as Refusal };
  }
}

async function everyBinding(client: Pool): Promise<Binding[]> {
  const found: Binding[] = [];
  for (let pageToken = ''; ; ) {
    const page = await client.listBindings({ pageSize: 7, pageToken });
    found.push(...page.bindings);
    pageToken = page.nextPageToken;
    if (pageToken === '') return found;
  }
}

async function logged(client: Pool, action: string): Promise<string[]> {
  const subjects: string[] = [];
  for await (const { entry } of client.watch({})) {
    if (entry?.action === action) subjects.push(entry.subject);
  }
  return subjects;
}

const ids = (bindings: readonly { id: string }[]): string[] => bindings.map((one) => one.id);

it('100 clients at once ask for more than there is: all or nothing, and each call acts once', async () => {
  const prng = new Prng(42);
  const observer = await rig.connect('observer');
  await until(
    async () => ((await observer.getStatus({})).gpusFree === GPUS ? true : undefined),
    'all GPU nodes to be free',
  );
  const wishes: Wish[] = [];
  for (let index = 0; index < CLIENTS; index++) {
    wishes.push({
      client: await rig.connect(`u${index % USERS}`),
      requestId: `bind-${index}`,
      host: `h0-${prng.below(SIZES.hostsPerZone)}`,
      gpus: 1 + prng.below(4),
    });
  }
  const asked = wishes.reduce((sum, one) => sum + one.gpus, 0);
  expect(asked).toBeGreaterThan(2 * GPUS);

  // Every call goes out once, and every third twice more at the same time.
  const outcomes = await Promise.all(
    wishes.map((wish, index) =>
      Promise.all(Array.from({ length: index % 3 === 0 ? 3 : 1 }, () => ask(wish))),
    ),
  );

  let granted = 0;
  let refused = 0;
  const taken = new Set<string>();
  const behind = new Set<string>();
  let smallestRefused = Infinity;
  for (const [index, repetitions] of outcomes.entries()) {
    const [first] = repetitions;
    const { gpus, host } = wishes[index]!;
    for (const other of repetitions) {
      // Repetitions answer alike.
      if ('granted' in first!) {
        expect('granted' in other && ids(other.granted)).toEqual(ids(first.granted));
      } else expect('refusal' in other).toBe(true);
    }
    if ('granted' in first!) {
      expect(first.granted, 'a grant is complete').toHaveLength(gpus);
      granted += gpus;
      for (const binding of first.granted) {
        expect(binding.host).toBe(host);
        taken.add(`${binding.box} ${binding.boxSlot}`);
        behind.add(`${binding.host} ${binding.hostSlot}`);
      }
    } else {
      refused += gpus;
      smallestRefused = Math.min(smallestRefused, gpus);
      const { summary, reasons } = first!.refusal;
      expect(summary).not.toBe('');
      const count = (name: string): number =>
        reasons.find((one) => one.reason === name)?.count ?? 0;
      const missing = count('too-few');
      // Fewer were free than asked for, and all others have an owner.
      expect(missing).toBeGreaterThan(0);
      expect(count('bound') + (gpus - missing)).toBe(GPUS);
    }
  }
  expect(granted + refused).toBe(asked);
  expect(granted).toBeLessThanOrEqual(GPUS);
  // No slot was given to two.
  expect(taken.size).toBe(granted);
  expect(behind.size).toBe(granted);
  // Free ones only became fewer: a demand was refused when there were fewer free than it asked for.
  expect(GPUS - granted).toBeLessThan(smallestRefused);

  // Each once more, one after the other: nothing new is bound.
  for (const [index, wish] of wishes.entries()) {
    const again = await ask(wish);
    const first = outcomes[index]![0]!;
    expect('granted' in again ? ids(again.granted) : undefined).toEqual(
      'granted' in first ? ids(first.granted) : undefined,
    );
  }
  const bindings = await everyBinding(observer);
  expect(bindings).toHaveLength(granted);
  expect(new Set(ids(bindings)).size).toBe(granted);
  expect(await logged(observer, 'reserved')).toHaveLength(granted);

  // The same id with another content is refused, whoever was first.
  const holder = wishes[outcomes.findIndex((one) => 'granted' in one[0]!)]!;
  await expect(
    holder.client.bind({
      requestId: holder.requestId,
      demand: { host: holder.host, gpus: holder.gpus + 1 },
    }),
  ).rejects.toMatchObject({ code: 'already_exists' });
  // The id is the caller's own: another's call by it acts, or is refused for itself.
  await expect(
    observer.bind({ requestId: holder.requestId, demand: { host: 'h0-0', gpus: GPUS } }),
  ).rejects.toMatchObject({ code: 'resource_exhausted' });

  await until(
    async () => ((await observer.getStatus({})).bindingsAttached === granted ? true : undefined),
    'all bindings to be attached',
  );

  // Given back, each call twice at once.
  await Promise.all(
    wishes.map(async ({ client, requestId }, index) => {
      const first = outcomes[index]![0]!;
      if (!('granted' in first)) return;
      const unbind = async () => {
        const answer = await client.unbind({
          requestId: `un${requestId}`,
          bindings: ids(first.granted),
        });
        for (const binding of answer.bindings) expect(binding.leaving).toBe(true);
      };
      await Promise.all([unbind(), unbind()]);
      await unbind();
    }),
  );
  await until(
    async () => ((await observer.getStatus({})).gpusFree === GPUS ? true : undefined),
    'all GPU nodes to be free again',
  );
  expect(await everyBinding(observer)).toEqual([]);
  const freed = await logged(observer, 'free');
  expect(freed.toSorted()).toEqual(ids(bindings).toSorted());
  expect((await observer.listBindings({ state: BindingState.FAILED })).bindings).toEqual([]);
  expect(rig.complaints).toEqual([]);
}, 60_000);
