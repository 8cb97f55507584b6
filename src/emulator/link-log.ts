/**
 * What passes the link in a run, for a picture of it: bursts of TLPs each way, at the device's end and at
 * the host's, and how busy the device's link is. A `DeviceTap` sees the one end, a tap of the fabric link
 * the other; neither changes anything.
 */
import type { Nanos } from '#base/units';
import { type LinkTap, TapDirection } from '#fabric/link-options';
import { TLP_FRAMING_BYTES } from '#pcie/bandwidth';
import type { Device } from '#pcie/device';
import { isLastCompletion, isMemoryRead } from '#pcie/completion';
import { DeviceTap } from '#pcie/device-tap';
import { FlowClass, flowClassOf, type Tlp, type TlpKind } from '#pcie/tlp';
import { encodedTlpBytes } from '#pcie/tlp-codec';
import { BurstTrack, TLP_SORT, type TlpSort } from './burst-track.ts';
import { LinkLoad } from './link-load.ts';

/** To the device and from it. */
interface BothWays {
  readonly down: BurstTrack;
  readonly up: BurstTrack;
}

export class LinkLog {
  atDevice: BothWays;
  atHost: BothWays;
  load = new LinkLoad();
  /** TLPs seen at the device's end. */
  tlps = 0;
  readonly #limit: number;
  readonly #bytesPerNs: number;
  #originNs = 0;

  /** `limit`: bursts of each track at most. `bytesPerNs`: of the device's link. */
  constructor(limit: number, bytesPerNs: number) {
    this.#limit = limit;
    this.#bytesPerNs = bytesPerNs;
    this.atDevice = this.#tracks();
    this.atHost = this.#tracks();
  }

  /** Forgets what was before: the run begins, nothing is under way. Times are since then. */
  begin(now: Nanos): void {
    this.#originNs = now;
    this.atDevice = this.#tracks();
    this.atHost = this.#tracks();
    this.load = new LinkLoad();
    this.tlps = 0;
  }

  /** For `SystemWatch.device`. */
  readonly device = (device: Device): Device => new LoggedDevice(device, this);

  /** For `SystemWatch.onTlp`. */
  readonly tap: LinkTap = (now, direction, _slot, bytes, offset, length) => {
    const track = direction === TapDirection.OUT ? this.atHost.down : this.atHost.up;
    const atNs = now - this.#originNs;
    track.add(atNs, atNs, sortOf((bytes[offset] ?? 0) as TlpKind), length);
  };

  sent(now: Nanos, tlp: Tlp): void {
    const atNs = now - this.#originNs;
    const bytes = encodedTlpBytes(tlp);
    const wireBytes = bytes + TLP_FRAMING_BYTES;
    this.tlps += 1;
    this.load.up(atNs, wireBytes);
    this.atDevice.up.add(atNs, atNs + wireBytes / this.#bytesPerNs, sortOf(tlp.kind), bytes);
  }

  received(now: Nanos, tlp: Tlp): void {
    const atNs = now - this.#originNs;
    const bytes = encodedTlpBytes(tlp);
    const wireBytes = bytes + TLP_FRAMING_BYTES;
    this.tlps += 1;
    this.load.down(atNs, wireBytes);
    this.atDevice.down.add(atNs - wireBytes / this.#bytesPerNs, atNs, sortOf(tlp.kind), bytes);
  }

  reads(now: Nanos, open: number): void {
    this.load.reads(now - this.#originNs, open);
  }

  #tracks(): BothWays {
    return { down: new BurstTrack(this.#limit), up: new BurstTrack(this.#limit) };
  }
}

function sortOf(kind: TlpKind): TlpSort {
  switch (flowClassOf(kind)) {
    case FlowClass.COMPLETION:
      return TLP_SORT.completion;
    case FlowClass.POSTED:
      return TLP_SORT.write;
    default:
      return isMemoryRead(kind) ? TLP_SORT.read : TLP_SORT.other;
  }
}

class LoggedDevice extends DeviceTap {
  readonly #log: LinkLog;
  #open = 0;

  constructor(device: Device, log: LinkLog) {
    super(device);
    this.#log = log;
  }

  override send(now: Nanos, tlp: Tlp): void {
    this.#log.sent(now, tlp);
    if (isMemoryRead(tlp.kind)) {
      this.#open += 1;
      this.#log.reads(now, this.#open);
    }
    super.send(now, tlp);
  }

  override receive(now: Nanos, tlp: Tlp): void {
    this.#log.received(now, tlp);
    if (flowClassOf(tlp.kind) === FlowClass.COMPLETION && isLastCompletion(tlp)) {
      this.#open -= 1;
      this.#log.reads(now, this.#open);
    }
    super.receive(now, tlp);
  }
}
