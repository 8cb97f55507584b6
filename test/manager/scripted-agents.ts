/**
 * A box and a host that the test plays itself, over streams as real ones have: mTLS with certificates
 * of their own, the agent's stream, core and wire; only their planes are scripted. They reach each other
 * alone. Whenever a manager has died they connect again, and say what their planes say.
 */
import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import { type Clock, RealClock } from '#base/clock';
import type { Nanos } from '#base/units';
import type { Agent } from '#agent/core/agent-core';
import { BoxAgentCore } from '#agent/core/box-agent';
import { HostAgentCore } from '#agent/core/host-agent';
import { ManagerStream } from '#agent/daemon/manager-stream';
import type { TlsCredentials } from '#identity/tls-identity';
import type { Gpu } from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { CrashPool } from './crash-pool.ts';
import { PATIENCE_MS } from './crash-user.ts';
import { ScriptedBoxPlane, ScriptedHostPlane } from './scripted-planes.ts';
import { until } from './until.ts';

/** As many bindings as a script needs at once. */
const SLOTS = 8;
const VERSION = '0.1.0';
const HASTE = 10;

/** Goes ten times as fast, so that an agent which has lost its manager dials again that much sooner. */
class HastyClock implements Clock {
  readonly #real = new RealClock();

  now(): Nanos {
    return (this.#real.now() * HASTE) as Nanos;
  }

  at(atNs: Nanos, fn: (now: Nanos) => void): () => void {
    return this.#real.at((atNs / HASTE) as Nanos, () => fn(this.now()));
  }
}

const ignore = (): void => {};
const SILENT = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** One process, as far as the manager can tell. */
interface Script<Plane> {
  readonly plane: Plane;
  readonly agent: Agent;
}

export class ScriptedAgent<Plane> {
  readonly #start: (instance: string) => Script<Plane>;
  readonly #credentials: TlsCredentials;
  readonly #port: number;
  #script: Script<Plane>;
  #stream: ManagerStream | undefined;

  constructor(
    credentials: TlsCredentials,
    port: number,
    start: (instance: string) => Script<Plane>,
  ) {
    this.#credentials = credentials;
    this.#port = port;
    this.#start = start;
    this.#script = start(randomUUID());
  }

  get plane(): Plane {
    return this.#script.plane;
  }

  /** Connects, now and whenever there is no connection. */
  connect(): void {
    this.#stream = new ManagerStream({
      agent: this.#script.agent,
      address: { host: '127.0.0.1', port: this.#port },
      credentials: this.#credentials,
      clock: new HastyClock(),
      log: SILENT,
      random: () => 0,
      settle: ignore,
    });
    this.#stream.start();
  }

  disconnect(): void {
    this.#stream?.stop();
    this.#stream = undefined;
  }

  /** What the plane says is new: it is reported. */
  changed(): void {
    this.#stream?.changed(new HastyClock().now());
  }

  /** Comes back as another process, whose plane holds nothing and says what is. */
  restart(): void {
    this.disconnect();
    this.#script = this.#start(randomUUID());
    this.connect();
  }
}

export class ScriptedPair {
  readonly hostId: string;
  readonly boxId: string;
  readonly box: ScriptedAgent<ScriptedBoxPlane>;
  readonly host: ScriptedAgent<ScriptedHostPlane>;
  readonly #pool: CrashPool;

  private constructor(
    pool: CrashPool,
    name: string,
    credentials: Record<'box' | 'host', TlsCredentials>,
  ) {
    const boxId = `b-${name}`;
    const hostId = `h-${name}`;
    this.#pool = pool;
    this.boxId = boxId;
    this.hostId = hostId;
    const endpoints = [{ path: 'lan', address: '127.0.0.1:9' }];
    this.box = new ScriptedAgent(credentials.box, pool.managerPort, (instance) => {
      const plane = new ScriptedBoxPlane(boxId, SLOTS);
      const said = { kind: 'box', id: boxId, instance, version: VERSION, zone: name } as const;
      const hello = { ...said, boxKind: 'pcie', endpoints } as const;
      return { plane, agent: new BoxAgentCore({ hello, plane }) };
    });
    this.host = new ScriptedAgent(credentials.host, pool.managerPort, (instance) => {
      const plane = new ScriptedHostPlane(boxId, SLOTS);
      const hello = {
        kind: 'host',
        id: hostId,
        instance,
        version: VERSION,
        reach: [name],
      } as const;
      return { plane, agent: new HostAgentCore({ hello, plane }) };
    });
  }

  /** Both are there, and all they have can be bound. No other pair of the pool has this name. */
  static async start(pool: CrashPool, name: string): Promise<ScriptedPair> {
    const pair = new ScriptedPair(pool, name, {
      box: await pool.credentialsOf({ kind: 'box', id: `b-${name}` }),
      host: await pool.credentialsOf({ kind: 'host', id: `h-${name}` }),
    });
    // A path to a box that nobody knows is not believed.
    pair.box.connect();
    await pair.hasAllFree();
    pair.host.connect();
    return pair;
  }

  /** Both do, and say, what they should from now on. */
  heal(): void {
    const { box, host } = this;
    box.plane.refusal = '';
    box.plane.says.clear();
    box.changed();
    host.plane.says.clear();
    host.changed();
  }

  /** Every GPU node of the box can be given to somebody. */
  async hasAllFree(): Promise<void> {
    await this.#are('free', SLOTS);
  }

  /** Nobody has those in `slots`, and nobody gets them. */
  async hasQuarantined(slots: readonly number[]): Promise<void> {
    const quarantined = await this.#are('quarantined', slots.length);
    expect(quarantined.map(({ slot }) => slot)).toEqual(slots.toSorted((a, b) => a - b));
  }

  /** So many GPU nodes of the box, as soon as that many have no owner and are in `state`. */
  #are(state: string, many: number): Promise<readonly Gpu[]> {
    return until(
      async () => {
        const { gpus } = await this.#pool.user.persist((pool) =>
          pool.listGpus({ box: this.boxId }),
        );
        const found = gpus.filter((gpu) => gpu.state === state && gpu.binding === '');
        return found.length === many ? found : undefined;
      },
      `${many} GPU nodes of ${this.boxId} to be ${state}`,
      PATIENCE_MS,
    );
  }

  end(): void {
    this.box.disconnect();
    this.host.disconnect();
  }
}
