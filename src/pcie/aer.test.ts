import { describe, expect, it } from 'vitest';
import {
  AdvancedErrorReporting,
  CORRECTABLE_ERROR_MASK,
  CORRECTABLE_ERROR_STATUS,
  CorrectableError,
  ErrorReport,
  HEADER_LOG,
  UNCORRECTABLE_ERROR_MASK,
  UNCORRECTABLE_ERROR_SEVERITY,
  UNCORRECTABLE_ERROR_STATUS,
  UncorrectableError,
} from './aer.ts';
import { ConfigSpace } from './config-space.ts';

const ALL_BYTES = 15;
/** MWr64, 1 DW, requester 0100h, tag 2, first BE Fh, address 11_2233_4454h; then payload. */
const WRITE_64 = Uint8Array.from([
  0x60, 0x00, 0x00, 0x01, 0x01, 0x00, 0x02, 0x0f, 0, 0, 0, 0x11, 0x22, 0x33, 0x44, 0x54, 0xaa, 0xbb,
  0xcc, 0xdd,
]);
/** MRd32: a header of three words, and something after it. */
const READ_32 = Uint8Array.from([
  0x00, 0x00, 0x00, 0x01, 0x01, 0x00, 0x03, 0x0f, 0xe0, 0x00, 0x10, 0x00, 0xff, 0xff, 0xff, 0xff,
]);

function aer(): {
  config: ConfigSpace;
  errors: AdvancedErrorReporting;
  read: (register: number) => number;
  write: (register: number, value: number) => void;
  log: () => number[];
} {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  const errors = new AdvancedErrorReporting(config, { ecrc: true });
  const read = (register: number): number => config.read32(errors.offset + register);
  return {
    config,
    errors,
    read,
    write: (register, value) => config.write(errors.offset + register, value, ALL_BYTES),
    log: () => [0, 4, 8, 12].map((dw) => read(HEADER_LOG + dw)),
  };
}

describe('AdvancedErrorReporting', () => {
  it('logs the first error with its header as headers are drawn', () => {
    const { errors, read, log } = aer();
    expect(errors.firstError).toBe(-1);
    expect(errors.logUncorrectable(UncorrectableError.UNSUPPORTED_REQUEST, WRITE_64)).toBe(
      ErrorReport.NON_FATAL,
    );
    expect(read(UNCORRECTABLE_ERROR_STATUS)).toBe(0x0010_0000);
    expect(errors.firstError).toBe(20);
    expect(log()).toEqual([0x6000_0001, 0x0100_020f, 0x0000_0011, 0x2233_4454]);
  });

  it('logs nothing of what follows a three-word header', () => {
    const { errors, log } = aer();
    const shifted = new Uint8Array(20);
    shifted.set(READ_32, 4);
    errors.logUncorrectable(UncorrectableError.UNSUPPORTED_REQUEST, shifted, 4);
    expect(log()).toEqual([0x0000_0001, 0x0100_030f, 0xe000_1000, 0]);
  });

  it('keeps the first header until its status is cleared, and says what it lost', () => {
    const { errors, read, write, log } = aer();
    errors.logUncorrectable(UncorrectableError.COMPLETION_TIMEOUT);
    expect(log()).toEqual([0, 0, 0, 0]);
    errors.logUncorrectable(UncorrectableError.POISONED_TLP, WRITE_64);
    expect(errors.firstError).toBe(14);
    expect(read(UNCORRECTABLE_ERROR_STATUS)).toBe((1 << 14) | (1 << 12));
    expect(read(CORRECTABLE_ERROR_STATUS)).toBe(1 << CorrectableError.HEADER_LOG_OVERFLOW);
    expect(log()).toEqual([0, 0, 0, 0]);
    write(UNCORRECTABLE_ERROR_STATUS, 1 << 14);
    expect(errors.firstError).toBe(-1);
    errors.logUncorrectable(UncorrectableError.POISONED_TLP, READ_32);
    expect(errors.firstError).toBe(12);
    expect(log()[0]).toBe(0x0000_0001);
  });

  it('shows a masked error in its status alone', () => {
    const { errors, read, write, log } = aer();
    write(UNCORRECTABLE_ERROR_MASK, 1 << UncorrectableError.ECRC);
    expect(errors.logUncorrectable(UncorrectableError.ECRC, WRITE_64)).toBe(ErrorReport.NONE);
    expect(read(UNCORRECTABLE_ERROR_STATUS)).toBe(1 << 19);
    expect(errors.firstError).toBe(-1);
    expect(log()).toEqual([0, 0, 0, 0]);
  });

  it('reports by severity', () => {
    const { errors, write } = aer();
    expect(errors.logUncorrectable(UncorrectableError.MALFORMED_TLP)).toBe(ErrorReport.FATAL);
    write(UNCORRECTABLE_ERROR_SEVERITY, 0);
    expect(errors.logUncorrectable(UncorrectableError.MALFORMED_TLP)).toBe(ErrorReport.NON_FATAL);
  });

  it('records an advisory error as correctable, and in full only when that is unmasked', () => {
    const { errors, read, write, log } = aer();
    const report = (): ErrorReport =>
      errors.logAdvisory(UncorrectableError.UNSUPPORTED_REQUEST, READ_32);
    expect(report()).toBe(ErrorReport.NONE);
    expect([read(CORRECTABLE_ERROR_STATUS), read(UNCORRECTABLE_ERROR_STATUS)]).toEqual([0x2000, 0]);
    write(CORRECTABLE_ERROR_MASK, 0);
    expect(report()).toBe(ErrorReport.CORRECTABLE);
    expect(read(UNCORRECTABLE_ERROR_STATUS)).toBe(1 << 20);
    expect(log()[2]).toBe(0xe000_1000);
    write(UNCORRECTABLE_ERROR_SEVERITY, 1 << 20);
    expect(report()).toBe(ErrorReport.FATAL);
  });

  it('enables ECRC as software says', () => {
    const { config, errors } = aer();
    expect([errors.ecrcGenerationEnabled, errors.ecrcCheckEnabled]).toEqual([false, false]);
    config.write(errors.offset + 0x18, 0x40, ALL_BYTES);
    expect([errors.ecrcGenerationEnabled, errors.ecrcCheckEnabled]).toEqual([true, false]);
    config.write(errors.offset + 0x18, 0x100, ALL_BYTES);
    expect([errors.ecrcGenerationEnabled, errors.ecrcCheckEnabled]).toEqual([false, true]);
  });
});
