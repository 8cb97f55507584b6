/** PCI power management capability, version 3, with D0 and D3hot (PCIe 5.0 base, 7.5.2). */
import type { ConfigSpace } from './config-space.ts';

export const PM_CAPABILITY_ID = 0x01;
export const PM_CAPABILITY_BYTES = 8;

/** Power Management Control/Status. */
export const PMCSR = 0x04;
export const PMCSR_POWER_STATE = 3;
export const PMCSR_NO_SOFT_RESET = 1 << 3;

export const PowerState = { D0: 0, D3_HOT: 3 } as const;
export type PowerState = (typeof PowerState)[keyof typeof PowerState];

const PMC_VERSION_3 = 3;

export interface PowerManagementOptions {
  /** Whether D3hot → D0 keeps the function's state. Without it that step resets the function. */
  readonly noSoftReset: boolean;
  /**
   * Called after the step from D3hot to D0 has reset the configuration space, for the rest of the
   * function to be reset too. Only without `noSoftReset`.
   */
  readonly onSoftReset?: () => void;
}

export class PowerManagement {
  readonly offset: number;
  readonly #config: ConfigSpace;

  constructor(config: ConfigSpace, options: PowerManagementOptions) {
    this.#config = config;
    this.offset = config.addCapability(PM_CAPABILITY_ID, PM_CAPABILITY_BYTES, PMC_VERSION_3);
    const control = this.offset + PMCSR;
    config.define(control, options.noSoftReset ? PMCSR_NO_SOFT_RESET : 0, PMCSR_POWER_STATE);
    config.watch(control, (before, after) => {
      const from = before & PMCSR_POWER_STATE;
      const to = after & PMCSR_POWER_STATE;
      if (to !== PowerState.D0 && to !== PowerState.D3_HOT) {
        // D1 and D2 are not supported: the write completes, the state stays (7.5.2.2).
        config.set32(control, before);
      } else if (from === PowerState.D3_HOT && to === PowerState.D0 && !options.noSoftReset) {
        // The write that did this has just told the function its number: that survives.
        const bdf = config.bdf;
        config.reset();
        config.captureBdf(bdf);
        options.onSoftReset?.();
      }
    });
  }

  /** In D3hot a function answers config requests alone, and sends no request (5.3.1.4). */
  get powerState(): PowerState {
    return (this.#config.read32(this.offset + PMCSR) & PMCSR_POWER_STATE) as PowerState;
  }
}
