/**
 * A device model as a vfio-user server serves it, without a fabric: `ServedModel` is the root port above
 * the model. Accesses of regions become TLPs to it, its memory requests become transfers of the client's
 * memory, its MSI writes and INTx messages the client's interrupts.
 *
 * The client's BAR registers are shadowed here: a client may write them or leave them alone, accesses go
 * by region and offset. The model's own are set once, side by side. What the model sends within a call
 * is answered at the end of that call, in order.
 */
import { type Clock, TimerDriver, type Timed } from '#base/clock';
import type { Nanos } from '#base/units';
import type { DeviceModel } from '#devices/device-model';
import { CONFIG_SPACE_BYTES, findCapability, INTERRUPT_LINE } from '#pcie/config-space';
import type { DevicePort } from '#pcie/device';
import { enabledRuns } from '#pcie/enabled-runs';
import { MESSAGE_ASSERT_INTA, MESSAGE_DEASSERT_INTA } from '#pcie/intx';
import { MSI_CAPABILITY_ID, MSI_MESSAGE_ADDRESS, MSI_MESSAGE_DATA } from '#pcie/msi';
import { DEVICE_CONTROL, PCIE_CAPABILITY_ID } from '#pcie/pcie-capability';
import { FlowClass, hasSafeAddress, type Tlp, TlpKind, tlpAddress } from '#pcie/tlp';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { Errno, type Refusal } from '#vfio-user/refusal';
import type {
  DeviceClient,
  DeviceSpec,
  RegionRead,
  RegionWriteAccess,
  ResetAccess,
  ServedDevice,
} from '#vfio-user/served-device';
import { registerWrites } from './config-span.ts';
import { functionSpec } from './function-spec.ts';
import { ModelBars } from './model-bars.ts';
import { ModelReads } from './model-reads.ts';
import { ModelRequests } from './model-requests.ts';

/** Writes of the model that the client has not taken yet: above it the model waits. */
const MAX_WRITE_BYTES = 2 ** 20;

export interface ServedModelOptions {
  readonly model: DeviceModel;
  readonly clock: Clock;
}

export class ServedModel implements ServedDevice, DevicePort, Timed {
  readonly spec: DeviceSpec;
  readonly #model: DeviceModel;
  readonly #bars: ModelBars;
  readonly #requests: ModelRequests;
  readonly #reads: ModelReads;
  readonly #timer: TimerDriver;
  readonly #msi: number;
  readonly #pcie: number;
  #client: DeviceClient | undefined;
  #writing = 0;
  #wasFull = false;
  #depth = 0;
  /** Of the model's life between two resets: what was begun in another reaches it no more. */
  #epoch = 0;

  constructor({ model, clock }: ServedModelOptions) {
    this.#model = model;
    this.#bars = new ModelBars(model.bars);
    this.#requests = new ModelRequests((now, tlp) => model.receive(now, tlp));
    this.#reads = new ModelReads();
    this.#timer = new TimerDriver(clock, this);
    const readConfig = (register: number): number => model.readConfig(register);
    this.#msi = findCapability(readConfig, MSI_CAPABILITY_ID);
    this.#pcie = findCapability(readConfig, PCIE_CAPABILITY_ID);
    const config = new Uint8Array(256);
    const view = new DataView(config.buffer);
    for (let at = 0; at < config.length; at += 4) view.setUint32(at, readConfig(at), true);
    this.spec = functionSpec({
      bars: model.bars,
      configBytes: CONFIG_SPACE_BYTES,
      config,
      hasPin: ((readConfig(INTERRUPT_LINE) >>> 8) & 0xff) !== 0,
      msiVectors: this.#msiVectors(),
    });
    model.plug(this);
    this.#restart(clock.now());
  }

  attached(_now: Nanos, client: DeviceClient): void {
    this.#client = client;
  }

  /** The next client may be another's: it finds nothing of this one. */
  detached(now: Nanos): void {
    this.#client = undefined;
    this.#restart(now);
    this.#model.scrub(now);
  }

  reset(now: Nanos, access: ResetAccess): void {
    this.#client?.setIntx(false);
    this.#restart(now);
    // Of a box slot it is all that stands between two users.
    this.#model.scrub(now);
    access.done(now);
  }

  read(now: Nanos, access: RegionRead): void {
    const { region, offset, count } = access;
    const bytes = new Uint8Array(count);
    const done = (then: Nanos): void => access.complete(then, bytes);
    const began = this.#within(now, () => {
      if (region !== REGION_CONFIG) {
        return this.#requests.readMemory(now, this.#bars.addressOf(region) + offset, bytes, done);
      }
      return this.#requests.readConfig(now, offset, bytes, (then) => {
        this.#bars.show(offset, bytes);
        done(then);
      });
    });
    if (!began) access.fail(now, Errno.EBUSY);
  }

  write(now: Nanos, access: RegionWriteAccess): void {
    const { region, offset, bytes } = access;
    const began = this.#within(now, () => {
      if (region === REGION_CONFIG) {
        const writes = registerWrites(offset, bytes, access.count);
        const others = writes.filter((one) => !this.#bars.take(one));
        return this.#requests.writeConfig(now, others, (then) => access.done(then));
      }
      const data = bytes.subarray(0, access.count);
      this.#requests.writeMemory(now, this.#bars.addressOf(region) + offset, data);
      // Posted, as on a bus.
      access.done(now);
      return true;
    });
    if (!began) access.fail(now, Errno.EBUSY);
  }

  canSend(flow: FlowClass, payloadBytes: number): boolean {
    if (flow !== FlowClass.POSTED || this.#writing === 0) return true;
    const fits = this.#writing + payloadBytes <= MAX_WRITE_BYTES;
    if (!fits) this.#wasFull = true;
    return fits;
  }

  send(now: Nanos, tlp: Tlp): void {
    switch (tlp.kind) {
      case TlpKind.Cpl:
      case TlpKind.CplD:
        this.#requests.completion(now, tlp);
        break;
      case TlpKind.MWr32:
      case TlpKind.MWr64:
        this.#write(now, tlp);
        break;
      case TlpKind.MRd32:
      case TlpKind.MRd64:
        this.#read(now, tlp);
        break;
      default:
        if (tlp.messageCode === MESSAGE_ASSERT_INTA) this.#client?.setIntx(true);
        if (tlp.messageCode === MESSAGE_DEASSERT_INTA) this.#client?.setIntx(false);
    }
  }

  nextDeadlineNs(): number {
    return this.#model.nextDeadlineNs();
  }

  tick(now: Nanos): void {
    this.#within(now, () => this.#model.tick(now));
  }

  stop(): void {
    this.#timer.stop();
  }

  #msiVectors(): number {
    return this.#msi === 0 ? 0 : 1 << ((this.#model.readConfig(this.#msi) >>> 17) & 7);
  }

  #restart(now: Nanos): void {
    this.#epoch++;
    this.#writing = 0;
    this.#reads.clear();
    this.#requests.abandon(now);
    this.#within(now, () => {
      this.#model.reset(now);
      this.#bars.reset();
      this.#requests.writeConfig(now, this.#bars.placement(), () => {});
    });
  }

  /** Does something to the model, and then answers what the model has asked for meanwhile. */
  #within<T>(now: Nanos, act: () => T): T {
    this.#depth++;
    const result = act();
    if (this.#depth === 1) this.#settle(now);
    this.#depth--;
    return result;
  }

  #settle(now: Nanos): void {
    const payload = 128 << ((this.#model.readConfig(this.#pcie + DEVICE_CONTROL) >>> 5) & 7);
    const answer = (tlp: Tlp): void => this.#model.receive(now, tlp);
    for (;;) {
      if (this.#reads.answerNext(payload, answer)) continue;
      if (!this.#takesAgain()) break;
      this.#model.resume(now);
    }
    this.#timer.update();
  }

  #takesAgain(): boolean {
    if (!this.#wasFull || this.#writing > MAX_WRITE_BYTES / 2) return false;
    this.#wasFull = false;
    return true;
  }

  #read(now: Nanos, tlp: Tlp): void {
    const read = this.#reads.open(tlp);
    const { address, bytes } = read;
    const client = this.#client;
    if (client === undefined || !hasSafeAddress(tlp)) {
      this.#reads.ended(read, false);
      return;
    }
    const epoch = this.#epoch;
    const done = (then: Nanos, refused: Refusal | undefined): void => {
      if (epoch === this.#epoch) this.#within(then, () => this.#reads.ended(read, !refused));
    };
    client.dmaRead(now, { address, bytes, at: 0, count: bytes.length, done });
  }

  #write(now: Nanos, tlp: Tlp): void {
    const client = this.#client;
    if (client === undefined || !hasSafeAddress(tlp)) return;
    const vector = this.#vectorOf(tlp);
    if (vector >= 0) {
      client.trigger(IRQ_MSI, vector);
      return;
    }
    const { payload, payloadOffset, payloadBytes, lengthDw } = tlp;
    const base = tlpAddress(tlp);
    const isWhole = tlp.firstBe === 15 && (lengthDw === 1 || tlp.lastBe === 15);
    if (isWhole && isMapped(client, base, payloadBytes)) {
      const done = (): void => {};
      const whole = { address: base, bytes: payload, at: payloadOffset, count: payloadBytes, done };
      client.dmaWrite(now, whole);
      return;
    }
    const bytes = payload.slice(payloadOffset, payloadOffset + payloadBytes);
    for (const { from, to } of enabledRuns(tlp)) {
      this.#transfer(now, client, base, bytes, from, to);
    }
  }

  #transfer(
    now: Nanos,
    client: DeviceClient,
    base: number,
    bytes: Uint8Array,
    at: number,
    end: number,
  ): void {
    const count = end - at;
    const epoch = this.#epoch;
    this.#writing += count;
    const done = (then: Nanos): void => {
      if (epoch !== this.#epoch) return;
      this.#writing -= count;
      if (this.#wasFull) this.#within(then, () => {});
    };
    client.dmaWrite(now, { address: base + at, bytes, at, count, done });
  }

  /** −1 for a write that is no interrupt of the message the client has programmed. */
  #vectorOf(tlp: Tlp): number {
    if (this.#msi === 0 || tlp.lengthDw !== 1 || tlp.firstBe !== 15) return -1;
    const model = this.#model;
    const at = this.#msi + MSI_MESSAGE_ADDRESS;
    if (tlp.addressLo !== model.readConfig(at) || tlp.addressHi !== model.readConfig(at + 4)) {
      return -1;
    }
    const { payload, payloadOffset: from } = tlp;
    const data = (payload[from] as number) | ((payload[from + 1] as number) << 8);
    const vector = data - (model.readConfig(this.#msi + MSI_MESSAGE_DATA) & 0xffff);
    return vector >= 0 && vector < this.#msiVectors() ? vector : -1;
  }
}

/** Whether all of it is memory that is written within the call. */
function isMapped(client: DeviceClient, address: number, count: number): boolean {
  const region = client.memoryAt(address);
  return region?.access === 'mapped' && address + count <= region.address + region.sizeBytes;
}
