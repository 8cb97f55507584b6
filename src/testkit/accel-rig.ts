/** An accelerator plugged into a `FakeHost`, enumerated by hand, with its rings set up. */
import type { Nanos } from '#base/units';
import { createAccelerator, type AcceleratorOptions } from '#devices/accel';
import { AccelCommand, COMMAND_BYTES, encodeCommand } from '#devices/accel-command';
import * as reg from '#devices/accel-registers';
import type { DeviceModel } from '#devices/device-model';
import { findCapability } from '#pcie/config-space';
import type { Device } from '#pcie/device';
import { FakeHost } from './fake-host.ts';

export const BAR0 = 0xe000_0000;
export const BAR2 = 0x40_0000_0000;
export const HOST_BASE = 0x1_0000_0000;
export const HOST_BYTES = 4 << 20;
/** Rings of 16 entries, one a channel, from HOST_BASE on; fences behind them. */
export const RING_ENTRIES = 16;
export const FENCES = HOST_BASE + 0x8000;
/** From here on host memory is the test's. */
export const DATA = HOST_BASE + 0x1_0000;
export const MSI_ADDRESS = 0xfee0_0000;
export const MSI_DATA = 0x31;
const MSI_CAPABILITY = 0x05;

export class AccelRig {
  readonly device: Device;
  readonly host = new FakeHost(HOST_BASE, HOST_BYTES);
  readonly view = new DataView(this.host.memory.buffer);
  readonly log: string[] = [];
  readonly #tails = new Array<number>(reg.MAX_CHANNELS).fill(0);

  /** `behind` puts something between the accelerator and the host. */
  constructor(
    options: Partial<AcceleratorOptions> = {},
    behind: (model: DeviceModel) => Device = (model) => model,
  ) {
    this.device = behind(
      createAccelerator({
        uuid: '00112233-4455-6677-8899-aabbccddeeff',
        memoryBytes: 1 << 20,
        log: (message) => this.log.push(message),
        ...options,
      }),
    );
    this.host.msiAddress = MSI_ADDRESS;
    this.host.plug(this.device);
    this.configure();
  }

  /** BARs, MSI, memory space and bus mastering. */
  configure(): void {
    const { host } = this;
    host.configWrite(0x10, BAR0);
    host.configWrite(0x18, BAR2 % 2 ** 32);
    host.configWrite(0x1c, Math.floor(BAR2 / 2 ** 32));
    const msi = this.findCapability(MSI_CAPABILITY);
    host.configWrite(msi + 4, MSI_ADDRESS);
    host.configWrite(msi + 12, MSI_DATA, 3);
    host.configWrite(msi, 1 << 16, 4);
    host.configWrite(0x04, 6, 3);
    host.sent.length = 0;
  }

  findCapability(id: number): number {
    return findCapability((register) => this.host.configRead(register), id);
  }

  read(register: number): number {
    return this.host.read32(BAR0 + register);
  }

  write(register: number, value: number): void {
    this.host.write32(BAR0 + register, value);
  }

  channel(channel: number, register: number): number {
    return this.read(reg.CHANNEL_BASE + channel * reg.CHANNEL_STRIDE + register);
  }

  writeChannel(channel: number, register: number, value: number): void {
    this.write(reg.CHANNEL_BASE + channel * reg.CHANNEL_STRIDE + register, value);
  }

  enable(channel = 0, entries = RING_ENTRIES): void {
    const base = this.ringOf(channel);
    this.writeChannel(channel, reg.RING_BASE_LO, base % 2 ** 32);
    this.writeChannel(channel, reg.RING_BASE_HI, Math.floor(base / 2 ** 32));
    this.writeChannel(channel, reg.RING_ENTRIES, entries);
    this.writeChannel(channel, reg.CHANNEL_CONTROL, 3);
    this.#tails[channel] = 0;
  }

  ringOf(channel: number): number {
    return HOST_BASE + channel * 0x1000;
  }

  /** Writes commands to the channel's ring of 16; `ring` makes the doorbell known. */
  push(channel: number, ...commands: Partial<AccelCommand>[]): void {
    for (const fields of commands) {
      const command = Object.assign(new AccelCommand(), fields);
      const tail = this.#tails[channel] as number;
      const at = this.ringOf(channel) - HOST_BASE + tail * COMMAND_BYTES;
      encodeCommand(command, this.view, at);
      this.#tails[channel] = (tail + 1) % RING_ENTRIES;
    }
  }

  ring(channel: number): void {
    this.write(reg.DOORBELL_BASE + channel * reg.DOORBELL_STRIDE, this.#tails[channel] as number);
  }

  run(...commands: Partial<AccelCommand>[]): void {
    this.push(0, ...commands);
    this.ring(0);
  }

  error(channel = 0): number {
    return this.channel(channel, reg.ERROR_CODE);
  }

  fence(index: number): number {
    return Number(this.view.getBigUint64(FENCES - HOST_BASE + 8 * index, true));
  }

  /** Lets virtual time pass up to `untilNs`, waking the device as it asks. */
  passTime(untilNs: number): void {
    while (this.device.nextDeadlineNs() <= untilNs) {
      this.host.now = this.device.nextDeadlineNs() as Nanos;
      this.device.tick(this.host.now);
    }
    this.host.now = untilNs as Nanos;
  }
}
