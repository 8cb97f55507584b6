/** Names of calls and work in a Kineto trace, as the builder numbers them. */
import { ByteNames } from './byte-names.ts';
import { FIELD, type KinetoEvent } from './kineto-event.ts';
import { type CopyName, copyName } from './kineto-names.ts';
import type { TimelineBuilder } from './timeline-builder.ts';

/**
 * More kernels than any program has; what comes after them goes by one name, so that memory is bounded.
 * Calls have as much room again.
 */
const MAX_NAMES = 1 << 16;
const MAX_NAME_BYTES = 1 << 24;
const NO_NAME = Buffer.from('(other names)');

export class KinetoEventNames {
  readonly #builder: TimelineBuilder;
  readonly #names = new ByteNames();
  /** By the number of the name: its number in the builder, and what it says where it is a copy's. */
  readonly #indexes: number[] = [];
  readonly #copies: (CopyName | undefined)[] = [];

  constructor(builder: TimelineBuilder) {
    this.#builder = builder;
  }

  ofCall(event: KinetoEvent): number {
    return this.#indexes[this.#index(event, 2)] as number;
  }

  ofWork(event: KinetoEvent): number {
    return this.#indexes[this.#index(event, 1)] as number;
  }

  /** What the name of a copy says. */
  copy(event: KinetoEvent): CopyName {
    const index = this.#index(event, 1);
    const known = this.#copies[index];
    if (known !== undefined) return known;
    const made = copyName(this.#names.text(index));
    this.#copies[index] = made;
    return made;
  }

  #index(event: KinetoEvent, share: number): number {
    const names = this.#names;
    const hasRoom = names.count < share * MAX_NAMES && names.keptBytes < share * MAX_NAME_BYTES;
    let index = event.isText(FIELD.name)
      ? names.index(event.bytes, event.start(FIELD.name) + 1, event.end(FIELD.name) - 1, hasRoom)
      : -1;
    if (index < 0) index = names.index(NO_NAME, 0, NO_NAME.length);
    if (this.#indexes[index] === undefined) {
      this.#indexes[index] = this.#builder.name(names.text(index));
    }
    return index;
  }
}
