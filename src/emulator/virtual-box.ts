/** One box in virtual time: box proxy, its devices and all its links, driven by one timer. */
import type { Timed } from '#base/clock';
import { TimerDriver } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { Nanos } from '#base/units';
import type { VirtualClock } from '#base/virtual-clock';
import { BoxLinks } from '#fabric/box-links';
import { BoxProxy, type BoxProxyOptions } from '#fabric/box-proxy';
import type { LinkOptions } from '#fabric/link-options';
import type { LinkUser } from '#fabric/link-user';
import type { BoxRow } from '#fabric/mapping-table';
import { settleAfter } from '#fabric/settle-after';
import type { PeerIdentity } from '#fabric/transport';
import type { VirtualListener } from '#fabric/virtual-network';
import { silentUser } from './silent-user.ts';

export interface VirtualBoxOptions extends Omit<BoxProxyOptions, 'boxId'> {
  readonly id: string;
  readonly link?: Partial<LinkOptions>;
  readonly report?: (now: Nanos, peer: PeerIdentity, message: string) => void;
  /** Puts an observer between links and proxy: returns what the links shall talk to. */
  readonly watch?: (proxy: BoxProxy) => LinkUser;
}

export class VirtualBox {
  readonly id: string;
  readonly proxy: BoxProxy;
  readonly links: BoxLinks;
  readonly #clock: VirtualClock;
  readonly #driver: TimerDriver;
  /** When the links are due, as of the last time the timer was set. */
  #linksNs = Infinity;
  #dead = false;

  constructor(clock: VirtualClock, options: VirtualBoxOptions) {
    this.id = options.id;
    this.#clock = clock;
    this.proxy = new BoxProxy({ ...options, boxId: options.id });
    this.links = new BoxLinks({
      local: { kind: 'box', id: options.id },
      user: options.watch?.(this.proxy) ?? this.proxy,
      ...(options.report === undefined ? {} : { report: options.report }),
      ...(options.link === undefined ? {} : { options: options.link }),
    });
    const machine: Timed = {
      nextDeadlineNs: () => {
        this.#linksNs = this.links.nextDeadlineNs();
        return Math.min(this.proxy.nextDeadlineNs(), this.#linksNs);
      },
      tick: (now) => {
        this.proxy.tick(now);
        // Whatever moved it was followed by a `settle`.
        if (this.#linksNs <= now) this.links.tick(now);
        this.proxy.flush(now);
      },
    };
    this.#driver = new TimerDriver(clock, machine);
  }

  /** What a dialling host reaches; `undefined` once the process is dead. */
  listener(): VirtualListener | undefined {
    if (this.#dead) return undefined;
    return {
      local: this.links.local,
      accept: (now, transport) => {
        if (this.#dead) return silentUser(transport);
        const user = this.links.accept(now, transport);
        this.#settle(now);
        return settleAfter(user, (at) => this.#settle(at));
      },
    };
  }

  /** Puts a table in force; a refusal is thrown. */
  setTable(rows: readonly BoxRow[]): void {
    const [error] = this.proxy.setTable(this.#clock.now(), rows);
    if (error !== undefined) throw new DxpuError('invalid_argument', error.message);
    this.settle();
  }

  settle(): void {
    this.#settle(this.#clock.now());
  }

  /** The process dies: its memory is gone, nothing is called any more. */
  kill(): void {
    this.#dead = true;
    this.#driver.stop();
  }

  #settle(now: Nanos): void {
    if (this.#dead) return;
    this.proxy.flush(now);
    this.#driver.update();
  }
}
