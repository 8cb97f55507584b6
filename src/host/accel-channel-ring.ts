/**
 * One channel as a driver sees it: its registers, and its ring and fence word in host memory. What goes
 * into the ring, and when the device is told, is the business of `AccelRing` and `AccelQueues`.
 */
import { DxpuError } from '#base/errors';
import * as layout from './accel-layout.ts';
import { leaveTimeForRemoval } from './function-access.ts';
import type { HostBuffer } from './host-memory.ts';
import { mmioRead32, mmioWrite32 } from './host-operations.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

/** One command; fields not given are 0. Names as in the datasheet. */
export interface RingCommand {
  readonly opcode: layout.Opcode;
  readonly flags?: number;
  readonly durationNs?: number;
  readonly operand0?: number;
  readonly operand1?: number;
  readonly operand2?: number;
  readonly m?: number;
  readonly n?: number;
  readonly k?: number;
  readonly scalar?: number;
}

const TWO_TO_32 = 0x1_0000_0000;

export class ChannelRing {
  readonly doorbell: number;
  readonly #host: SoftHost;
  readonly #registers: number;
  readonly #entries: number;
  readonly #ring: HostBuffer;
  readonly #view: DataView;
  readonly #fence: HostBuffer;
  readonly #fenceView: DataView;

  /** Allocates ring and fence word; `registers` is where BAR0 is. */
  constructor(host: SoftHost, registers: number, channel: number, entries: number) {
    this.#host = host;
    this.#entries = entries;
    this.#registers = registers + layout.CHANNEL_BASE + channel * layout.CHANNEL_STRIDE;
    this.doorbell = registers + layout.DOORBELL_BASE + channel * layout.DOORBELL_STRIDE;
    this.#ring = host.memory.alloc(entries * layout.COMMAND_BYTES, layout.COMMAND_BYTES);
    this.#view = viewOf(this.#ring.bytes);
    this.#fence = host.memory.alloc(8);
    this.#fenceView = viewOf(this.#fence.bytes);
  }

  /** What the fence word holds. */
  get fenceValue(): number {
    return this.#fenceView.getUint32(4, true) * TWO_TO_32 + this.#fenceView.getUint32(0, true);
  }

  set fenceValue(value: number) {
    writeUint53(this.#fenceView, 0, value);
  }

  /** Programs the channel and enables it. Fails with `aborted` when the device does not want it. */
  *start(hasErrorInterrupt: boolean): Task<void> {
    const host = this.#host;
    const at = this.#registers;
    const { address } = this.#ring;
    yield* mmioWrite32(host, at + layout.RING_BASE_LO, address % TWO_TO_32);
    yield* mmioWrite32(host, at + layout.RING_BASE_HI, Math.floor(address / TWO_TO_32));
    yield* mmioWrite32(host, at + layout.RING_ENTRIES, this.#entries);
    const interrupt = hasErrorInterrupt ? layout.CONTROL_ERROR_INTERRUPT : 0;
    yield* mmioWrite32(host, at + layout.CHANNEL_CONTROL, layout.CONTROL_ENABLE | interrupt);
    const status = yield* readStatus(host, at + layout.CHANNEL_STATUS);
    if ((status & (layout.CHANNEL_ENABLED | layout.CHANNEL_HALTED)) !== layout.CHANNEL_ENABLED) {
      throw yield* this.haltReason();
    }
  }

  /** When this returns, everything the channel wrote is in host memory, and it writes no more. */
  *stop(): Task<void> {
    yield* mmioWrite32(this.#host, this.#registers + layout.CHANNEL_CONTROL, 0);
    // The answer comes behind everything the channel wrote before it stopped.
    yield* mmioRead32(this.#host, this.#registers + layout.CHANNEL_STATUS);
  }

  *isHalted(): Task<boolean> {
    const status = yield* readStatus(this.#host, this.#registers + layout.CHANNEL_STATUS);
    return (status & layout.CHANNEL_HALTED) !== 0;
  }

  /** Why the channel halted. Code `aborted`. */
  *haltReason(): Task<DxpuError> {
    const host = this.#host;
    const at = this.#registers;
    const code = yield* readStatus(host, at + layout.ERROR_CODE);
    const index = yield* mmioRead32(host, at + layout.ERROR_INDEX);
    const low = yield* mmioRead32(host, at + layout.ERROR_ADDRESS_LO);
    const high = yield* mmioRead32(host, at + layout.ERROR_ADDRESS_HI);
    const address = `0x${(high * TWO_TO_32 + low).toString(16)}`;
    const known = layout.ERRORS[code] ?? { name: `error ${code}`, text: 'not in the datasheet' };
    return new DxpuError(
      'aborted',
      `the accelerator stopped at ring entry ${index}, address ${address}: ` +
        `${known.name} (${known.text})`,
      { details: { errorCode: code, errorName: known.name, ringIndex: index, address } },
    );
  }

  /**
   * Writes a command to the ring: `place` counts on around it. `moreFlags` go with its own, and with FENCE
   * the value for the fence word.
   */
  write(place: number, command: RingCommand, moreFlags: number, fenceValue: number): void {
    const view = this.#view;
    const at = (place % this.#entries) * layout.COMMAND_BYTES;
    const hasDuration = command.durationNs !== undefined;
    const flags = (command.flags ?? 0) | moreFlags | (hasDuration ? layout.FLAG_DURATION : 0);
    view.setUint32(at + layout.COMMAND_OPCODE, command.opcode | (flags << 8), true);
    view.setUint32(at + layout.COMMAND_DURATION_NS, command.durationNs ?? 0, true);
    writeUint53(view, at + layout.COMMAND_FENCE_ADDRESS, this.#fence.address);
    writeUint53(view, at + layout.COMMAND_FENCE_VALUE, fenceValue);
    writeUint53(view, at + layout.COMMAND_OPERAND_0, command.operand0 ?? 0);
    writeUint53(view, at + layout.COMMAND_OPERAND_1, command.operand1 ?? 0);
    writeUint53(view, at + layout.COMMAND_OPERAND_2, command.operand2 ?? 0);
    view.setUint32(at + layout.COMMAND_M, command.m ?? 0, true);
    view.setUint32(at + layout.COMMAND_N, command.n ?? 0, true);
    view.setUint32(at + layout.COMMAND_K, command.k ?? 0, true);
    view.setUint32(at + layout.COMMAND_SCALAR, command.scalar ?? 0, true);
  }

  /** Gives the memory back. The channel must be stopped, or the function gone. */
  free(): void {
    this.#host.memory.free(this.#ring);
    this.#host.memory.free(this.#fence);
  }
}

/**
 * Reads a register that is never all ones. If it is, the function is gone: fails with `unavailable`, unless
 * its removal is reported meanwhile.
 */
export function* readStatus(host: SoftHost, address: number): Task<number> {
  const value = yield* mmioRead32(host, address);
  if (value !== 0xffff_ffff) return value;
  yield* leaveTimeForRemoval();
  throw new DxpuError(
    'unavailable',
    'the accelerator does not answer: its registers read all ones',
  );
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

function writeUint53(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, value % TWO_TO_32, true);
  view.setUint32(offset + 4, Math.floor(value / TWO_TO_32), true);
}
