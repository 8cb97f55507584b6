import { expect, it } from 'vitest';
import { COMMAND, ConfigSpace } from './config-space.ts';
import { PMCSR, PowerManagement, PowerState } from './pm.ts';

const ALL_BYTES = 15;

function powered(noSoftReset: boolean): {
  config: ConfigSpace;
  pm: PowerManagement;
  resets: () => number;
} {
  const config = new ConfigSpace({ vendorId: 1, deviceId: 1, revisionId: 0, classCode: 0 });
  let resets = 0;
  const pm = new PowerManagement(config, { noSoftReset, onSoftReset: () => resets++ });
  config.captureBdf(0x100);
  config.write(COMMAND, 6, ALL_BYTES);
  return { config, pm, resets: () => resets };
}

it('keeps its state over D3hot with No_Soft_Reset', () => {
  const { config, pm, resets } = powered(true);
  config.write(pm.offset + PMCSR, 3, ALL_BYTES);
  expect(pm.powerState).toBe(PowerState.D3_HOT);
  config.write(pm.offset + PMCSR, 0, ALL_BYTES);
  expect(pm.powerState).toBe(PowerState.D0);
  expect([config.busMaster, resets()]).toEqual([true, 0]);
});

it('is reset on the way back from D3hot without it, but knows its number', () => {
  const { config, pm, resets } = powered(false);
  config.write(pm.offset + PMCSR, 3, ALL_BYTES);
  expect([config.busMaster, resets()]).toEqual([true, 0]);
  config.write(pm.offset + PMCSR, 0, ALL_BYTES);
  expect([config.busMaster, resets(), config.bdf]).toEqual([false, 1, 0x100]);
  expect(pm.powerState).toBe(PowerState.D0);
});

it('discards D1 and D2, which it does not have', () => {
  const { config, pm } = powered(true);
  for (const state of [1, 2]) {
    config.write(pm.offset + PMCSR, state, ALL_BYTES);
    expect(pm.powerState).toBe(PowerState.D0);
  }
  config.write(pm.offset + PMCSR, 3, ALL_BYTES);
  config.write(pm.offset + PMCSR, 1, ALL_BYTES);
  expect(pm.powerState).toBe(PowerState.D3_HOT);
});
