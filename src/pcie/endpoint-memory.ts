/**
 * Memory requests to an endpoint's BARs: finds the BAR, moves the bytes, and answers reads with as
 * many completions as MPS and the read completion boundary ask for.
 */
import { assertDefined } from '#base/assert';
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import { BAR_COUNT, type Bars } from './bar.ts';
import {
  byteEnablesAt,
  completeWithData,
  firstByteAddress,
  requestByteCount,
} from './completion.ts';
import type { DevicePort } from './device.ts';
import { ABORT_ACCESS, type BarTarget, type RegisterBar } from './endpoint-bar.ts';
import { completionChunk } from './split.ts';
import { CompletionStatus, Tlp, tlpAddress } from './tlp.ts';
import { copyRunPayload } from './tlp-run.ts';

/** RCB of a completer that is not a root complex (2.3.1.1). */
const ENDPOINT_RCB_BYTES = 128;
const LARGEST_READ_BYTES = 4096;

interface TargetedBar {
  readonly index: number;
  readonly sizeBytes: number;
  readonly target: BarTarget;
}

export class MemoryResponder {
  readonly #bars: Bars;
  readonly #targets = new Array<BarTarget | undefined>(BAR_COUNT).fill(undefined);
  readonly #completion = new Tlp();
  readonly #registers = new Uint8Array(LARGEST_READ_BYTES);
  readonly #registerView = new DataView(this.#registers.buffer);

  constructor(bars: Bars, targets: readonly TargetedBar[]) {
    this.#bars = bars;
    for (const { index, sizeBytes, target } of targets) {
      if (target.kind === 'memory' && target.memory.length !== sizeBytes) {
        throw new RangeError(`BAR ${index} has ${sizeBytes} bytes, its memory does not`);
      }
      this.#targets[index] = target;
    }
  }

  /**
   * Answers a memory read with its completions, and returns SC; or sends nothing and returns UR (no
   * BAR holds all of it) or CA (the device refuses).
   */
  read(
    now: Nanos,
    request: Tlp,
    port: DevicePort,
    completerId: number,
    mps: number,
  ): CompletionStatus {
    const start = tlpAddress(request);
    const target = this.#find(start, request.lengthDw * 4);
    if (target === undefined) return CompletionStatus.UR;
    let payload: Uint8Array = this.#registers;
    let payloadOffset = 0;
    if (target.kind === 'memory') {
      payload = target.memory;
      payloadOffset = this.#bars.matchedOffset;
    } else if (!this.#readRegisters(now, request, target)) {
      return CompletionStatus.CA;
    }
    let address = firstByteAddress(request);
    let remaining = requestByteCount(request);
    while (remaining > 0) {
      const bytes = completionChunk(address, remaining, mps, ENDPOINT_RCB_BYTES);
      const at = payloadOffset + address - (address & 3) - start;
      const completion = this.#completion;
      completeWithData(completion, request, completerId, address, remaining, bytes, payload, at);
      port.send(now, completion);
      address += bytes;
      remaining -= bytes;
    }
    return CompletionStatus.SC;
  }

  /** Does a memory write. Returns false when no BAR holds all of it; nothing is written then. */
  write(now: Nanos, request: Tlp): boolean {
    const target = this.#find(tlpAddress(request), request.lengthDw * 4);
    if (target === undefined) return false;
    const base = this.#bars.matchedOffset;
    const { lengthDw, payload, payloadOffset } = request;
    if (target.kind === 'memory') {
      writeMemory(target.memory, base, request);
      return true;
    }
    for (let dw = 0; dw < lengthDw; dw++) {
      const enables = byteEnablesAt(request, dw);
      if (enables === 0) continue;
      const at = payloadOffset + 4 * dw;
      const value =
        ((payload[at] as number) |
          ((payload[at + 1] as number) << 8) |
          ((payload[at + 2] as number) << 16) |
          ((payload[at + 3] as number) << 24)) >>>
        0;
      target.writeRegister(now, base + 4 * dw, value, enables);
    }
    return true;
  }

  /** Does `count` writes that are a run, or returns false when they do not all lie in one memory BAR. */
  writeRun(first: Tlp, stride: number, count: number): boolean {
    const target = this.#find(tlpAddress(first), count * first.payloadBytes);
    if (target?.kind !== 'memory') return false;
    copyRunPayload(first, count, stride, target.memory, this.#bars.matchedOffset);
    return true;
  }

  #find(address: number, bytes: number): BarTarget | undefined {
    const index = this.#bars.match(address, bytes);
    return index < 0
      ? undefined
      : assertDefined(this.#targets[index], 'something is behind every BAR');
  }

  #readRegisters(now: Nanos, request: Tlp, target: RegisterBar): boolean {
    const base = this.#bars.matchedOffset;
    for (let dw = 0; dw < request.lengthDw; dw++) {
      const enables = byteEnablesAt(request, dw);
      const value = enables === 0 ? 0 : target.readRegister(now, base + 4 * dw, enables);
      if (value === ABORT_ACCESS) return false;
      this.#registerView.setUint32(4 * dw, value, true);
    }
    return true;
  }
}

function writeMemory(memory: Uint8Array, base: number, request: Tlp): void {
  const { lengthDw, payload, payloadOffset } = request;
  const last = lengthDw - 1;
  // The byte enables of the first and the last double word may be any; between them all bytes count.
  const wholeFrom = byteEnablesAt(request, 0) === 15 ? 0 : 1;
  const wholeTo = byteEnablesAt(request, last) === 15 ? lengthDw : last;
  if (wholeTo > wholeFrom) {
    const skipped = 4 * wholeFrom;
    copyBytes(memory, base + skipped, payload, payloadOffset + skipped, 4 * (wholeTo - wholeFrom));
  }
  if (wholeFrom === 1) writeEnabled(memory, base, request, 0);
  if (wholeTo === last && last > 0) writeEnabled(memory, base, request, last);
}

function writeEnabled(memory: Uint8Array, base: number, request: Tlp, dw: number): void {
  const enables = byteEnablesAt(request, dw);
  for (let byte = 0; byte < 4; byte++) {
    if ((enables & (1 << byte)) !== 0) {
      const at = 4 * dw + byte;
      memory[base + at] = request.payload[request.payloadOffset + at] as number;
    }
  }
}
