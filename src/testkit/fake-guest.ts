/**
 * A VM with its guest, as a served device sees them, in virtual time: accesses of its regions, and what
 * interrupts come of it.
 */
import type { VirtualClock } from '#base/virtual-clock';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type { DeviceClient, ServedDevice } from '#vfio-user/served-device';
import { HostRig } from './host-rig.ts';

export class FakeGuest implements DeviceClient {
  /** Vectors of MSI, oldest first. */
  readonly vectors: number[] = [];
  /** Levels of INTx, oldest first. */
  readonly levels: boolean[] = [];
  readonly #device: ServedDevice;
  readonly #clock: VirtualClock;

  /** Connected from here on. */
  constructor(device: ServedDevice, clock: VirtualClock) {
    this.#device = device;
    this.#clock = clock;
    device.attached(clock.now(), this);
  }

  /** The bytes of a read in hexadecimal, once they are there. */
  read(region: number, offset: number, count: number): string {
    const answer = this.startRead(region, offset, count);
    if (!this.#clock.runWhile(() => answer.hex === undefined)) throw new Error('no answer');
    return answer.hex ?? '';
  }

  startRead(region: number, offset: number, count: number): { hex: string | undefined } {
    const answer: { hex: string | undefined } = { hex: undefined };
    this.#device.read(this.#clock.now(), {
      region,
      offset,
      count,
      complete: (_now, bytes, at = 0) => {
        if (answer.hex !== undefined) throw new Error('answered twice');
        answer.hex = Buffer.from(bytes.slice(at, at + count)).toString('hex');
      },
      fail: refuse,
    });
    return answer;
  }

  /** Says whether it is done. The bytes are others as soon as this returns. */
  startWrite(region: number, offset: number, hex: string): { isDone: boolean } {
    const answer = { isDone: false };
    const bytes = new Uint8Array(Buffer.from(hex, 'hex'));
    this.#device.write(this.#clock.now(), {
      region,
      offset,
      count: bytes.length,
      bytes,
      done: () => {
        if (answer.isDone) throw new Error('done twice');
        answer.isDone = true;
      },
      fail: refuse,
    });
    bytes.fill(0xee);
    return answer;
  }

  configRead32(register: number): number {
    const bytes = Buffer.from(this.read(REGION_CONFIG, register, 4), 'hex');
    return bytes.readUInt32LE(0);
  }

  /** Until it is done. */
  configWrite(register: number, value: number, bytes: 1 | 2 | 4 = 4): void {
    const word = Buffer.alloc(4);
    word.writeUInt32LE(value);
    const hex = word.subarray(0, bytes).toString('hex');
    const answer = this.startWrite(REGION_CONFIG, register, hex);
    if (!this.#clock.runWhile(() => !answer.isDone)) throw new Error('never done');
  }

  /** As DEVICE_RESET; the time it took. */
  reset(): number {
    const from = this.#clock.now();
    let isDone = false;
    this.#device.reset(from, {
      done: () => {
        isDone = true;
      },
      fail: refuse,
    });
    if (!this.#clock.runWhile(() => !isDone)) throw new Error('never done');
    return this.#clock.now() - from;
  }

  trigger(index: number, vector: number): void {
    if (index !== IRQ_MSI) throw new Error(`an interrupt of type ${index}`);
    this.vectors.push(vector);
  }

  setIntx(asserted: boolean): void {
    this.levels.push(asserted);
  }

  dmaRead(): void {
    throw new Error('its memory is registered');
  }

  dmaWrite(): void {
    throw new Error('its memory is registered');
  }

  memoryAt(): undefined {
    return undefined;
  }

  disconnect(): void {
    this.#device.detached(this.#clock.now(), 'the VM has ended');
  }
}

function refuse(_now: number, errno: number): void {
  throw new Error(`failed with ${errno}`);
}

/** A `HostRig` whose own software leaves functions alone. */
export function rigWithoutSoftware(slots = 1): HostRig {
  const rig = new HostRig({ slots, maxPayloadBytes: 256 });
  rig.hotPlug.slotChanged = (): void => {};
  return rig;
}
