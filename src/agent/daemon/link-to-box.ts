/**
 * A host's link to one box in real time: opens its connections, logs what happens to it, and knows what
 * is in its way.
 */
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { StartableTransport } from '#fabric/fault-transport';
import { HostLink } from '#fabric/host-link';
import type { LinkOptions } from '#fabric/link-options';
import type { LinkUser } from '#fabric/link-user';
import { settleAfter } from '#fabric/settle-after';
import { NOBODY_LISTENS } from '#fabric/socket-endpoint';
import type { PathReport } from '#proto/agent-messages';
import { type LinkReport, reportLink } from './counter-report.ts';
import type { Logger } from './logger.ts';
import { RepeatedLog } from './repeated-log.ts';

export interface PathToBox {
  readonly name: string;
  readonly box: string;
  readonly host: string;
  readonly port: number;
}

export interface LinkToBoxOptions {
  readonly hostId: string;
  readonly box: string;
  /** At least one. */
  readonly paths: readonly PathToBox[];
  readonly user: LinkUser;
  readonly clock: Clock;
  readonly log: Logger;
  readonly linkOptions: Partial<LinkOptions>;
  readonly newSessionId: () => number;
  /** Opens a connection over a path. Its promise's error ends up in the link. */
  readonly connect: (path: PathToBox) => Promise<StartableTransport>;
  /** Called after each event from outside. */
  readonly settle: () => void;
  /** A path came up or went down, or there are others. */
  readonly onChanged: () => void;
}

export class LinkToBox {
  readonly link: HostLink;
  readonly #options: LinkToBoxOptions;
  readonly #repeated: RepeatedLog;
  #paths: readonly PathToBox[];
  /** The path of the last connection that came up. */
  #lastUp: PathToBox | undefined;
  #problem: string | undefined;
  /** Problems logged since the last connection, by path. */
  readonly #logged = new Map<string, string>();
  /** Smallest recent round trip of each path that was measured, by name. */
  readonly #rttNs = new Map<string, number>();

  constructor(options: LinkToBoxOptions) {
    const { hostId, box, paths, user, newSessionId, linkOptions } = options;
    this.#options = options;
    this.#paths = paths;
    this.#repeated = new RepeatedLog(options.log);
    this.link = new HostLink({
      local: { kind: 'host', id: hostId },
      peer: { kind: 'box', id: box },
      paths: paths.length,
      user,
      sink: {
        connect: (_now, pathIndex) => void this.#connect(this.#paths[pathIndex]),
        report: (_now, _peer, message) => this.#report(message),
      },
      newSessionId,
      options: linkOptions,
    });
  }

  /** While there is no connection: what was in the way of the last one, as far as it is known. */
  get problem(): string | undefined {
    return this.link.state === 'up' ? undefined : this.#problem;
  }

  /** There are other ways to the box now. A connection that is up stays up, whatever its path. */
  setPaths(paths: readonly PathToBox[]): void {
    const current = this.#pathInUse() ?? this.#paths[this.link.pathIndex];
    const index = paths.findIndex((one) => current !== undefined && isSamePath(one, current));
    this.#paths = paths;
    this.link.setPaths(paths.length, Math.max(0, index));
  }

  report(): LinkReport {
    const { link, problem } = this;
    const { state, sessionId } = link;
    const path = (this.#pathInUse() ?? this.#paths[link.pathIndex])?.name;
    const peer = `box ${this.#options.box}`;
    return reportLink({ peer, state, sessionId, path, problem }, link.counters);
  }

  /** Every way to the box. One at a time is in use: of the others nobody knows whether they work. */
  pathReports(): PathReport[] {
    const inUse = this.#pathInUse();
    if (inUse !== undefined) this.#rttNs.set(inUse.name, this.link.counters.rttRecentNs);
    return this.#paths.map((path): PathReport => {
      const up = inUse !== undefined && isSamePath(path, inUse);
      const problem =
        inUse === undefined
          ? (this.#logged.get(path.name) ?? 'no connection yet')
          : `not in use: the link goes over ${inUse.name}`;
      return {
        box: path.box,
        path: path.name,
        up,
        rttNs: this.#rttNs.get(path.name) ?? 0,
        bitsPerSecond: 0,
        problem: up ? '' : problem,
      };
    });
  }

  #pathInUse(): PathToBox | undefined {
    return this.link.state === 'up' ? this.#lastUp : undefined;
  }

  #report(problem: string): void {
    this.#problem = problem;
    this.#options.onChanged();
    const { box, log } = this.#options;
    const path = this.#paths[this.link.pathIndex];
    const facts = { peer: `box ${box}`, path: path?.name };
    // A box that is not there yet is no fault: the two may be started in any order.
    const waits = this.#lastUp === undefined && problem.endsWith(NOBODY_LISTENS);
    const where = `${path?.host}:${path?.port}`;
    const message = waits ? `waiting for box ${box} at ${where}: ${NOBODY_LISTENS}` : problem;
    // An attempt a second that fails alike is one event, not a log full of them.
    const key = path?.name ?? '';
    if (this.#logged.get(key) === message) {
      log.debug(facts, message);
      return;
    }
    this.#logged.set(key, message);
    this.#repeated.say(waits ? 'info' : 'warn', facts, message, `${key} ${message}`);
  }

  async #connect(path: PathToBox | undefined): Promise<void> {
    const { link } = this;
    const { clock, settle } = this.#options;
    let transport: StartableTransport;
    try {
      if (path === undefined) throw new DxpuError('internal', 'there is no such path');
      transport = await this.#options.connect(path);
    } catch (error) {
      link.connectFailed(clock.now(), DxpuError.from(error).message);
      settle();
      return;
    }
    const user = link.connected(clock.now(), transport);
    const { resumes } = link.counters;
    let announced = false;
    const settled = settleAfter(user, settle);
    transport.start({
      ...settled,
      turnEnd: (now) => {
        if (!announced && link.state === 'up') {
          announced = true;
          this.#isUp(path, link.counters.resumes > resumes);
        }
        settled.turnEnd(now);
      },
    });
    settle();
  }

  #isUp(path: PathToBox, isResumed: boolean): void {
    this.#lastUp = path;
    this.#problem = undefined;
    this.#logged.clear();
    this.#options.onChanged();
    const facts = { peer: `box ${path.box}`, path: path.name };
    this.#options.log.info(facts, isResumed ? 'session resumed' : 'session begun');
  }
}

function isSamePath(a: PathToBox, b: PathToBox): boolean {
  return a.name === b.name && a.host === b.host && a.port === b.port;
}
