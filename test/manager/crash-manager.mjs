// The manager of a configuration as `dxpu manager` builds it, which kills itself (SIGKILL) at named
// points of its commits. It does nothing until it is told to over its IPC channel, so that one can
// stand by with everything loaded while another runs:
//
//   parent → { go: { timeouts, points } }   start; answered with { ready: true }
//   parent → { points }                     other points from now on; answered with { armed: true }
//
// A point is `before NAME` or `after NAME`, NAME one of TRANSITIONS or FIRST_TRANSITION, of a binding of
// any host but h2. A commit may be of several. Before it dies it prints `died POINT` for each that it
// is at.
//   node crash-manager.mjs CONFIG

import { writeSync } from 'node:fs';
import { RealClock } from '#base/clock';
import { readManagerConfig } from '#cli/manager-config';
import { startManager } from '#cli/manager-process';
import { loadCredentials } from '#identity/tls-identity';
import { FIRST_TRANSITION } from '#manager/domain/transitions';
import { SqliteStore } from '#manager/store/sqlite-store';

/** @typedef {import('#manager/domain/batch').Batch} Batch */
/** @typedef {import('#manager/store/store').Store} Store */

const BYSTANDER = 'h2';

/**
 * `attached`, `failed(link-down)`.
 * @param {{ state: string, failure: { reason: string } | undefined }} binding
 */
function stateOf({ state, failure }) {
  return state === 'failed' ? `failed(${failure?.reason})` : state;
}

/** @implements {Store} */
class CrashingStore {
  /** @type {readonly string[]} */
  points = [];
  #store;
  /** @type {Map<string, string>} */
  #states = new Map();

  /** @param {Store} store */
  constructor(store) {
    this.#store = store;
  }

  load() {
    const snapshot = this.#store.load();
    this.#states = new Map(snapshot.bindings.map((one) => [one.id, stateOf(one)]));
    return snapshot;
  }

  /** @param {Batch} batch */
  commit(batch) {
    const steps = this.#stepsOf(batch);
    this.#crash('before', steps);
    this.#store.commit(batch);
    this.#crash('after', steps);
  }

  /**
   * @param {string} when
   * @param {readonly string[]} steps
   */
  #crash(when, steps) {
    const here = steps.map((step) => `${when} ${step}`);
    const points = here.filter((point) => this.points.includes(point));
    if (points.length === 0) return;
    for (const point of points) writeSync(1, `died ${point}\n`);
    process.kill(process.pid, 'SIGKILL');
    for (;;);
  }

  /**
   * The rows of the table that a batch goes through, told by its log.
   * @param {Batch} batch
   */
  #stepsOf(batch) {
    const steps = [];
    for (const { binding } of batch.log) {
      if (binding === undefined) continue;
      const before = this.#states.get(binding.id);
      const state = stateOf(binding);
      this.#states.set(binding.id, state);
      if (before === state || binding.host === BYSTANDER) continue;
      steps.push(before === undefined ? FIRST_TRANSITION : `${before.split('(')[0]}>${state}`);
    }
    return steps;
  }

  /**
   * @param {number} after
   * @param {number} limit
   * @param {string} [binding]
   */
  log(after, limit, binding) {
    return this.#store.log(after, limit, binding);
  }

  close() {
    this.#store.close();
  }
}

const [config = ''] = process.argv.slice(2);
/** @type {CrashingStore | undefined} */
let store;

/** @param {{ timeouts: object, points: readonly string[] }} how */
async function start({ timeouts, points }) {
  const { id, credentialFiles, listen, store: folder } = readManagerConfig(config);
  const credentials = loadCredentials(credentialFiles, { kind: 'manager', id }, Date.now());
  store = new CrashingStore(await SqliteStore.open(folder, { version: '0.1.0' }));
  store.points = points;
  /** @type {(facts: object | string, message?: string) => void} */
  const say = (facts, message) => {
    process.stderr.write(`${message ?? ''} ${JSON.stringify(facts)}\n`);
  };
  await startManager({
    store,
    credentials,
    listen,
    timeouts,
    clock: new RealClock(),
    log: { debug: () => {}, info: say, warn: say, error: say },
    onFatal: (error) => {
      say({}, `fatal: ${error.message}`);
      process.exit(1);
    },
  });
}

process.on('disconnect', () => process.exit());
process.on('message', (message) => {
  const { go, points } = /** @type {{ go?: Parameters<typeof start>[0], points?: string[] }} */ (
    message
  );
  if (go !== undefined) {
    void start(go).then(() => process.send?.({ ready: true }));
  } else if (points !== undefined && store !== undefined) {
    store.points = points;
    process.send?.({ armed: true });
  }
});
