import { setMemoryWrite } from '#pcie/split';
import { Tlp } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { littleEndian } from '#testkit/host-proxy-world';
import { ConfigShadow } from './config-shadow.ts';

const BDF = 0x0300;

function seen(shadow: ConfigShadow, registers: Readonly<Record<number, number>>): void {
  for (const [register, value] of Object.entries(registers)) {
    shadow.readCompleted(Number(register), value);
  }
}

/** MSI at 40h with 64-bit address and four messages. */
function withMsi(): ConfigShadow {
  const shadow = new ConfigShadow();
  seen(shadow, { 0x34: 0x40, 0x40: 0x0084_0005 });
  return shadow;
}

function programMsi(shadow: ConfigShadow, address: number, data: number): void {
  shadow.write(BDF, 0x44, address, 0xf);
  shadow.writeCompleted(0x44);
  shadow.write(BDF, 0x48, 0, 0xf);
  shadow.writeCompleted(0x48);
  shadow.write(BDF, 0x4c, data, 0b0011);
  shadow.writeCompleted(0x4c);
  shadow.write(BDF, 0x40, 0x0001_0000, 0b1100);
  shadow.writeCompleted(0x40);
}

describe('command and identity', () => {
  test('bus mastering follows the byte that holds it', () => {
    const shadow = new ConfigShadow();
    expect([shadow.busMaster, shadow.capturedBdf]).toEqual([false, -1]);
    shadow.write(BDF, 0x04, 0x0004, 0b0010);
    expect([shadow.busMaster, shadow.capturedBdf]).toEqual([false, BDF]);
    shadow.write(BDF, 0x04, 0x0004, 0b0001);
    expect(shadow.busMaster).toBe(true);
    // The status half of the register is not the command.
    shadow.write(BDF, 0x04, 0, 0b1100);
    expect(shadow.busMaster).toBe(true);
  });
});

describe('MSI', () => {
  test('is what the host has programmed and enabled', () => {
    const shadow = withMsi();
    shadow.write(BDF, 0x44, 0xfee0_1000, 0xf);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0)).toBe(false);
    programMsi(shadow, 0xfee0_1000, 0x4140);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(true);
    expect(shadow.isInterrupt(1, 0xfee0_1000, 0x4140)).toBe(false);
    expect(shadow.isInterrupt(0, 0xfee0_1004, 0x4140)).toBe(false);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4141)).toBe(false);
  });

  // MME 1 allocates 2 messages, MME 3 would be 8, but the function asked for 4 (7.7.1.2).
  test.each([
    [1, 2],
    [2, 4],
    [3, 4],
  ])('multiple message enable %i: %i messages', (enable, messages) => {
    const shadow = withMsi();
    programMsi(shadow, 0xfee0_1000, 0x4140);
    shadow.write(BDF, 0x40, (1 << 16) | (enable << 20), 0b1100);
    shadow.writeCompleted(0x40);
    const vectors = [0, 1, 2, 3, 4, 5, 6, 7].filter((vector) =>
      shadow.isInterrupt(0, 0xfee0_1000, 0x4140 + vector),
    );
    expect(vectors).toEqual([0, 1, 2, 3, 4, 5, 6, 7].slice(0, messages));
  });

  test('a message on its way while the host changes it is not lost', () => {
    const shadow = withMsi();
    programMsi(shadow, 0xfee0_1000, 0x4140);
    shadow.write(BDF, 0x44, 0xfee0_2000, 0xf);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(true);
    expect(shadow.isInterrupt(0, 0xfee0_2000, 0x4140)).toBe(true);
    shadow.writeCompleted(0x44);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(false);
    shadow.write(BDF, 0x40, 0, 0b1100);
    expect(shadow.isInterrupt(0, 0xfee0_2000, 0x4140)).toBe(true);
    shadow.writeCompleted(0x40);
    expect(shadow.isInterrupt(0, 0xfee0_2000, 0x4140)).toBe(false);
  });

  test('the box cannot move the capability once the host has seen it', () => {
    const shadow = withMsi();
    programMsi(shadow, 0xfee0_1000, 0x4140);
    seen(shadow, { 0x34: 0x60, 0x60: 0x0084_0005, 0x40: 0 });
    shadow.write(BDF, 0x64, 0xfee0_9000, 0xf);
    shadow.write(BDF, 0x60, 0x0001_0000, 0b1100);
    expect(shadow.isInterrupt(0, 0xfee0_9000, 0x4140)).toBe(false);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(true);
  });

  test('is found in whatever order the host reads the list, which may be a circle', () => {
    const shadow = new ConfigShadow();
    seen(shadow, { 0x80: 0x0084_4005, 0x40: 0x8001, 0x34: 0x40 });
    expect(shadow.msi.offset).toBe(0x80);
  });

  test('a 32-bit capability has its data 8 bytes in (7.7.1)', () => {
    const shadow = new ConfigShadow();
    seen(shadow, { 0x34: 0x50, 0x50: 0x0000_0005 });
    shadow.write(BDF, 0x54, 0xfee0_1000, 0xf);
    shadow.write(BDF, 0x58, 0x4140, 0b0011);
    shadow.write(BDF, 0x50, 0x0001_0000, 0b1100);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(true);
  });
});

describe('MSI-X', () => {
  const TABLE = 0x4000_1000;

  /** Capability at 60h, 4 entries, table at BAR 2 + 1000h; BAR 2 is 64 bit. */
  function withMsix(): ConfigShadow {
    const shadow = new ConfigShadow();
    seen(shadow, { 0x18: 0x4, 0x34: 0x60, 0x60: 0x0003_0011, 0x64: 0x1002 });
    shadow.write(BDF, 0x18, 0x4000_0000, 0xf);
    shadow.write(BDF, 0x1c, 0, 0xf);
    return shadow;
  }

  function mmio(shadow: ConfigShadow, address: number, ...words: number[]): void {
    const tlp = new Tlp();
    setMemoryWrite(tlp, address, 4 * words.length, 0);
    tlp.payload = Uint8Array.from(words.flatMap((word) => [...littleEndian(word)]));
    shadow.memoryWrite(tlp);
  }

  function enable(shadow: ConfigShadow, control = 0x8000_0000): void {
    shadow.write(BDF, 0x60, control, 0b1100);
  }

  test('an entry counts once it is unmasked and MSI-X is enabled', () => {
    const shadow = withMsix();
    mmio(shadow, TABLE + 16, 0xfee0_3000, 0);
    mmio(shadow, TABLE + 24, 0x55, 1);
    enable(shadow);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
    mmio(shadow, TABLE + 28, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(true);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x54)).toBe(false);
    enable(shadow, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
  });

  test('the function mask holds back what was never unmasked', () => {
    const shadow = withMsix();
    enable(shadow, 0xc000_0000);
    mmio(shadow, TABLE, 0xfee0_3000, 0, 0x55, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
    enable(shadow);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(true);
  });

  test('a message on its way while its entry is masked is not lost; a new address ends the old', () => {
    const shadow = withMsix();
    enable(shadow);
    mmio(shadow, TABLE, 0xfee0_3000, 0, 0x55, 0);
    mmio(shadow, TABLE + 12, 1);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(true);
    mmio(shadow, TABLE, 0xfee0_4000);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
    expect(shadow.isInterrupt(0, 0xfee0_4000, 0x55)).toBe(false);
    mmio(shadow, TABLE + 12, 0);
    expect(shadow.isInterrupt(0, 0xfee0_4000, 0x55)).toBe(true);
  });

  test('writes beside the table are not entries', () => {
    const shadow = withMsix();
    enable(shadow);
    mmio(shadow, TABLE + 4 * 16, 0xfee0_3000, 0, 0x55, 0);
    mmio(shadow, TABLE - 16, 0xfee0_3000, 0, 0x55, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
  });

  test('follows the BAR', () => {
    const shadow = withMsix();
    enable(shadow);
    shadow.write(BDF, 0x1c, 0x10, 0xf);
    mmio(shadow, TABLE, 0xfee0_3000, 0, 0x55, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(false);
    mmio(shadow, 0x10_0000_0000 + TABLE, 0xfee0_3000, 0, 0x55, 0);
    expect(shadow.isInterrupt(0, 0xfee0_3000, 0x55)).toBe(true);
  });

  test('an entry outside the interrupt range is no interrupt', () => {
    const shadow = withMsix();
    enable(shadow);
    mmio(shadow, TABLE, 0x1_0000, 0, 0x55, 0);
    expect(shadow.isInterrupt(0, 0x1_0000, 0x55)).toBe(false);
  });
});

describe('device control', () => {
  function withPcie(capabilities: number): ConfigShadow {
    const shadow = withMsi();
    const other = new ConfigShadow();
    seen(other, { 0x34: 0x40, 0x40: 0x0084_8005, 0x80: 0x0002_0010, 0x84: capabilities });
    expect(shadow.maxPayloadBytes).toBe(Infinity);
    return other;
  }

  // Device Control bits 7:5: 0 is 128 bytes, 2 is 512 (7.5.3.4).
  test('sets the payload a completion may carry', () => {
    const shadow = withPcie(0);
    expect(shadow.maxPayloadBytes).toBe(128);
    shadow.write(BDF, 0x88, 2 << 5, 0b0011);
    expect(shadow.maxPayloadBytes).toBe(512);
    shadow.write(BDF, 0x88, 0xffff, 0b1100);
    expect(shadow.maxPayloadBytes).toBe(512);
  });

  test('counts what was restored before the capability was looked at', () => {
    const shadow = new ConfigShadow();
    shadow.write(BDF, 0x88, 2 << 5, 0b0011);
    expect(shadow.maxPayloadBytes).toBe(Infinity);
    seen(shadow, { 0x34: 0x40, 0x40: 0x0084_8005, 0x80: 0x0002_0010 });
    expect(shadow.maxPayloadBytes).toBe(512);
  });

  test('a function level reset takes back what software has set, but for payload size', () => {
    const shadow = withPcie(1 << 28);
    programMsi(shadow, 0xfee0_1000, 0x4140);
    shadow.write(BDF, 0x04, 0x6, 0b0011);
    shadow.write(BDF, 0x88, (1 << 15) | (2 << 5), 0b0011);
    expect(shadow.busMaster).toBe(false);
    expect(shadow.isInterrupt(0, 0xfee0_1000, 0x4140)).toBe(false);
    expect([shadow.maxPayloadBytes, shadow.capturedBdf]).toEqual([512, BDF]);
  });

  test('a function that cannot be reset so is not', () => {
    const shadow = withPcie(0);
    shadow.write(BDF, 0x04, 0x6, 0b0011);
    shadow.write(BDF, 0x88, 1 << 15, 0b0011);
    expect(shadow.busMaster).toBe(true);
  });
});
