/**
 * The driver has its own constants, from the datasheet; so has the device. Whatever both name must
 * be the same, and the driver must name nothing the device does not have.
 */
import { describe, expect, it } from 'vitest';
import * as command from '#devices/accel-command';
import * as registers from '#devices/accel-registers';
import * as driver from '#host/accel-layout';

const device: Readonly<Record<string, unknown>> = { ...registers, ...command };
/** Named by the driver alone: what the device model has no constant for. */
const DRIVER_ONLY = ['REGISTER_BAR', 'MEMORY_BAR', 'VERSION_MAJOR', 'ERRORS', 'floatBits'];

describe('the accelerator driver and the accelerator', () => {
  const names = Object.keys(driver).filter((name) => !DRIVER_ONLY.includes(name));

  it('share enough constants for this to mean something', () => {
    expect(names.length).toBeGreaterThan(40);
  });

  it.each(names)('agree on %s', (name) => {
    expect(device).toHaveProperty(name);
    expect((driver as Readonly<Record<string, unknown>>)[name]).toEqual(device[name]);
  });

  it('agree on the error codes', () => {
    const codes = Object.entries(registers.AccelError).filter(([name]) => name !== 'NONE');
    expect(Object.entries(driver.ERRORS).map(([code, { name }]) => [name, Number(code)])).toEqual(
      codes,
    );
  });

  it('agree on the major version', () => {
    expect(driver.VERSION_MAJOR).toBe(registers.VERSION_VALUE >>> 16);
  });

  it.each([0, -0, 1, 0.1, -3.5e38, 2 ** -149, NaN])('agree on the bits of %d', (value) => {
    expect(driver.floatBits(value)).toBe(command.floatBits(value));
  });
});
