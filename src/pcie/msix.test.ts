import { describe, expect, it } from 'vitest';
import { AssertionError } from '#base/assert';
import { ConfigSpace } from './config-space.ts';
import { MSIX_ENABLE, MSIX_FUNCTION_MASK, Msix, MsixTable } from './msix.ts';

const ALL_BYTES = 15;

function msixWith(vectors: number): { config: ConfigSpace; msix: Msix } {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  const pbaOffset = vectors * 16;
  return {
    config,
    msix: new Msix(config, { vectors, tableBar: 4, tableOffset: 0, pbaBar: 4, pbaOffset }),
  };
}

describe('MsixTable', () => {
  it('starts with every vector masked and nothing pending', () => {
    const table = new MsixTable(65);
    expect([table.tableBytes, table.pbaBytes]).toEqual([65 * 16, 16]);
    expect(table.readTable32(64 * 16 + 12)).toBe(1);
    expect(table.readTable32(64 * 16)).toBe(0);
    expect(table.readPba32(8)).toBe(0);
  });

  it('keeps what software writes, by byte enable, and its reserved bits 0', () => {
    const table = new MsixTable(2);
    table.writeTable32(16, 0xfee0_1003, ALL_BYTES);
    table.writeTable32(20, 0x1122_3344, 0b0101);
    table.writeTable32(24, 0xdead_beef, ALL_BYTES);
    table.writeTable32(28, 0xffff_fffe, ALL_BYTES);
    expect([16, 20, 24, 28].map((offset) => table.readTable32(offset))).toEqual([
      0xfee0_1000, 0x0022_0044, 0xdead_beef, 0,
    ]);
    expect([table.addressLo(1), table.addressHi(1), table.messageData(1)]).toEqual([
      0xfee0_1000, 0x0022_0044, 0xdead_beef,
    ]);
    expect([table.isMasked(0), table.isMasked(1)]).toEqual([true, false]);
    table.writeTable32(32, 0xffff_ffff, ALL_BYTES);
    expect(table.readTable32(32)).toBe(0);
    table.reset();
    expect([table.messageData(1), table.isMasked(1)]).toEqual([0, true]);
  });
});

describe('Msix', () => {
  it('sends only enabled, unmasked vectors; keeps masked ones pending', () => {
    const { config, msix } = msixWith(40);
    msix.table.writeTable32(3 * 16 + 12, 0, ALL_BYTES);
    expect(msix.raise(3)).toBe(false);
    expect(msix.table.isPending(3)).toBe(false);

    config.write(msix.offset, MSIX_ENABLE, ALL_BYTES);
    expect([msix.raise(3), msix.raise(35)]).toEqual([true, false]);
    expect(msix.table.readPba32(4)).toBe(1 << 3);
    expect(msix.takePending()).toBe(-1);
    msix.table.writeTable32(35 * 16 + 12, 0, ALL_BYTES);
    expect([msix.takePending(), msix.takePending()]).toEqual([35, -1]);
    expect(msix.table.readPba32(4)).toBe(0);
  });

  it('holds everything while the function is masked', () => {
    const { config, msix } = msixWith(2);
    msix.table.writeTable32(12, 0, ALL_BYTES);
    config.write(msix.offset, MSIX_ENABLE | MSIX_FUNCTION_MASK, ALL_BYTES);
    expect([msix.functionMasked, msix.raise(0), msix.takePending()]).toEqual([true, false, -1]);
    config.write(msix.offset, MSIX_ENABLE, ALL_BYTES);
    expect([msix.takePending(), msix.takePending()]).toEqual([0, -1]);
  });

  it('asserts on overlap and on vectors there are not', () => {
    const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
    expect(
      () => new Msix(config, { vectors: 2, tableBar: 0, tableOffset: 0, pbaBar: 0, pbaOffset: 24 }),
    ).toThrow(AssertionError);
    expect(() => msixWith(1).msix.raise(1)).toThrow(AssertionError);
    expect(() => new MsixTable(2049)).toThrow(AssertionError);
  });
});
