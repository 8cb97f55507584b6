/** Where events of a Kineto trace happen: host threads, and streams of GPUs. */
import { ByteNames } from './byte-names.ts';
import { decimal } from './decimal.ts';
import { ARG, type Arg, FIELD, type Field, type KinetoEvent } from './kineto-event.ts';
import type { TimelineBuilder } from './timeline-builder.ts';

const MAX_NAMED_THREADS = 1 << 14;

export class KinetoPlaces {
  readonly #builder: TimelineBuilder;
  /** Process and thread ids as they are written. */
  readonly #ids = new ByteNames();
  readonly #threads = new Map<number, number>();
  readonly #streams = new Map<number, number>();
  readonly #threadIds: { readonly pid: string; readonly tid: string }[] = [];
  readonly #threadNames = new Map<string, string>();

  constructor(builder: TimelineBuilder) {
    this.#builder = builder;
  }

  /** The thread a host call is on, as the builder numbers it. */
  thread(event: KinetoEvent): number {
    const key = this.#id(event, FIELD.pid) * 0x400_0000 + this.#id(event, FIELD.tid);
    const known = this.#threads.get(key);
    if (known !== undefined) return known;
    const pid = event.text(FIELD.pid);
    const tid = event.text(FIELD.tid);
    const made = this.#builder.thread(pid, tid);
    this.#threads.set(key, made);
    this.#threadIds.push({ pid, tid });
    return made;
  }

  /** The stream in `slot`, or the one the event is on, as the builder numbers it. */
  stream(event: KinetoEvent, slot: Arg = ARG.stream): number {
    const device = deviceOf(event);
    const written = event.has(slot) ? slot : FIELD.tid;
    const number = event.has(written)
      ? decimal(event.bytes, event.start(written), event.end(written))
      : Number.NaN;
    const isSmall = number >= 0 && number < 0x10_0000 && Number.isInteger(number);
    const text = isSmall ? String(number) : event.text(written).replace(/^stream /, '');
    if (!isSmall) return this.#builder.stream(device, text);
    const key = device * 0x10_0000 + number;
    const known = this.#streams.get(key);
    if (known !== undefined) return known;
    const made = this.#builder.stream(device, text);
    this.#streams.set(key, made);
    return made;
  }

  /** All fields of the event, whose phase is M, are read. */
  metadata(event: KinetoEvent): void {
    if (!event.isText(FIELD.name) || !event.isText(ARG.name)) return;
    if (event.text(FIELD.name) !== 'thread_name') return;
    if (this.#threadNames.size >= MAX_NAMED_THREADS) return;
    const key = `${event.text(FIELD.pid)}\n${event.text(FIELD.tid)}`;
    this.#threadNames.set(key, event.text(ARG.name));
  }

  /** Names the threads that have calls. */
  nameThreads(): void {
    for (const { pid, tid } of this.#threadIds) {
      const name = this.#threadNames.get(`${pid}\n${tid}`);
      if (name !== undefined) this.#builder.nameThread(pid, tid, name);
    }
  }

  #id(event: KinetoEvent, slot: Field): number {
    return event.has(slot) ? this.#ids.index(event.bytes, event.start(slot), event.end(slot)) : -1;
  }
}

/** The number of the GPU: of the arguments, or the process id; 0 where there is none. */
function deviceOf(event: KinetoEvent): number {
  for (const slot of [ARG.device, FIELD.pid]) {
    if (!event.has(slot)) continue;
    const device = decimal(event.bytes, event.start(slot), event.end(slot));
    if (device >= 0 && device < 0x100_0000 && Number.isInteger(device)) return device;
  }
  return 0;
}
