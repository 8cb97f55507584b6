/** Memory reads of a served model: opened in the order they come, answered once their bytes are there. */
import {
  completeWithData,
  completeWithoutData,
  firstByteAddress,
  requestByteCount,
} from '#pcie/completion';
import { completionChunk } from '#pcie/split';
import { CompletionStatus, copyTlp, Tlp } from '#pcie/tlp';

const ROOT_PORT = 0;
const RCB_BYTES = 64;

export interface ModelRead {
  readonly request: Tlp;
  readonly address: number;
  readonly bytes: Uint8Array;
  ok: boolean;
}

export class ModelReads {
  #ready: ModelRead[] = [];
  readonly #completion = new Tlp();

  /** `bytes` is to be filled. */
  open(tlp: Tlp): ModelRead {
    const request = new Tlp();
    copyTlp(request, tlp);
    const bytes = new Uint8Array(requestByteCount(request));
    return { request, address: firstByteAddress(request), bytes, ok: false };
  }

  ended(read: ModelRead, ok: boolean): void {
    read.ok = ok;
    this.#ready.push(read);
  }

  /** What was open before is answered no more. */
  clear(): void {
    this.#ready = [];
  }

  /** False when there was none to answer. */
  answerNext(maxPayloadBytes: number, receive: (tlp: Tlp) => void): boolean {
    const read = this.#ready.shift();
    if (read === undefined) return false;
    const { request, bytes } = read;
    const out = this.#completion;
    if (!read.ok) {
      completeWithoutData(out, request, ROOT_PORT, CompletionStatus.UR);
      receive(out);
      return true;
    }
    // Payloads are whole double words, with the first byte at its place in them.
    const lead = read.address & 3;
    const padded = new Uint8Array((lead + bytes.length + 3) & ~3);
    padded.set(bytes, lead);
    let { address } = read;
    for (let remaining = bytes.length; remaining > 0; ) {
      const part = completionChunk(address, remaining, maxPayloadBytes, RCB_BYTES);
      const at = address - (address & 3) - (read.address - lead);
      completeWithData(out, request, ROOT_PORT, address, remaining, part, padded, at);
      receive(out);
      address += part;
      remaining -= part;
    }
    return true;
  }
}
