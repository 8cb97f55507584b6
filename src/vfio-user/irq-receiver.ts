/** The client's end of interrupts: the eventfds it gives to the server, and who is told of each. */
import type { Nanos } from '#base/units';
import type { EventFd, FdOperations } from './fd-operations.ts';
import type { IrqSet } from './irq-set.ts';
import type { Done, Refusal } from './refusal.ts';

export type OnIrq = (vector: number) => void;

type SendSet = (now: Nanos, set: IrqSet, fds: readonly number[], done: Done) => void;

export class IrqReceiver {
  readonly #fds: FdOperations;
  readonly #send: SendSet;
  readonly #eventFds = new Map<number, EventFd[]>();

  constructor(fds: FdOperations, send: SendSet) {
    this.#fds = fds;
    this.#send = send;
  }

  /** Gives the server an eventfd for each interrupt, in as many messages as `maxFds` asks for. */
  enable(now: Nanos, index: number, count: number, maxFds: number, onIrq: OnIrq, done: Done): void {
    this.#release(index);
    const eventFds = Array.from({ length: count }, (_, vector) => {
      const eventFd = this.#fds.createEventFd();
      eventFd.watch(() => onIrq(vector));
      return eventFd;
    });
    this.#eventFds.set(index, eventFds);
    const step = Math.max(1, maxFds);
    let left = Math.ceil(count / step);
    let failed: Refusal | undefined;
    for (let start = 0; start < count; start += step) {
      const part = eventFds.slice(start, start + step);
      const set: IrqSet = { index, start, count: part.length, data: 'eventfd', action: 'trigger' };
      const sent = part.map(({ fd }) => fd);
      this.#send(now, set, sent, (then, refused) => {
        failed ??= refused;
        if (--left > 0) return;
        if (failed !== undefined) this.#release(index);
        done(then, failed);
      });
    }
  }

  disable(now: Nanos, index: number, done: Done): void {
    this.#release(index);
    const set: IrqSet = { index, start: 0, count: 0, data: 'none', action: 'trigger' };
    this.#send(now, set, [], done);
  }

  close(): void {
    for (const index of this.#eventFds.keys()) this.#release(index);
  }

  #release(index: number): void {
    for (const eventFd of this.#eventFds.get(index) ?? []) eventFd.close();
    this.#eventFds.delete(index);
  }
}
