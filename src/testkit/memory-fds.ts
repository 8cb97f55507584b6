/** Descriptors of eventfds alone, in one process and in the order of a clock: both ends of a session use one. */
import type { Clock } from '#base/clock';
import type { EventFd, FdInfo, FdOperations } from '#vfio-user/fd-operations';
import { Errno, Refusal } from '#vfio-user/refusal';

class Counter {
  count = 0;
  readonly watchers = new Set<() => void>();
}

export class MemoryFds implements FdOperations {
  readonly #clock: Clock;
  readonly #counters = new Map<number, Counter>();
  #next = 100;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Descriptors that nobody has closed. */
  get open(): number {
    return this.#counters.size;
  }

  close(fd: number): void {
    if (!this.#counters.delete(fd)) throw new Error(`descriptor ${fd} is not open`);
  }

  duplicate(fd: number): number {
    return this.#add(this.#counter(fd));
  }

  inspect(fd: number): FdInfo {
    this.#counter(fd);
    const none = { sizeBytes: 0, inMemory: false, keepsSize: false };
    return { kind: 'eventfd', identity: `${fd}`, ...none };
  }

  map(): Refusal {
    return new Refusal(Errno.EINVAL, 'there are eventfds alone');
  }

  read(): boolean {
    return false;
  }

  write(): boolean {
    return false;
  }

  adoptEventFd(fd: number): EventFd {
    const counter = this.#counter(fd);
    let watcher: (() => void) | undefined;
    return {
      fd,
      signal: () => {
        counter.count++;
        this.#clock.at(this.#clock.now(), () => {
          if (counter.count === 0 || counter.watchers.size === 0) return;
          counter.count = 0;
          for (const watch of counter.watchers) watch();
        });
      },
      watch: (onSignal) => {
        watcher = onSignal;
        counter.watchers.add(onSignal);
      },
      close: () => {
        if (watcher !== undefined) counter.watchers.delete(watcher);
        this.close(fd);
      },
    };
  }

  createEventFd(): EventFd {
    return this.adoptEventFd(this.#add(new Counter()));
  }

  #add(counter: Counter): number {
    const fd = this.#next++;
    this.#counters.set(fd, counter);
    return fd;
  }

  #counter(fd: number): Counter {
    const counter = this.#counters.get(fd);
    if (counter === undefined) throw new Error(`descriptor ${fd} is not open`);
    return counter;
  }
}
