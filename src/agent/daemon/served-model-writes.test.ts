/** What a served model has written and its client has not taken yet is bounded: the model waits. */
import { afterEach, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { AccelCommand, encodeCommand, FLAG_FENCE, Opcode } from '#devices/accel-command';
import * as reg from '#devices/accel-registers';
import { createDeviceModel } from '#devices/device-models';
import { copyBytes } from '#base/copy-bytes';
import type { DmaRegion } from '#vfio-user/dma-map';
import type { DmaTransfer } from '#vfio-user/dma-transfer';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { ServedModel } from './served-model.ts';

const MIB = 2 ** 20;
/** The bound, and what is copied: four times as much. */
const MAX_WRITE_BYTES = MIB;
const COPY_BYTES = 4 * MIB;
/** A multiple of 64 bytes, but of no larger power of two. */
const TARGET = 0x10_0040;
const NOW = 0 as Nanos;

const clock = new VirtualClock();
const served = new ServedModel({
  model: createDeviceModel(
    {
      kind: 'accel',
      options: { uuid: '00112233-4455-6677-8899-aabbccddeeff', memoryBytes: COPY_BYTES },
    },
    () => {},
  ),
  clock,
});

afterEach(() => served.stop());

/** A guest whose memory is reached by messages: writes are taken when it likes. */
class HoldingClient {
  readonly memory = new Uint8Array(TARGET + COPY_BYTES + 4096);
  readonly held: (() => void)[] = [];
  waiting = 0;
  most = 0;

  dmaRead(now: Nanos, { address, bytes, at, count, done }: DmaTransfer): void {
    copyBytes(bytes, at, this.memory, address, count);
    done(now, undefined);
  }

  dmaWrite(now: Nanos, { address, bytes, at, count, done }: DmaTransfer): void {
    this.waiting += count;
    this.most = Math.max(this.most, this.waiting);
    this.held.push(() => {
      this.waiting -= count;
      copyBytes(this.memory, address, bytes, at, count);
      done(now, undefined);
    });
  }

  memoryAt(): DmaRegion | undefined {
    return undefined;
  }

  trigger(): void {}
  setIntx(): void {}
  disconnect(): void {}
}

function write(region: number, offset: number, bytes: Uint8Array): void {
  const access = { region, offset, count: bytes.length, bytes, done: () => {}, fail: () => {} };
  served.write(NOW, access);
}

const setRegister = (offset: number, value: number): void =>
  write(0, offset, new Uint8Array(Uint32Array.of(value).buffer));

it('has at most 1 MiB on its way to a client that takes nothing, and loses none of 4 MiB', () => {
  const client = new HoldingClient();
  served.attached(NOW, client);
  write(REGION_CONFIG, 4, Uint8Array.of(6, 0));
  const pattern = Uint8Array.from({ length: COPY_BYTES }, (_, at) => (at * 31 + (at >> 12)) & 0xff);
  write(2, 0, pattern);
  const command = Object.assign(new AccelCommand(), {
    opcode: Opcode.COPY_DTOH,
    operand0: 0,
    operand1: TARGET,
    operand2: COPY_BYTES,
    flags: FLAG_FENCE,
    fenceAddress: 0x8000,
    fenceValue: 5,
  });
  encodeCommand(command, new DataView(client.memory.buffer), 0);
  setRegister(reg.CHANNEL_BASE + reg.RING_BASE_LO, 0);
  setRegister(reg.CHANNEL_BASE + reg.RING_ENTRIES, 16);
  setRegister(reg.CHANNEL_BASE + reg.CHANNEL_CONTROL, 1);
  setRegister(reg.DOORBELL_BASE, 1);
  const settle = (): void => clock.runUntil(clock.now() + 1e6);
  settle();
  // It fills what it may, to less than one more payload of 128 bytes, and stops there.
  expect(client.waiting).toBeGreaterThan(MAX_WRITE_BYTES - 128);
  expect(client.waiting).toBeLessThanOrEqual(MAX_WRITE_BYTES);
  let took = 0;
  while (client.held.length > 0) {
    for (const take of client.held.splice(0, 64)) {
      take();
      took++;
    }
    settle();
  }
  expect(client.most).toBeLessThanOrEqual(MAX_WRITE_BYTES);
  // Payloads of 128 bytes at multiples of 128, as TARGET begins 64 behind one; and the fence.
  expect(took).toBe(COPY_BYTES / 128 + 1 + 1);
  expect(Buffer.compare(client.memory.subarray(TARGET, TARGET + COPY_BYTES), pattern)).toBe(0);
  expect(new DataView(client.memory.buffer).getBigUint64(0x8000, true)).toBe(5n);
});
