/** Gives the events of a Kineto trace to the timeline's builder, one by one. */
import { ByteNames } from './byte-names.ts';
import { decimal, Microseconds } from './decimal.ts';
import type { EventsSink } from './json-events.ts';
import { ARG, type Arg, FIELD, type Field, KinetoEvent } from './kineto-event.ts';
import { SPARE_BYTES } from './json-skip.ts';
import { KinetoHeader } from './kineto-header.ts';
import { KinetoIterations } from './kineto-iterations.ts';
import { KinetoEventNames } from './kineto-event-names.ts';
import { CATEGORY, type Category, categoryOf, hipCopyKind } from './kineto-names.ts';
import { KinetoPlaces } from './kineto-places.ts';
import type { Timeline } from './timeline.ts';
import { WORK_FLAG, WORK_KIND, type WorkKind } from './timeline.ts';
import { TimelineBuilder } from './timeline-builder.ts';
import type { WarningCounts } from './warning-counts.ts';

const PHASE_COMPLETE = 0x58;
const PHASE_METADATA = 0x4d;
/** Events by whose times the origin is chosen, so that one odd time at the head does not decide it. */
const ORIGIN_SAMPLE = 101;

/** What comes after so many is of none that is known. */
const MAX_CATEGORIES = 1 << 12;

/** An event that waits for the origin. */
interface Waiting {
  readonly category: Category;
  /** `length` bytes and some spare ones. */
  readonly bytes: Uint8Array;
  readonly length: number;
}

export class KinetoReader implements EventsSink {
  readonly #builder = new TimelineBuilder('kineto');
  readonly #event = new KinetoEvent();
  readonly #time = new Microseconds();
  readonly #header = new KinetoHeader();
  readonly #iterations = new KinetoIterations();
  readonly #places = new KinetoPlaces(this.#builder);
  readonly #categoryNames = new ByteNames();
  readonly #categories: Category[] = [];
  readonly #names = new KinetoEventNames(this.#builder);
  #waiting: Waiting[] | undefined = [];
  /** Events of any kind, GPU work and API calls seen so far. */
  events = 0;
  work = 0;
  calls = 0;
  firstDamage: number | undefined;

  event(bytes: Uint8Array, start: number, limit: number): number {
    const event = this.#event;
    event.begin(bytes, start, limit);
    if (!event.readTo(FIELD.ph)) return -1;
    const end = this.#ofPhase(start);
    if (end >= 0) this.events += 1;
    return end;
  }

  /** X has a beginning and a length, M is metadata; nobody needs the others, which are many. */
  #ofPhase(start: number): number {
    const event = this.#event;
    const phase = event.isText(FIELD.ph) ? event.bytes[event.start(FIELD.ph) + 1] : 0;
    if (phase === PHASE_COMPLETE) return event.readTo(FIELD.cat) ? this.#takeOrSkip(start) : -1;
    if (phase === PHASE_METADATA) {
      if (!event.readAll()) return -1;
      this.#places.metadata(event);
    } else if (!event.skipRest()) return -1;
    return event.position;
  }

  /** @returns where the event ends, or -1. */
  #takeOrSkip(start: number): number {
    const event = this.#event;
    const category = this.#category();
    switch (category) {
      case CATEGORY.other:
        return event.skipRest() ? event.position : -1;
      case CATEGORY.pythonFunction:
        if (!event.skipRest()) return -1;
        this.#header.hasStacks = true;
        return event.position;
      case CATEGORY.framework:
      case CATEGORY.gpuAnnotation:
        if (!event.readTo(FIELD.name)) return -1;
        if (this.#iterations.isLabel(event)) break;
        if (!event.skipRest()) return -1;
        if (category === CATEGORY.framework && this.#header.wantsLook) {
          this.#header.look(event.bytes, start, event.position);
        }
        return event.position;
      default:
    }
    if (!event.readAll()) return -1;
    // Events that waited use the same reader of fields.
    const end = event.position;
    if (this.#waiting === undefined) this.#take(category);
    else this.#wait(this.#waiting, category, start);
    return end;
  }

  /** The piece may be written over before the origin is known. */
  #wait(waiting: Waiting[], category: Category, start: number): void {
    const { bytes, position } = this.#event;
    const length = position - start;
    const copy = new Uint8Array(length + SPARE_BYTES);
    copy.set(bytes.subarray(start, position));
    if (waiting.push({ category, bytes: copy, length }) === ORIGIN_SAMPLE) this.settle();
  }

  field(key: string, bytes: Uint8Array): void {
    this.#header.field(key, bytes);
  }

  damage(offset: number): void {
    this.firstDamage ??= offset;
    this.#builder.warnings.count(
      'damaged',
      'places that are not JSON were passed over, with the event at each',
      { place: `byte ${offset} of the JSON` },
    );
  }

  get warnings(): WarningCounts {
    return this.#builder.warnings;
  }

  countTruncated(place: string): void {
    this.#builder.warnings.count(
      'truncated',
      'part at the end is missing: the answer is about what came before',
      { place },
    );
  }

  /** No more events will come, or enough have come to know when the trace was taken. */
  settle(): void {
    const waiting = this.#waiting;
    if (waiting === undefined) return;
    this.#waiting = undefined;
    this.#chooseOrigin(waiting);
    for (const one of waiting) {
      this.#recall(one);
      this.#take(one.category);
    }
  }

  #recall({ bytes, length }: Waiting): void {
    this.#event.begin(bytes, 0, length);
    this.#event.readAll();
  }

  finish(): Timeline {
    this.settle();
    const builder = this.#builder;
    this.#header.applyTo(builder, this.#time.origin);
    this.#iterations.applyTo(builder);
    this.#places.nameThreads();
    return builder.finish();
  }

  /** The median time of the sample. */
  #chooseOrigin(sample: readonly Waiting[]): void {
    const event = this.#event;
    const probe = new Microseconds();
    const times: { readonly ns: number; readonly from: Waiting }[] = [];
    for (const from of sample) {
      this.#recall(from);
      if (!event.has(FIELD.ts)) continue;
      const ns = probe.sinceOrigin(event.bytes, event.start(FIELD.ts), event.end(FIELD.ts));
      if (Number.isFinite(ns)) times.push({ ns, from });
    }
    times.sort((a, b) => a.ns - b.ns);
    const median = times[times.length >> 1];
    if (median === undefined) return;
    this.#recall(median.from);
    this.#time.setOrigin(event.bytes, event.start(FIELD.ts), event.end(FIELD.ts));
  }

  #category(): Category {
    const event = this.#event;
    if (!event.isText(FIELD.cat)) return CATEGORY.other;
    const names = this.#categoryNames;
    const hasRoom = names.count < MAX_CATEGORIES;
    const { bytes } = event;
    const start = event.start(FIELD.cat) + 1;
    const index = names.index(bytes, start, event.end(FIELD.cat) - 1, hasRoom);
    if (index < 0) return CATEGORY.other;
    let category = this.#categories[index];
    if (category === undefined) {
      category = categoryOf(names.text(index));
      this.#categories[index] = category;
    }
    return category;
  }

  /** All fields of the event are read. */
  #take(category: Category): void {
    const event = this.#event;
    switch (category) {
      case CATEGORY.call:
        this.#call();
        return;
      case CATEGORY.sync:
        this.#sync();
        return;
      case CATEGORY.framework:
      case CATEGORY.gpuAnnotation:
        this.#iterations.add(event, category, this.#startNs(), this.#durationNs());
        return;
      default:
        this.#work(category);
    }
  }

  #work(category: Category): void {
    let kind: WorkKind = category === CATEGORY.memset ? WORK_KIND.memset : WORK_KIND.kernel;
    let flags = 0;
    if (category === CATEGORY.memcpy) {
      const copy = this.#names.copy(this.#event);
      kind = copy.kind;
      flags = copy.flags;
    }
    if (this.#number(ARG.graphNode) > 0) flags |= WORK_FLAG.graph;
    this.work += 1;
    this.#builder.addWork(
      this.#places.stream(this.#event),
      kind,
      this.#names.ofWork(this.#event),
      this.#startNs(),
      this.#durationNs(),
      this.#number(ARG.correlation),
      this.#number(ARG.bytes),
      flags,
    );
  }

  #call(): void {
    const correlation = this.#number(ARG.correlation);
    this.calls += 1;
    this.#builder.addCall(
      this.#places.thread(this.#event),
      this.#names.ofCall(this.#event),
      this.#startNs(),
      this.#durationNs(),
      correlation,
    );
    if (!this.#event.has(ARG.kind)) return;
    const kind = hipCopyKind(this.#number(ARG.kind));
    if (kind === undefined) return;
    this.#builder.addCopyCall(
      correlation,
      kind,
      this.#number(ARG.bytes) || this.#number(ARG.size) || 0,
    );
  }

  #sync(): void {
    const event = this.#event;
    const kind = event.isText(ARG.syncKind)
      ? Buffer.from(event.bytes.subarray(event.start(ARG.syncKind), event.end(ARG.syncKind)))
      : Buffer.alloc(0);
    // The stream of an event synchronise is the one the event was recorded on.
    const stream = kind.includes('Event Sync') ? ARG.waitOnStream : ARG.stream;
    const record = this.#number(ARG.recordCorrelation);
    this.#builder.addSync({
      correlation: this.#number(ARG.correlation),
      stream: this.#syncStream(stream),
      recordCorrelation: record > 0 ? record : 0,
      recordStream: this.#syncStream(ARG.waitOnStream),
    });
  }

  #syncStream(arg: Arg): number {
    const event = this.#event;
    return event.has(arg) && this.#number(arg) >= 0 ? this.#places.stream(event, arg) : -1;
  }

  /** 0 where the event has none. */
  #number(slot: Field | Arg): number {
    const event = this.#event;
    return event.has(slot) ? decimal(event.bytes, event.start(slot), event.end(slot)) : 0;
  }

  #startNs(): number {
    const event = this.#event;
    if (!event.has(FIELD.ts)) return Number.NaN;
    return this.#time.sinceOrigin(event.bytes, event.start(FIELD.ts), event.end(FIELD.ts));
  }

  #durationNs(): number {
    const event = this.#event;
    if (!event.has(FIELD.dur)) return Number.NaN;
    return this.#time.length(event.bytes, event.start(FIELD.dur), event.end(FIELD.dur));
  }
}
