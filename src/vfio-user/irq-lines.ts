/**
 * Where a device's interrupts go: the eventfds of DEVICE_SET_IRQS, and INTx as the level it is. INTx
 * masks itself when it fires (VFIO_IRQ_INFO_AUTOMASKED) and fires again at unmask if it is still
 * asserted; the message types have no mask here, that is the guest's in configuration space.
 */
import { closeAll, type EventFd, type FdOperations } from './fd-operations.ts';
import { IRQ_COUNT, IRQ_INTX, type IrqCounts, irqCount } from './irq-info.ts';
import type { IrqSet } from './irq-set.ts';
import { Errno, Refusal } from './refusal.ts';

export class IrqLines {
  readonly #fds: FdOperations;
  readonly #counts: IrqCounts;
  readonly #triggers: Map<number, EventFd>[] = Array.from({ length: IRQ_COUNT }, () => new Map());
  #mask: EventFd | undefined;
  #unmask: EventFd | undefined;
  #asserted = false;
  #masked = false;

  constructor(fds: FdOperations, counts: IrqCounts) {
    this.#fds = fds;
    this.#counts = counts;
  }

  /** How many interrupts of type `index` there are. */
  readonly total = (index: number): number => irqCount(this.#counts, index);

  /** Fires one message interrupt. False, and nothing happens, while the client has not enabled it. */
  trigger(index: number, vector: number): boolean {
    const eventFd = this.#triggers[index]?.get(vector);
    eventFd?.signal();
    return eventFd !== undefined;
  }

  /** The level of INTx. */
  setIntx(asserted: boolean): void {
    this.#asserted = asserted;
    this.#fireIntx();
  }

  /** Does what a decoded message asks. Takes over `fds`, whatever it returns. */
  apply(set: IrqSet, fds: readonly number[]): Refusal | undefined {
    const refused = this.#refuse(set, fds);
    if (refused !== undefined) {
      closeAll(this.#fds, fds);
      return refused;
    }
    if (set.data === 'eventfd') this.#connect(set, fds);
    else if (set.count === 0) this.#disable(set.index);
    else this.#act(set);
    return undefined;
  }

  /** Closes every eventfd; the levels of the device stay as they are. */
  close(): void {
    for (let index = 0; index < IRQ_COUNT; index++) this.#disable(index);
  }

  #refuse(set: IrqSet, fds: readonly number[]): Refusal | undefined {
    if (set.action !== 'trigger' && set.index !== IRQ_INTX) {
      return new Refusal(Errno.EINVAL, `interrupts of type ${set.index} have no mask`);
    }
    const wanted = set.data === 'eventfd' ? set.count : 0;
    // With none at all the interrupts are let go of.
    if (fds.length !== wanted && fds.length !== 0) {
      return new Refusal(Errno.EINVAL, `SET_IRQS with ${fds.length} descriptors, not ${wanted}`);
    }
    if (fds.some((fd) => this.#fds.inspect(fd).kind !== 'eventfd')) {
      return new Refusal(Errno.EINVAL, 'a descriptor of SET_IRQS is not an eventfd');
    }
    return undefined;
  }

  #connect(set: IrqSet, fds: readonly number[]): void {
    if (set.action === 'trigger') {
      const triggers = this.#triggers[set.index];
      for (let at = 0; at < set.count; at++) {
        const vector = set.start + at;
        triggers?.get(vector)?.close();
        triggers?.delete(vector);
        const fd = fds[at];
        if (fd !== undefined) triggers?.set(vector, this.#fds.adoptEventFd(fd));
      }
      if (set.index === IRQ_INTX) {
        this.#masked = false;
        this.#fireIntx();
      }
      return;
    }
    const [fd] = fds;
    const eventFd = fd === undefined ? undefined : this.#fds.adoptEventFd(fd);
    if (set.action === 'unmask') {
      this.#unmask?.close();
      this.#unmask = eventFd;
      eventFd?.watch(() => this.#setMasked(false));
    } else {
      this.#mask?.close();
      this.#mask = eventFd;
      eventFd?.watch(() => this.#setMasked(true));
    }
  }

  #act(set: IrqSet): void {
    for (let at = 0; at < set.count; at++) {
      if (set.data === 'bool' && set.bools?.[at] === 0) continue;
      if (set.action === 'trigger') this.trigger(set.index, set.start + at);
      else this.#setMasked(set.action === 'mask');
    }
  }

  #disable(index: number): void {
    const triggers = this.#triggers[index];
    for (const eventFd of triggers?.values() ?? []) eventFd.close();
    triggers?.clear();
    if (index !== IRQ_INTX) return;
    this.#mask?.close();
    this.#unmask?.close();
    this.#mask = undefined;
    this.#unmask = undefined;
    this.#masked = false;
  }

  #setMasked(masked: boolean): void {
    this.#masked = masked;
    this.#fireIntx();
  }

  #fireIntx(): void {
    if (!this.#asserted || this.#masked || !this.trigger(IRQ_INTX, 0)) return;
    this.#masked = true;
  }
}
