/**
 * Non-posted requests of a host to a remote function: open until the function has answered all their parts,
 * then completed, in the order the answers come, behind the writes the function has sent before them.
 */
import type { Nanos } from '#base/units';
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  requestByteCount,
} from '#pcie/completion';
import { completionChunk } from '#pcie/split';
import { CompletionStatus, copyTlp, Tlp, TlpKind, tlpAddress } from '#pcie/tlp';

/** Of a completer that is not a root complex (2.3.1.1). */
const RCB_BYTES = 128;

export interface OpenRequest {
  readonly request: Tlp;
  /** Of the request's double words; to be filled. */
  readonly bytes: Uint8Array;
  left: number;
  failed: boolean;
}

export interface RemoteRequestsOptions {
  readonly send: (now: Nanos, tlp: Tlp) => void;
  /** Calls `run` once all that the function has written before has left. */
  readonly after: (now: Nanos, run: (now: Nanos) => void) => void;
  readonly completer: () => number;
  readonly maxPayloadBytes: () => number;
}

export class RemoteRequests {
  readonly #options: RemoteRequestsOptions;
  readonly #open = new Set<OpenRequest>();
  readonly #completion = new Tlp();

  constructor(options: RemoteRequestsOptions) {
    this.#options = options;
  }

  /** The function is asked in `parts` parts. */
  open(tlp: Tlp, parts: number): OpenRequest {
    const request = new Tlp();
    copyTlp(request, tlp);
    const bytes = new Uint8Array(4 * Math.max(1, tlp.lengthDw));
    const open = { request, bytes, left: parts, failed: false };
    this.#open.add(open);
    return open;
  }

  /** A part has been answered; the whole is UR if any was not. */
  answered(now: Nanos, open: OpenRequest, ok: boolean): void {
    if (!ok) open.failed = true;
    if (--open.left > 0 || !this.#open.has(open)) return;
    this.#options.after(now, (then) => {
      if (this.#open.delete(open)) this.#complete(then, open);
    });
  }

  /** Answers all that is open UR: the function is not there any more. */
  abort(now: Nanos): void {
    const open = [...this.#open];
    this.#open.clear();
    for (const one of open) this.refuse(now, one.request);
  }

  /** What is open is answered to nobody. */
  clear(): void {
    this.#open.clear();
  }

  refuse(now: Nanos, request: Tlp): void {
    const out = this.#completion;
    completeWithoutData(out, request, this.#options.completer(), CompletionStatus.UR);
    this.#options.send(now, out);
  }

  #complete(now: Nanos, { request, bytes, failed }: OpenRequest): void {
    const out = this.#completion;
    const completer = this.#options.completer();
    if (failed) {
      this.refuse(now, request);
    } else if (request.kind === TlpKind.CfgRd0) {
      completeWithData(out, request, completer, 0, 4, 4, bytes, 0);
      this.#options.send(now, out);
    } else if (request.kind === TlpKind.CfgWr0) {
      completeWithoutData(out, request, completer, CompletionStatus.SC);
      this.#options.send(now, out);
    } else {
      this.#completeRead(now, request, bytes, completer);
    }
  }

  #completeRead(now: Nanos, request: Tlp, bytes: Uint8Array, completer: number): void {
    const out = this.#completion;
    const start = tlpAddress(request);
    const mps = this.#options.maxPayloadBytes();
    let address = firstByteAddress(request);
    for (let remaining = requestByteCount(request); remaining > 0; ) {
      const part = completionChunk(address, remaining, mps, RCB_BYTES);
      const at = address - (address & 3) - start;
      completeWithData(out, request, completer, address, remaining, part, bytes, at);
      this.#options.send(now, out);
      address += part;
      remaining -= part;
    }
  }
}
