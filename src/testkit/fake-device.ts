/** A device a test plays itself: keeps what it receives, sends what it is told to. */
import type { Nanos } from '#base/units';
import { completeWithData, completeWithoutData, requestByteCount } from '#pcie/completion';
import type { Device, DeviceIdentity, DevicePort } from '#pcie/device';
import { CompletionStatus, FlowClass, flowClassOf, Tlp, TlpKind } from '#pcie/tlp';
import { decoded, encoded } from './fake-link.ts';

export class FakeDevice implements Device {
  readonly identity: DeviceIdentity;
  received: Tlp[] = [];
  /** What happened to the device, in order: `reset`, `scrub`. */
  calls: string[] = [];
  /** Answers non-posted requests within the call. */
  answers = true;
  /** Called from `resume`. */
  onResume: ((now: Nanos) => void) | undefined;
  failScrub = false;
  deadlineNs = Infinity;
  ticks = 0;
  resumes = 0;
  #port: DevicePort | undefined;

  constructor(uuid = '00000000-0000-0000-0000-000000000000') {
    this.identity = { kind: 'fake', model: 'fake', memoryBytes: 0, uuid };
  }

  get port(): DevicePort {
    if (this.#port === undefined) throw new Error('not plugged');
    return this.#port;
  }

  plug(port: DevicePort): void {
    this.#port = port;
  }

  receive(now: Nanos, tlp: Tlp): void {
    const copy = decoded(encoded(tlp));
    this.received.push(copy);
    if (!this.answers || flowClassOf(copy.kind) !== FlowClass.NON_POSTED) return;
    this.port.send(now, answerTo(copy));
  }

  resume(now: Nanos): void {
    this.resumes++;
    this.onResume?.(now);
  }

  reset(): void {
    this.calls.push('reset');
  }

  scrub(): void {
    if (this.failScrub) throw new Error('memory test failed');
    this.calls.push('scrub');
  }

  nextDeadlineNs(): number {
    return this.deadlineNs;
  }

  tick(): void {
    this.ticks++;
    this.deadlineNs = Infinity;
  }

  take(): Tlp[] {
    const { received } = this;
    this.received = [];
    return received;
  }
}

const ZEROS = new Uint8Array(4096);

/** The one completion of a request whose read data is all zero; writes end with SC. */
export function answerTo(request: Tlp, completerId = 0x0300): Tlp {
  const out = new Tlp();
  const { kind } = request;
  if (kind === TlpKind.CfgWr0 || kind === TlpKind.CfgWr1 || kind === TlpKind.IOWr) {
    completeWithoutData(out, request, completerId, CompletionStatus.SC);
    return out;
  }
  const count = requestByteCount(request);
  const isRead = kind === TlpKind.MRd32 || kind === TlpKind.MRd64;
  const first = [0, 0, 1, 0, 2, 0, 1, 0, 3, 0, 1, 0, 2, 0, 1, 0][request.firstBe] ?? 0;
  const address = isRead ? (request.addressLo % 128) + (request.hints ? 0 : first) : 0;
  completeWithData(out, request, completerId, address, count, count, ZEROS, 0);
  return out;
}
