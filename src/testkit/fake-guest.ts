/**
 * A VM with its guest, as a served device sees them, in virtual time: accesses of its regions, and what
 * interrupts come of it.
 */
import type { VirtualClock } from '#base/virtual-clock';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import type { DeviceClient, ServedDevice } from '#vfio-user/served-device';

/** Longer than any access takes. */
const PATIENCE_NS = 60e9;

export class FakeGuest implements DeviceClient {
  readonly device: ServedDevice;
  /** Vectors of MSI, oldest first. */
  readonly vectors: number[] = [];
  /** Levels of INTx, oldest first. */
  readonly levels: boolean[] = [];
  readonly #clock: VirtualClock;

  /** Connected from here on. */
  constructor(device: ServedDevice, clock: VirtualClock) {
    this.device = device;
    this.#clock = clock;
    device.attached(clock.now(), this);
  }

  /** The bytes of a read in hexadecimal, once they are there. */
  read(region: number, offset: number, count: number): string {
    const answer = this.startRead(region, offset, count);
    this.#wait(() => answer.hex !== undefined);
    return answer.hex ?? '';
  }

  startRead(region: number, offset: number, count: number): { hex: string | undefined } {
    const answer: { hex: string | undefined } = { hex: undefined };
    this.device.read(this.#clock.now(), {
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

  /** Writes bytes given in hexadecimal, until it is done. */
  write(region: number, offset: number, hex: string): void {
    const answer = this.startWrite(region, offset, hex);
    this.#wait(() => answer.isDone);
  }

  /** Says whether it is done. The bytes are others as soon as this returns. */
  startWrite(region: number, offset: number, hex: string): { isDone: boolean } {
    const answer = { isDone: false };
    const bytes = new Uint8Array(Buffer.from(hex, 'hex'));
    this.device.write(this.#clock.now(), {
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

  /** Until it is done. */
  configWrite(register: number, value: number, bytes: 1 | 2 | 4 = 4): void {
    const word = Buffer.alloc(4);
    word.writeUInt32LE(value);
    this.write(REGION_CONFIG, register, word.subarray(0, bytes).toString('hex'));
  }

  /** As DEVICE_RESET; the time it took. */
  reset(): number {
    const from = this.#clock.now();
    let isDone = false;
    this.device.reset(from, {
      done: () => {
        isDone = true;
      },
      fail: refuse,
    });
    this.#wait(() => isDone);
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
    this.device.detached(this.#clock.now(), 'the VM has ended');
  }

  #wait(isDone: () => boolean): void {
    const untilNs = this.#clock.now() + PATIENCE_NS;
    if (!this.#clock.runWhile(() => !isDone(), untilNs)) throw new Error('no answer');
  }
}

function refuse(_now: number, errno: number): void {
  throw new Error(`failed with ${errno}`);
}
