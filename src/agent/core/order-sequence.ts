/** Which orders of one stream follow each other, and which is in force. */
import { DxpuError } from '#base/errors';

interface Numbered {
  readonly kind: string;
  readonly revision: number;
  readonly whole: boolean;
}

export class OrderSequence {
  readonly #kind: 'box' | 'host';
  readonly #takesAny: boolean;
  #revision = 0;
  #applied = 0;
  #refused = '';
  #isPending = false;

  /** `takesAny`: test only, see `AgentFaults.appliesStaleOrder`. */
  constructor(kind: 'box' | 'host', takesAny: boolean) {
    this.#kind = kind;
    this.#takesAny = takesAny;
  }

  /** Revision of the newest order in force; 0 before the first of the stream. */
  get applied(): number {
    return this.#applied;
  }

  /** Why the newest order is not in force; '' when it is. */
  get refused(): string {
    return this.#refused;
  }

  /** Whether the newest order, maybe of an earlier stream, could not be put in force yet. */
  get isPending(): boolean {
    return this.#isPending;
  }

  /** A new stream: its orders count from 1 again, and nothing was said of any. */
  begin(): void {
    this.#revision = 0;
    this.#applied = 0;
    this.#refused = '';
  }

  /**
   * Takes note of an order that came in, or fails with `failed_precondition` and changes nothing: it is
   * for another kind of proxy, its revision is not the next, or the first is not whole.
   */
  accept(order: Numbered): void {
    const wrong = this.#faultOf(order);
    if (wrong !== undefined && !(this.#takesAny && order.kind === this.#kind)) {
      throw new DxpuError('failed_precondition', `order ${order.revision} is refused: ${wrong}`, {
        details: { revision: order.revision, expected: this.#revision + 1 },
      });
    }
    this.#revision = order.revision;
  }

  /**
   * The newest order was tried: `refused` is why it could not be put in force, '' if it was.
   * `claims`: test only, it counts as in force all the same.
   */
  tried(refused: string, claims: boolean): void {
    if (refused === '' || claims) this.#applied = this.#revision;
    this.#isPending = refused !== '';
    this.#refused = claims || this.#revision === 0 ? '' : refused;
  }

  #faultOf(order: Numbered): string | undefined {
    if (order.kind !== this.#kind) return `it is for a ${order.kind}, this is a ${this.#kind}`;
    const next = this.#revision + 1;
    if (order.revision !== next) return `order ${next} is the next of this stream`;
    if (next === 1 && !order.whole) return 'the first of a stream must be a whole one';
    return undefined;
  }
}
