/** The device models by kind. */
import { type AcceleratorOptions, createAccelerator } from './accel.ts';
import { type BochsDisplayOptions, createBochsDisplay } from './bochs-display.ts';
import type { DeviceModel } from './device-model.ts';
import { createVirtioGpu, type VirtioGpuOptions } from './virtio-gpu.ts';

export const DEVICE_KINDS = ['accel', 'virtio-gpu', 'bochs-display'] as const;
export type DeviceKind = (typeof DEVICE_KINDS)[number];

/** What to make: a kind, and the options of that kind. */
export type ModelChoice =
  | { readonly kind: 'accel'; readonly options: AcceleratorOptions }
  | { readonly kind: 'virtio-gpu'; readonly options: VirtioGpuOptions }
  | { readonly kind: 'bochs-display'; readonly options: BochsDisplayOptions };

/** Makes a device; `log` is told what it has to say, in place of the options' own. */
export function createDeviceModel(
  choice: ModelChoice,
  log: (message: string) => void,
): DeviceModel {
  switch (choice.kind) {
    case 'accel':
      return createAccelerator({ ...choice.options, log });
    case 'virtio-gpu':
      return createVirtioGpu({ ...choice.options, log });
    case 'bochs-display':
      return createBochsDisplay({ ...choice.options, log });
  }
}
