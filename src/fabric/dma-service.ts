/**
 * Does what a function has asked of registered memory, once `Containment` has allowed it: writes,
 * reads answered in as many completions as the boundaries ask, atomic operations. Memory is
 * little-endian, as are the operands (6.15). `asked` is the request as it arrived: its answer goes under
 * the same slot and generation.
 */
import { copyBytes } from '#base/copy-bytes';
import type { Nanos } from '#base/units';
import {
  completeWithData,
  firstByteAddress,
  requestByteCount,
  setCompletion,
} from '#pcie/completion';
import { completionChunk } from '#pcie/split';
import { type CompletionStatus, FlowClass, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { copyRunPayload, runOfCompletions } from '#pcie/tlp-run';
import { operandBytes } from './containment.ts';
import type { SlotCounters } from './counters.ts';
import type { ArrivedTlp, LinkPort } from './link-user.ts';
import type { MemoryRegion } from './memory-map.ts';
import type { ScratchTlps } from './scratch-tlps.ts';

const MAX_OPERAND_BYTES = 16;

export interface DmaServiceOptions {
  readonly scratch: ScratchTlps;
  readonly completerBdf: number;
  readonly rcbBytes: number;
}

export class DmaService {
  readonly #scratch: ScratchTlps;
  readonly #completerBdf: number;
  readonly #rcbBytes: number;
  readonly #operand = new Uint8Array(MAX_OPERAND_BYTES);

  constructor(options: DmaServiceOptions) {
    this.#scratch = options.scratch;
    this.#completerBdf = options.completerBdf;
    this.#rcbBytes = options.rcbBytes;
  }

  /** Does a memory write that lies in `region`; bytes that are not enabled keep their value. */
  write(tlp: Tlp, region: MemoryRegion): void {
    const { payload, payloadOffset, lengthDw } = tlp;
    const memory = region.bytes;
    const at = tlpAddress(tlp) - region.base;
    if (lengthDw === 1) {
      writeEnabled(memory, at, payload, payloadOffset, tlp.firstBe);
      return;
    }
    if ((tlp.firstBe & tlp.lastBe) === 0xf) {
      copyBytes(memory, at, payload, payloadOffset, 4 * lengthDw);
      return;
    }
    const last = 4 * lengthDw - 4;
    writeEnabled(memory, at, payload, payloadOffset, tlp.firstBe);
    if (last > 4) copyBytes(memory, at + 4, payload, payloadOffset + 4, last - 4);
    writeEnabled(memory, at + last, payload, payloadOffset + last, tlp.lastBe);
  }

  /** Does `count` writes that are a run and lie in `region`, their payloads `stride` bytes apart. */
  writeRun(first: Tlp, region: MemoryRegion, stride: number, count: number): void {
    copyRunPayload(first, count, stride, region.bytes, tlpAddress(first) - region.base);
  }

  /**
   * Answers a memory read that lies in `region`, from byte number `answered` on, with completions of
   * at most `maxPayloadBytes`, as long as the link takes them. Returns how many bytes have been
   * answered now; all of them once that is `requestByteCount(tlp)`. The payload is encoded straight
   * from the registered memory.
   */
  read(
    now: Nanos,
    link: LinkPort,
    asked: ArrivedTlp,
    tlp: Tlp,
    region: MemoryRegion,
    maxPayloadBytes: number,
    answered: number,
    counters: SlotCounters,
  ): number {
    const byteCount = requestByteCount(tlp);
    const first = firstByteAddress(tlp);
    const out = this.#scratch.borrow();
    while (answered < byteCount) {
      const remaining = byteCount - answered;
      const address = first + answered;
      const chunk = completionChunk(address, remaining, maxPayloadBytes, this.#rcbBytes);
      const skipped = address & 3;
      const payloadBytes = (skipped + chunk + 3) & ~3;
      const at = address - skipped - region.base;
      if (!link.canSend(FlowClass.COMPLETION, payloadBytes)) break;
      completeWithData(out, tlp, this.#completerBdf, address, remaining, chunk, region.bytes, at);
      const run = runOfCompletions(address, remaining, maxPayloadBytes, this.#rcbBytes);
      const sent = run > 1 ? link.sendRun(now, asked.slot, asked.generation, out, run) : 0;
      if (sent > 0) {
        answered += sent * chunk;
        counters.countDown(out, sent);
        continue;
      }
      answered += chunk;
      counters.countDown(out);
      link.sendTlp(now, asked.slot, asked.generation, out);
    }
    this.#scratch.giveBack(out);
    return answered;
  }

  /** Does an atomic operation in `region` and answers it with what was there. Only after `canSend`. */
  atomic(
    now: Nanos,
    link: LinkPort,
    asked: ArrivedTlp,
    tlp: Tlp,
    region: MemoryRegion,
    counters: SlotCounters,
  ): void {
    const size = operandBytes(tlp);
    const at = tlpAddress(tlp) - region.base;
    const memory = region.bytes;
    for (let byte = 0; byte < size; byte++) this.#operand[byte] = memory[at + byte] as number;
    operate(tlp, memory, at, size);
    const out = this.#scratch.borrow();
    completeWithData(out, tlp, this.#completerBdf, 0, size, size, this.#operand, 0);
    counters.countDown(out);
    link.sendTlp(now, asked.slot, asked.generation, out);
    this.#scratch.giveBack(out);
  }

  /** Ends a request with an error for what has not been answered yet. Only after `canSend`. */
  error(
    now: Nanos,
    link: LinkPort,
    asked: ArrivedTlp,
    tlp: Tlp,
    status: CompletionStatus,
    answered: number,
    counters: SlotCounters,
  ): void {
    const out = this.#scratch.borrow();
    setErrorCompletion(out, tlp, this.#completerBdf, status, answered);
    counters.countDown(out);
    link.sendTlp(now, asked.slot, asked.generation, out);
    this.#scratch.giveBack(out);
  }
}

/** Makes `out` the completion without data that ends `request` after `answered` bytes of it. */
export function setErrorCompletion(
  out: Tlp,
  request: Tlp,
  completerBdf: number,
  status: CompletionStatus,
  answered: number,
): void {
  const byteCount = requestByteCount(request) - answered;
  const isRead = request.kind === TlpKind.MRd32 || request.kind === TlpKind.MRd64;
  // 2.2.9: zero for everything but memory reads.
  const lowerAddress = isRead ? (firstByteAddress(request) + answered) & 127 : 0;
  setCompletion(
    out,
    request.requesterId,
    request.tag,
    request.trafficClass,
    request.attributes,
    completerBdf,
    status,
    byteCount,
    lowerAddress,
  );
}

function writeEnabled(
  memory: Uint8Array,
  at: number,
  payload: Uint8Array,
  from: number,
  byteEnables: number,
): void {
  for (let byte = 0; byte < 4; byte++) {
    if ((byteEnables & (1 << byte)) !== 0) memory[at + byte] = payload[from + byte] as number;
  }
}

function operate(tlp: Tlp, memory: Uint8Array, at: number, size: number): void {
  const { payload, payloadOffset: from } = tlp;
  switch (tlp.kind) {
    case TlpKind.FetchAdd32:
    case TlpKind.FetchAdd64: {
      let carry = 0;
      for (let byte = 0; byte < size; byte++) {
        const sum = (memory[at + byte] as number) + (payload[from + byte] as number) + carry;
        memory[at + byte] = sum & 0xff;
        carry = sum >>> 8;
      }
      return;
    }
    case TlpKind.CAS32:
    case TlpKind.CAS64:
      // The first operand is compared, the second swapped in.
      for (let byte = 0; byte < size; byte++) {
        if (memory[at + byte] !== payload[from + byte]) return;
      }
      for (let byte = 0; byte < size; byte++) {
        memory[at + byte] = payload[from + size + byte] as number;
      }
      return;
    default:
      for (let byte = 0; byte < size; byte++) {
        memory[at + byte] = payload[from + byte] as number;
      }
  }
}
