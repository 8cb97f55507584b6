import { afterEach, beforeEach, expect, it } from 'vitest';
import { RealClock } from '#base/clock';
import {
  AccelCommand,
  COMMAND_BYTES,
  encodeCommand,
  FLAG_FENCE,
  FLAG_INTERRUPT,
  Opcode,
} from '#devices/accel-command';
import * as reg from '#devices/accel-registers';
import { createDeviceModel, type ModelChoice } from '#devices/device-models';
import { socketFolder, until } from '#testkit/vfio-user-rig';
import { ArrayMemory } from '#vfio-user/client-memory';
import { VfioUserClient } from '#vfio-user/client';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { REGION_CONFIG } from '#vfio-user/region-info';
import { VfioUserServer } from '#vfio-user/server';
import { ServedModel } from './served-model.ts';

const UUID = '00112233-4455-6677-8899-aabbccddeeff';
const MIB = 2 ** 20;
/** Where the client's memory begins, for the device. */
const BASE = 0x1_0000_0000;
const RING = 0x0;
const FENCE = 0x8000;
const DATA = 0x1_0000;

let folder: ReturnType<typeof socketFolder>;
let served: ServedModel;
let server: VfioUserServer;
let client: VfioUserClient;
let guest: Uint8Array<ArrayBuffer>;

beforeEach(() => {
  folder = socketFolder();
});

afterEach(() => {
  client.close();
  server.close();
  served.stop();
  folder.remove();
});

async function connect(): Promise<void> {
  guest = new Uint8Array(MIB);
  const memory = new ArrayMemory(guest, BASE);
  client = await VfioUserClient.connect({ path: folder.path('device'), memory });
}

async function serve(choice: ModelChoice): Promise<void> {
  served = new ServedModel({ model: createDeviceModel(choice, () => {}), clock: new RealClock() });
  server = new VfioUserServer({ path: folder.path('device'), device: served });
  await connect();
}

const accelerator = (): Promise<void> =>
  serve({ kind: 'accel', options: { uuid: UUID, memoryBytes: MIB } });

function word(value: number): Uint8Array {
  return new Uint8Array(Uint32Array.of(value).buffer);
}

async function config(register: number): Promise<number> {
  const bytes = await client.readRegion(REGION_CONFIG, register, 4);
  return new DataView(bytes.buffer).getUint32(0, true);
}

const setConfig = (register: number, bytes: Uint8Array): Promise<void> =>
  client.writeRegion(REGION_CONFIG, register, bytes);

const setRegister = (register: number, value: number): Promise<void> =>
  client.writeRegion(0, register, word(value));

async function capability(id: number): Promise<number> {
  let offset = (await config(0x34)) & 0xfc;
  while (offset !== 0 && ((await config(offset)) & 0xff) !== id) {
    offset = ((await config(offset)) >>> 8) & 0xfc;
  }
  return offset;
}

it('answers sizing as hardware does, and keeps BARs that only the client uses', async () => {
  await accelerator();
  // BAR2 is 64-bit and prefetchable: type 1100b. 2^20 bytes leave bits 63:20 writable.
  await setConfig(0x18, word(0xffff_ffff));
  await setConfig(0x1c, word(0xffff_ffff));
  expect(await config(0x18)).toBe(0xfff0_000c);
  expect(await config(0x1c)).toBe(0xffff_ffff);
  await setConfig(0x04, word(2));
  // Device memory is reached although its BAR holds what sizing left there; at any offset and length.
  const bytes = Uint8Array.from({ length: 5000 }, (_, index) => (index * 7) & 0xff);
  await client.writeRegion(2, 4093, bytes);
  expect(Buffer.compare(await client.readRegion(2, 4093, 5000), bytes)).toBe(0);
  expect(await client.readRegion(2, 4090, 3)).toEqual(new Uint8Array(3));
});

it('reads all ones of a BAR while memory space is not enabled', async () => {
  await accelerator();
  expect(await client.readRegion(2, 0, 4)).toEqual(new Uint8Array(4).fill(0xff));
});

it('reads and writes parts of configuration registers', async () => {
  await accelerator();
  await setConfig(0x3c, Uint8Array.of(0xa5));
  expect(await client.readRegion(REGION_CONFIG, 0x3c, 1)).toEqual(Uint8Array.of(0xa5));
  // Vendor and device ID, bytes 0 to 3: a span across registers is the same bytes.
  const head = await client.readRegion(REGION_CONFIG, 0, 16);
  expect(await client.readRegion(REGION_CONFIG, 1, 9)).toEqual(head.slice(1, 10));
});

async function startRing(): Promise<number[]> {
  await client.mapMemory({
    address: BASE,
    sizeBytes: MIB,
    fileOffset: 0,
    readable: true,
    writable: true,
  });
  const msi = await capability(0x05);
  await setConfig(msi + 4, word(0xfee0_0000));
  await setConfig(msi + 12, Uint8Array.of(0x31, 0));
  await setConfig(msi + 2, Uint8Array.of(1, 0));
  const fired: number[] = [];
  await client.enableIrqs(IRQ_MSI, 1, (vector) => fired.push(vector));
  await setConfig(0x04, Uint8Array.of(6, 0));
  await setRegister(reg.CHANNEL_BASE + reg.RING_BASE_LO, (BASE + RING) % 2 ** 32);
  await setRegister(reg.CHANNEL_BASE + reg.RING_BASE_HI, Math.floor((BASE + RING) / 2 ** 32));
  await setRegister(reg.CHANNEL_BASE + reg.RING_ENTRIES, 16);
  await setRegister(reg.CHANNEL_BASE + reg.CHANNEL_CONTROL, 3);
  return fired;
}

async function run(...commands: Partial<AccelCommand>[]): Promise<void> {
  const view = new DataView(guest.buffer);
  commands.forEach((fields, index) => {
    encodeCommand(Object.assign(new AccelCommand(), fields), view, RING + index * COMMAND_BYTES);
  });
  await setRegister(reg.DOORBELL_BASE, commands.length);
}

it('computes an sgemm by DMA messages, bit-equal, and interrupts once behind its fence', async () => {
  await accelerator();
  const fired = await startRing();
  const [m, n, k] = [33, 17, 29];
  const a = new Float32Array(guest.buffer, DATA, m * k).map((_, at) => Math.fround(at / 7 - 60));
  const b = new Float32Array(guest.buffer, DATA, k * n).map((_, at) => Math.fround(9 / (at + 1)));
  new Float32Array(guest.buffer, DATA, m * k).set(a);
  new Float32Array(guest.buffer, DATA + 0x4000, k * n).set(b);
  const at = BASE + DATA;
  await run(
    { opcode: Opcode.COPY_HTOD, operand0: at, operand1: 0, operand2: 4 * m * k },
    { opcode: Opcode.COPY_HTOD, operand0: at + 0x4000, operand1: 0x4000, operand2: 4 * k * n },
    { opcode: Opcode.SGEMM, operand0: 0, operand1: 0x4000, operand2: 0x8000, m, n, k },
    {
      opcode: Opcode.COPY_DTOH,
      operand0: 0x8000,
      operand1: at + 0x8000,
      operand2: 4 * m * n,
      flags: FLAG_FENCE | FLAG_INTERRUPT,
      fenceAddress: BASE + FENCE,
      fenceValue: 9,
    },
  );
  await until(() => fired.length > 0, 'the interrupt');
  expect(fired).toEqual([0]);
  expect(new DataView(guest.buffer).getBigUint64(FENCE, true)).toBe(9n);
  const expected = new Float32Array(m * n);
  for (let i = 0; i < m; i++) {
    for (let j = 0; j < n; j++) {
      let sum = 0;
      for (let x = 0; x < k; x++) {
        const product = Math.fround((a[i * k + x] as number) * (b[x * n + j] as number));
        sum = Math.fround(sum + product);
      }
      expected[i * n + j] = sum;
    }
  }
  const got = new Uint8Array(guest.buffer, DATA + 0x8000, 4 * m * n);
  expect(Buffer.compare(got, new Uint8Array(expected.buffer))).toBe(0);
});

it('ends a transfer outside lent memory with an error of the channel, and serves on', async () => {
  await accelerator();
  await startRing();
  await run({ opcode: Opcode.COPY_HTOD, operand0: BASE + MIB, operand1: 0, operand2: 64 });
  const error = reg.CHANNEL_BASE + reg.ERROR_CODE;
  let code = 0;
  while (code === 0) code = (await client.readRegion(0, error, 1))[0] as number;
  expect(code).toBe(reg.AccelError.DMA_UNSUPPORTED);
  expect(await config(0)).not.toBe(0xffff_ffff);
});

it('shows the next client nothing of the one before', async () => {
  await accelerator();
  await setConfig(0x04, word(2));
  await client.writeRegion(2, 0, word(0x5ec2_e700));
  client.close();
  await until(() => server.session === undefined, 'the first client gone');
  await connect();
  expect((await config(0x04)) & 0xffff).toBe(0);
  await setConfig(0x04, word(2));
  expect(await client.readRegion(2, 0, 4)).toEqual(new Uint8Array(4));
});

it('resets as a power-on does, and wipes its memory', async () => {
  await serve({ kind: 'bochs-display', options: { uuid: UUID } });
  await setConfig(0x04, word(2));
  await setConfig(0x10, word(0xe000_0000));
  await client.writeRegion(0, 4096, Uint8Array.of(1, 2, 3, 4));
  await client.reset();
  expect((await config(0x04)) & 0xffff).toBe(0);
  // 64-bit and prefetchable, at no address.
  expect(await config(0x10)).toBe(0x0000_000c);
  await setConfig(0x04, word(2));
  expect(await client.readRegion(0, 4096, 4)).toEqual(new Uint8Array(4));
});
