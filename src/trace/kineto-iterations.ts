/** The iterations a Kineto trace marks: annotations `ProfilerStep#N`. */
import { FIELD, type KinetoEvent } from './kineto-event.ts';
import { CATEGORY, type Category } from './kineto-names.ts';
import type { TimelineBuilder } from './timeline-builder.ts';

const PREFIX = Buffer.from('"ProfilerStep#');
const MAX_LABEL_BYTES = 64;
const MAX_ITERATIONS = 1 << 20;

interface Marked {
  readonly startNs: number;
  readonly endNs: number;
  readonly onGpu: boolean;
}

export class KinetoIterations {
  readonly #marked = new Map<string, Marked>();

  /** The event's name is read. */
  isLabel(event: KinetoEvent): boolean {
    if (!event.has(FIELD.name)) return false;
    const start = event.start(FIELD.name);
    const length = event.end(FIELD.name) - start;
    if (length < PREFIX.length || length > MAX_LABEL_BYTES) return false;
    for (let i = 0; i < PREFIX.length; i += 1) {
      if (event.bytes[start + i] !== PREFIX[i]) return false;
    }
    return true;
  }

  /** Of one label the host's counts before the GPU's, and of several threads' the longest. */
  add(event: KinetoEvent, category: Category, startNs: number, durationNs: number): void {
    const label = event.text(FIELD.name);
    const onGpu = category === CATEGORY.gpuAnnotation;
    const known = this.#marked.get(label);
    if (known === undefined && this.#marked.size >= MAX_ITERATIONS) return;
    const isBetter =
      known === undefined ||
      (known.onGpu && !onGpu) ||
      (known.onGpu === onGpu && !(known.endNs - known.startNs >= durationNs) && durationNs >= 0);
    if (isBetter) this.#marked.set(label, { startNs, endNs: startNs + durationNs, onGpu });
  }

  applyTo(builder: TimelineBuilder): void {
    for (const [label, { startNs, endNs }] of this.#marked) {
      builder.addIteration(label, startNs, endNs);
    }
  }
}
