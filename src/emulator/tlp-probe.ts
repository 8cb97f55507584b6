/**
 * An observer between a device and its link: counts what passes, by kind and direction, and how many
 * reads are outstanding over time. It changes nothing and takes no time.
 */
import type { Nanos } from '#base/units';
import { isLastCompletion, isMemoryRead } from '#pcie/completion';
import { DeviceTap } from '#pcie/device-tap';
import { type Tlp, TLP_KIND_NAMES, TlpKind } from '#pcie/tlp';
import { encodedTlpBytes } from '#pcie/tlp-codec';

/** TLPs of one direction; bytes are those of the TLPs, and of their payloads. */
export interface DirectionCounts {
  /** By the specification's name of the kind; kinds that did not pass are not there. */
  readonly tlps: Readonly<Record<string, number>>;
  readonly total: number;
  readonly tlpBytes: number;
  readonly payloadBytes: number;
}

/** Everything between two moments. `up` is from the device. */
export interface TlpCounts {
  readonly up: DirectionCounts;
  readonly down: DirectionCounts;
  /** Bytes that read requests of the device asked for, and that completions brought. */
  readonly bytesAsked: number;
  readonly bytesAnswered: number;
  /** Reads outstanding, all times summed (reads × ns), and the most at once. */
  readonly readNs: number;
  readonly mostReads: number;
  /** Reads that have been answered whole, and reads still outstanding. */
  readonly readsAnswered: number;
  readonly readsOpen: number;
}

const KINDS = 256;

class Direction {
  readonly #tlps = new Float64Array(KINDS);
  #tlpBytes = 0;
  #payloadBytes = 0;

  count(tlp: Tlp): void {
    this.#tlps[tlp.kind] = (this.#tlps[tlp.kind] as number) + 1;
    this.#tlpBytes += encodedTlpBytes(tlp);
    this.#payloadBytes += tlp.payloadBytes;
  }

  get counts(): DirectionCounts {
    const tlps: Record<string, number> = {};
    let total = 0;
    for (const [kind, count] of this.#tlps.entries()) {
      if (count === 0) continue;
      tlps[TLP_KIND_NAMES[kind] ?? `kind ${kind}`] = count;
      total += count;
    }
    return { tlps, total, tlpBytes: this.#tlpBytes, payloadBytes: this.#payloadBytes };
  }

  clear(): void {
    this.#tlps.fill(0);
    this.#tlpBytes = 0;
    this.#payloadBytes = 0;
  }
}

export class TlpProbe extends DeviceTap {
  readonly #up = new Direction();
  readonly #down = new Direction();
  #bytesAsked = 0;
  #bytesAnswered = 0;
  #open = 0;
  #most = 0;
  #answered = 0;
  #readNs = 0;
  #sinceNs = 0;
  /** When the device last sent a posted request: a fence, at the end of a run. */
  lastWriteNs = 0;

  /** Everything since the last `clear`. */
  counts(now: Nanos): TlpCounts {
    this.#pass(now);
    return {
      up: this.#up.counts,
      down: this.#down.counts,
      bytesAsked: this.#bytesAsked,
      bytesAnswered: this.#bytesAnswered,
      readNs: this.#readNs,
      mostReads: this.#most,
      readsAnswered: this.#answered,
      readsOpen: this.#open,
    };
  }

  clear(now: Nanos): void {
    this.#pass(now);
    this.#up.clear();
    this.#down.clear();
    this.#bytesAsked = 0;
    this.#bytesAnswered = 0;
    this.#readNs = 0;
    this.#answered = 0;
    this.#most = this.#open;
  }

  override send(now: Nanos, tlp: Tlp): void {
    this.#up.count(tlp);
    if (isMemoryRead(tlp.kind)) {
      this.#pass(now);
      this.#bytesAsked += 4 * tlp.lengthDw;
      this.#open += 1;
      if (this.#open > this.#most) this.#most = this.#open;
    } else if (tlp.kind === TlpKind.MWr32 || tlp.kind === TlpKind.MWr64) {
      this.lastWriteNs = now;
    }
    super.send(now, tlp);
  }

  override receive(now: Nanos, tlp: Tlp): void {
    this.#down.count(tlp);
    if (tlp.kind === TlpKind.CplD || tlp.kind === TlpKind.Cpl) {
      this.#bytesAnswered += tlp.payloadBytes;
      if (isLastCompletion(tlp)) {
        this.#pass(now);
        this.#open -= 1;
        this.#answered += 1;
      }
    }
    super.receive(now, tlp);
  }

  #pass(now: Nanos): void {
    this.#readNs += this.#open * (now - this.#sinceNs);
    this.#sinceNs = now;
  }
}
