import { describe, expect, it } from 'vitest';
import { FLAG_FENCE, FLAG_INTERRUPT, Opcode } from '#devices/accel-command';
import * as reg from '#devices/accel-registers';
import { MESSAGE_ASSERT_INTA, MESSAGE_DEASSERT_INTA } from '#pcie/intx';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { AccelRig, DATA, FENCES, HOST_BASE, MSI_DATA } from '#testkit/accel-rig';
import { littleEndian } from '#testkit/fake-host';
import { RemoteRig, REMOTE_HOST_BASE, throughVfioUser } from '#testkit/remote-rig';
import {
  DMA_FROM_GUEST,
  DMA_TO_GUEST,
  EXAMPLE_ID,
  EXAMPLE_MEMORY_BYTES,
  ExampleDevice,
  type ExampleDeviceOptions,
  ExampleRegister,
  STATUS_DONE,
  STATUS_ERROR,
} from '#testkit/vfio-user-device';
import { IRQ_MSI } from '#vfio-user/irq-info';
import { Errno } from '#vfio-user/refusal';
import { REGION_CONFIG } from '#vfio-user/region-info';

const BAR0 = 0xe000_0000;
const BAR2 = 0x40_0000_0000;
const BAR4 = 0xe000_1000;
const MSI_ADDRESS = 0xfee0_0000;
const PIN = 0x3c;

/** The example device, ready, with BARs, memory space and bus mastering as a host sets them. */
function ready(options: ExampleDeviceOptions = {}): { rig: RemoteRig; model: ExampleDevice } {
  const model = new ExampleDevice(options);
  const rig = new RemoteRig(model);
  rig.run();
  expect(rig.reason).toBeUndefined();
  program(rig);
  return { rig, model };
}

function program({ host }: RemoteRig): void {
  host.configWrite(0x10, BAR0);
  host.configWrite(0x18, BAR2 % 2 ** 32);
  host.configWrite(0x1c, Math.floor(BAR2 / 2 ** 32));
  host.configWrite(0x20, BAR4);
  host.configWrite(0x04, 6, 3);
  host.sent.length = 0;
}

function enableMsi({ host }: RemoteRig): void {
  const msi = host.configRead(0x34) & 0xfc;
  expect(host.configRead(msi) & 0xff).toBe(5);
  host.msiAddress = MSI_ADDRESS;
  host.configWrite(msi + 4, MSI_ADDRESS);
  host.configWrite(msi + 12, 0x40, 3);
  // Four vectors, which are 2 to the 2nd, and enabled.
  host.configWrite(msi, (2 << 20) | (1 << 16), 4);
}

describe('configuration', () => {
  it('is the function’s own, with BARs of the sizes of its regions', () => {
    const { rig } = ready();
    const { host } = rig;
    expect(host.configRead(0)).toBe(0xcafe_1234);
    for (const register of [0x10, 0x18, 0x1c, 0x20, 0x24, 0x30]) {
      host.configWrite(register, 0xffff_ffff);
    }
    // 4096 bytes leave bits 31:12; 2^20 bytes of a 64-bit prefetchable BAR (type 1100b) bits 63:20.
    expect(host.configRead(0x10)).toBe(0xffff_f000);
    expect(host.configRead(0x18)).toBe(0xfff0_000c);
    expect(host.configRead(0x1c)).toBe(0xffff_ffff);
    expect(host.configRead(0x20)).toBe(0xffff_f000);
    expect(host.configRead(0x24)).toBe(0);
    // There is no ROM.
    expect(host.configRead(0x30)).toBe(0);
    expect(rig.device.bars).toMatchObject([
      { index: 0, sizeBytes: 4096, is64Bit: false, prefetchable: false },
      { index: 2, sizeBytes: EXAMPLE_MEMORY_BYTES, is64Bit: true, prefetchable: true },
      { index: 4, sizeBytes: 4096, is64Bit: false, prefetchable: false },
    ]);
    expect(rig.device.identity).toMatchObject({
      kind: 'vfio-user',
      model: '1234:cafe',
      memoryBytes: EXAMPLE_MEMORY_BYTES,
    });
  });

  it('is written byte by byte, as the byte enables say, and captures the bus number', () => {
    const { rig, model } = ready();
    rig.host.configWrite(PIN, 0x1122_3344, 0b0001);
    // Interrupt Line alone is writable; pin A stays.
    expect(rig.host.configRead(PIN)).toBe(0x0000_0144);
    expect(model.config.read32(4) & 6).toBe(6);
    rig.host.configWrite(4, 0xffff, 0b0010);
    expect(model.config.read32(4) & 0xff).toBe(6);
    expect(rig.device.bdf).toBe(rig.host.bdf);
  });

  it('answers functions that are not there, and poisoned writes, with UR', () => {
    const { rig, model } = ready();
    rig.host.bdf += 1;
    expect(rig.host.configRead(0)).toBe(0xffff_ffff);
    rig.host.bdf -= 1;
    const tlp = new Tlp();
    tlp.kind = TlpKind.CfgWr0;
    tlp.completerId = rig.host.bdf;
    tlp.register = PIN;
    tlp.firstBe = 1;
    tlp.lengthDw = 1;
    tlp.payload = littleEndian(7);
    tlp.payloadBytes = 4;
    tlp.poisoned = true;
    expect(rig.host.request(tlp).map(({ status }) => status)).toEqual([CompletionStatus.UR]);
    expect(model.config.read32(PIN)).toBe(0x0100);
  });

  it('hides MSI-X, whose table nobody here stands for', () => {
    const { rig } = ready({ msix: 'expose' });
    const found: number[] = [];
    for (let at = rig.host.configRead(0x34) & 0xfc; at !== 0; ) {
      const header = rig.host.configRead(at);
      found.push(header & 0xff);
      at = (header >>> 8) & 0xfc;
    }
    expect(found).toEqual([0x05]);
  });
});

describe('memory requests', () => {
  it('become accesses of the region of a BAR, byte by byte', () => {
    const { rig, model } = ready();
    const { host } = rig;
    expect(host.read32(BAR0 + ExampleRegister.ID)).toBe(EXAMPLE_ID);
    host.memoryWrite(BAR2 + 5, Uint8Array.of(1, 2, 3, 4, 5, 6));
    expect([...model.memory.subarray(4, 12)]).toEqual([0, 1, 2, 3, 4, 5, 6, 0]);
    const tlp = new Tlp();
    setMemoryWrite(tlp, BAR2 + 16, 8, 0x10);
    tlp.payload = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8);
    tlp.firstBe = 0b1001;
    tlp.lastBe = 0b0100;
    host.toDevice(tlp);
    expect([...model.memory.subarray(16, 24)]).toEqual([1, 0, 0, 4, 0, 0, 7, 0]);
    setMemoryRead(tlp, BAR2 + 16, 8, 0x10, 3);
    tlp.firstBe = 0b1001;
    tlp.lastBe = 0b0100;
    const [answer] = host.request(tlp);
    // From the first to the last byte asked for, 7 of them (2.3.1.1).
    expect(answer).toMatchObject({ status: CompletionStatus.SC, byteCount: 7, lowerAddress: 16 });
    expect(answer?.payload[0]).toBe(1);
    expect(answer?.payload[3]).toBe(4);
    expect(answer?.payload[6]).toBe(7);
  });

  it('are completed in parts, at the read completion boundary and as MPS allows', () => {
    const { rig, model } = ready();
    for (let at = 0; at < 512; at++) model.memory[at] = at & 0xff;
    const answers = rig.host.memoryRead(BAR2 + 100, 300);
    // MPS is 128 and so is RCB: 28 bytes to the boundary at 128, then 128, 128, and 16.
    expect(answers.map(({ byteCount, payloadBytes }) => [byteCount, payloadBytes])).toEqual([
      [300, 28],
      [272, 128],
      [144, 128],
      [16, 16],
    ]);
    const bytes = answers.flatMap((tlp) => [...tlp.payload]);
    expect(bytes).toEqual(Array.from({ length: 300 }, (_, at) => (100 + at) & 0xff));
  });

  it('outside of every BAR, or while memory space is off, are UR', () => {
    const { rig } = ready();
    expect(rig.host.memoryRead(BAR0 + 4096 * 3, 4)[0]?.status).toBe(CompletionStatus.UR);
    expect(rig.host.memoryRead(BAR0 + 4094, 4)[0]?.status).toBe(CompletionStatus.UR);
    rig.host.configWrite(4, 0, 3);
    expect(rig.host.read32(BAR0)).toBe(0xffff_ffff);
  });

  it('of no bytes are answered once what was written before has arrived', () => {
    const { rig, model } = ready();
    let writes = 0;
    const write = model.write.bind(model);
    model.write = (now, access) => {
      writes++;
      write(now, access);
    };
    rig.host.write32(BAR2, 77);
    const [flushed] = rig.host.memoryRead(BAR2, 0);
    expect(flushed).toMatchObject({ status: CompletionStatus.SC, byteCount: 1, lengthDw: 1 });
    expect(writes).toBe(1);
  });

  it('of other kinds are UR, and messages are taken', () => {
    const { rig } = ready();
    const tlp = new Tlp();
    tlp.kind = TlpKind.IORd;
    tlp.lengthDw = 1;
    tlp.firstBe = 15;
    expect(rig.host.request(tlp).map(({ status }) => status)).toEqual([CompletionStatus.UR]);
    const off = new Tlp();
    off.kind = TlpKind.Msg;
    off.messageCode = 0x19;
    rig.host.sent.length = 0;
    rig.host.toDevice(off);
    // PME_TO_Ack (table 2-26).
    expect(rig.host.sent.map(({ tlp: sent }) => sent.messageCode)).toEqual([0x1b]);
  });
});

describe('DMA', () => {
  function start(rig: RemoteRig, command: number, address: number, bytes: number): void {
    const { host } = rig;
    host.write32(BAR0 + ExampleRegister.DMA_ADDRESS, address % 2 ** 32);
    host.write32(BAR0 + ExampleRegister.DMA_ADDRESS + 4, Math.floor(address / 2 ** 32));
    host.write32(BAR0 + ExampleRegister.DMA_LENGTH, bytes);
    host.write32(BAR0 + ExampleRegister.COMMAND, command);
  }
  const status = ({ host }: RemoteRig): number => host.read32(BAR0 + ExampleRegister.STATUS);

  it('goes as requests of the function, cut at MPS, MRRS and 4 KiB', () => {
    const { rig, model } = ready();
    const { host } = rig;
    model.memory.fill(0x5a, 0, 1000);
    host.sent.length = 0;
    start(rig, DMA_TO_GUEST, REMOTE_HOST_BASE + 4000, 1000);
    const writes = host.sent.filter(({ tlp }) => tlp.kind === TlpKind.MWr64);
    // 96 bytes to the page, 904 behind it: MPS 128.
    expect(writes.map(({ tlp }) => tlp.payloadBytes)).toEqual([
      96, 128, 128, 128, 128, 128, 128, 128, 8,
    ]);
    expect(writes.every(({ tlp }) => tlp.requesterId === host.bdf)).toBe(true);
    expect(host.memory.subarray(4000, 5000).every((byte) => byte === 0x5a)).toBe(true);
    expect(host.memory[5000]).toBe(0);
    expect(status(rig)).toBe(STATUS_DONE);

    host.memory.fill(0x77, 0, 2000);
    host.sent.length = 0;
    start(rig, DMA_FROM_GUEST, REMOTE_HOST_BASE, 1500);
    const reads = host.sent.filter(({ tlp }) => tlp.kind === TlpKind.MRd64);
    // The example has no PCI Express capability: MRRS is 512, as after a reset (7.5.3.4).
    expect(reads.map(({ tlp }) => tlp.lengthDw * 4)).toEqual([512, 512, 476]);
    expect(model.memory.subarray(0, 1500).every((byte) => byte === 0x77)).toBe(true);
    expect(status(rig)).toBe(STATUS_DONE);
  });

  it('fails where the host has no memory, and harms nothing', () => {
    const { rig } = ready();
    start(rig, DMA_FROM_GUEST, 0x9000_0000, 64);
    expect(status(rig)).toBe((STATUS_ERROR | Errno.EFAULT) >>> 0);
    expect(rig.reason).toBeUndefined();
  });

  it('is refused while bus mastering is off, whatever the device thinks', () => {
    const { rig, model } = ready();
    rig.host.configWrite(4, 2, 3);
    Object.defineProperty(model.config, 'busMaster', { value: true });
    rig.host.sent.length = 0;
    start(rig, DMA_TO_GUEST, REMOTE_HOST_BASE, 64);
    expect(status(rig)).toBe((STATUS_ERROR | Errno.EPERM) >>> 0);
    expect(rig.host.sent.filter(({ tlp }) => tlp.kind === TlpKind.MWr64)).toEqual([]);
  });

  it('keeps a read’s answer and an interrupt behind the writes before them', () => {
    const { rig, model } = ready();
    const { host } = rig;
    enableMsi(rig);
    host.postedCredits = 0;
    model.memory.fill(9, 0, 256);
    host.sent.length = 0;
    start(rig, DMA_TO_GUEST, REMOTE_HOST_BASE, 256);
    expect(host.memoryRead(BAR0 + ExampleRegister.ID, 4)).toEqual([]);
    host.postedCredits = 2;
    host.resume();
    expect(host.sent.map(({ tlp }) => tlp.kind)).toEqual([
      TlpKind.MWr64,
      TlpKind.MWr64,
      TlpKind.CplD,
    ]);
    expect(host.interrupts).toEqual([]);
    host.postedCredits = 1;
    host.resume();
    expect(host.interrupts).toEqual([0x40]);
  });
});

describe('interrupts', () => {
  it('by MSI are writes of the address and data the host has programmed', () => {
    const { rig } = ready();
    enableMsi(rig);
    for (const vector of [0, 3, 1]) rig.host.write32(BAR0 + ExampleRegister.RAISE, vector);
    // The low two bits of the data are the vector's (7.7.1.5).
    expect(rig.host.interrupts).toEqual([0x40, 0x43, 0x41]);
    rig.host.configWrite(4, 2, 3);
    rig.host.write32(BAR0 + ExampleRegister.RAISE, 0);
    expect(rig.host.interrupts.length).toBe(3);
  });

  it('by MSI have somewhere to go before the function hears that it may send them', () => {
    const { rig, model } = ready();
    const write = model.write.bind(model);
    model.write = (now, access) => {
      write(now, access);
      // Message Control of the capability at 40h, in its upper half.
      if (access.region === REGION_CONFIG && access.offset === 0x42) {
        model.client?.trigger(IRQ_MSI, 0);
      }
    };
    enableMsi(rig);
    expect(rig.host.interrupts).toEqual([0x40]);
  });

  it('by INTx are messages: up when it fires, down with the next access, up while it lasts', () => {
    const { rig, model } = ready();
    const { host } = rig;
    const codes = (): number[] =>
      host.sent
        .splice(0)
        .filter(({ tlp }) => tlp.kind === TlpKind.Msg)
        .map(({ tlp }) => tlp.messageCode);
    model.client?.setIntx(true);
    rig.run();
    expect(codes()).toEqual([MESSAGE_ASSERT_INTA]);
    host.read32(BAR0);
    expect(codes()).toEqual([MESSAGE_DEASSERT_INTA, MESSAGE_ASSERT_INTA]);
    host.write32(BAR0 + ExampleRegister.INTX, 0);
    expect(codes()).toEqual([MESSAGE_DEASSERT_INTA]);
    host.read32(BAR0);
    expect(codes()).toEqual([]);
    // Interrupt Disable, bit 10 of Command.
    host.configWrite(4, 0x406, 3);
    model.client?.setIntx(true);
    rig.run();
    expect(codes()).toEqual([]);
    host.configWrite(4, 0x006, 3);
    expect(codes()).toEqual([MESSAGE_ASSERT_INTA]);
    enableMsi(rig);
    expect(codes()).toEqual([MESSAGE_DEASSERT_INTA]);
  });
});

describe('an accelerator', () => {
  it('multiplies as the built-in one does, with its interrupt behind the fence', () => {
    const direct = new AccelRig();
    const remote = new AccelRig({}, throughVfioUser);
    const results = [direct, remote].map((rig) => {
      const [m, n, k] = [5, 7, 6];
      const values = Float32Array.from({ length: m * k + k * n }, (_, i) => Math.fround(i / 7 - 3));
      rig.host.memory.set(new Uint8Array(values.buffer), DATA - HOST_BASE);
      rig.enable();
      rig.run(
        {
          opcode: Opcode.COPY_HTOD,
          operand0: DATA,
          operand1: 0,
          operand2: values.byteLength,
        },
        {
          opcode: Opcode.SGEMM,
          operand0: 0,
          operand1: 4 * m * k,
          operand2: 0x4000,
          m,
          n,
          k,
        },
        {
          opcode: Opcode.COPY_DTOH,
          operand0: 0x4000,
          operand1: DATA + 0x4000,
          operand2: 4 * m * n,
          flags: FLAG_FENCE | FLAG_INTERRUPT,
          fenceAddress: FENCES,
          fenceValue: 1,
        },
      );
      expect(rig.error()).toBe(0);
      expect(rig.fence(0)).toBe(1);
      const at = DATA + 0x4000 - HOST_BASE;
      return rig.host.memory.slice(at, at + 4 * m * n);
    });
    expect(results[1]).toEqual(results[0]);
    expect(results[0]?.some((byte) => byte !== 0)).toBe(true);
    expect(remote.host.interrupts).toEqual([MSI_DATA]);
    expect(remote.read(reg.ID)).toBe(direct.read(reg.ID));
  });
});
