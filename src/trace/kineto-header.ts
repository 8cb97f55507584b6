/** What a Kineto trace says beside its events, and how it was recorded. */
import type { TimelineBuilder } from './timeline-builder.ts';

/** 2000 and 2100, in ns since 1970. */
const EARLIEST_NS = 946_684_800_000_000_000n;
const LATEST_NS = 4_102_444_800_000_000_000n;
/** Operators looked at for the arguments that only come with stacks or shapes. */
const MAX_LOOKS = 2000;

export class KinetoHeader {
  hasStacks = false;
  hasShapes = false;
  #looks = 0;
  #baseTimeNs = 0n;
  readonly #gpus = new Map<number, string>();

  field(key: string, bytes: Uint8Array): void {
    const text = (): string => Buffer.from(bytes).toString('utf8');
    switch (key) {
      case 'baseTimeNanoseconds': {
        const digits = /^"?(-?\d{1,20})"?$/.exec(text())?.[1];
        if (digits !== undefined) this.#baseTimeNs = BigInt(digits);
        return;
      }
      case 'with_stack':
        if (/^(?:1|true)$/.test(text())) this.hasStacks = true;
        return;
      case 'record_shapes':
        if (/^(?:1|true)$/.test(text())) this.hasShapes = true;
        return;
      case 'deviceProperties':
        this.#devices(text());
        return;
      default:
    }
  }

  /** Whether looking at an operator can tell more. */
  get wantsLook(): boolean {
    return (!this.hasStacks || !this.hasShapes) && this.#looks < MAX_LOOKS;
  }

  /** At an operator: with shapes and stacks it has arguments that are not empty. */
  look(bytes: Uint8Array, start: number, end: number): void {
    this.#looks += 1;
    const text = Buffer.from(bytes.subarray(start, end)).toString('latin1');
    if (/"Call stack": *"[^"]/.test(text)) this.hasStacks = true;
    if (/"Input [Dd]ims": *\[[^"]*\d/.test(text)) this.hasShapes = true;
  }

  /** `originUs`: the reader's origin by the trace's clock. */
  applyTo(builder: TimelineBuilder, originUs: number): void {
    builder.recordedStacks = this.hasStacks;
    builder.recordedShapes = this.hasShapes;
    for (const [device, name] of this.#gpus) builder.gpu(device, name);
    const originNs = this.#baseTimeNs + BigInt(Math.trunc(originUs)) * 1000n;
    if (originNs > EARLIEST_NS && originNs < LATEST_NS) builder.originUnixNs = originNs;
  }

  #devices(text: string): void {
    let devices: unknown;
    try {
      devices = JSON.parse(text);
    } catch {
      return;
    }
    if (!Array.isArray(devices)) return;
    for (const device of devices as unknown[]) {
      if (typeof device !== 'object' || device === null) continue;
      const { id, name } = device as { readonly id?: unknown; readonly name?: unknown };
      if (Number.isSafeInteger(id) && typeof name === 'string' && name !== '') {
        this.#gpus.set(id as number, name);
      }
    }
  }
}
