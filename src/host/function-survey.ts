/**
 * What a function is, without putting it to use: for hosts whose guests place its BARs and set it up.
 * Memory decode stays off, and every register is left as it was found.
 */
import { type BarRequest, sizeBars } from './bar-assignment.ts';
import { CAPABILITY_MSI, CAPABILITY_PCIE, walkCapabilities } from './capability-walk.ts';
import { waitUntilReady } from './enumeration.ts';
import { configRead } from './host-operations.ts';
import type { EnumerationProblem, PciCapability } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

const CLASS_REVISION = 0x08;
const HEADER_TYPE = 0x0c;
const INTERRUPT_PIN = 0x3c;
const DEVICE_CAPABILITIES = 0x04;
const FUNCTION_LEVEL_RESET = 1 << 28;
const CAPABILITY_MSIX = 0x11;
const MSI_64_BIT = 1 << 23;
const CONFIG_BYTES = 256;
const PCIE_CONFIG_BYTES = 4096;

export interface FunctionSurvey {
  readonly vendorId: number;
  readonly deviceId: number;
  readonly classCode: number;
  readonly bars: readonly BarRequest[];
  readonly capabilities: readonly PciCapability[];
  /** Configuration space: 4096 bytes with a PCI Express capability, 256 without. */
  readonly configBytes: number;
  readonly config: Uint8Array;
  readonly hasPin: boolean;
  readonly msi:
    | { readonly offset: number; readonly vectors: number; readonly dataOffset: number }
    | undefined;
  readonly hasMsix: boolean;
  /** Offset of the PCI Express capability if the function can be reset by itself (6.6.2). */
  readonly flrOffset: number | undefined;
}

export type SurveyResult =
  | { readonly ok: true; readonly survey: FunctionSurvey }
  | { readonly ok: false; readonly problem: EnumerationProblem };

/**
 * Surveys the function at `bdf`, whose memory decode is off. An ordinary "no" is a value. Throws only
 * what ends the scope it runs in.
 */
export function* surveyFunction(
  host: SoftHost,
  virtualSlot: number,
  bdf: number,
  readyTimeoutNs = 60e9,
): Task<SurveyResult> {
  const slotName = `slot ${virtualSlot}`;
  const timeoutsBefore = host.timeoutsOf(virtualSlot);
  const identity = yield* waitUntilReady(host, bdf, slotName, readyTimeoutNs);
  if (typeof identity !== 'number') return { ok: false, problem: identity };
  const headerType = ((yield* configRead(host, bdf, HEADER_TYPE)) >>> 16) & 0x7f;
  if (headerType !== 0) {
    const message = `${slotName} holds a function with header type ${headerType}, expected 0`;
    return { ok: false, problem: { kind: 'config-error', message } };
  }
  const classRevision = yield* configRead(host, bdf, CLASS_REVISION);
  const pin = ((yield* configRead(host, bdf, INTERRUPT_PIN)) >>> 8) & 0xff;
  const capabilities = yield* walkCapabilities(host, bdf);
  const bars = yield* sizeBars(host, bdf);
  if (!Array.isArray(bars)) return { ok: false, problem: bars };
  const at = (id: number): PciCapability | undefined =>
    capabilities.find((one) => !one.extended && one.id === id);
  const pcie = at(CAPABILITY_PCIE);
  const msi = at(CAPABILITY_MSI);
  const config = new Uint8Array(CONFIG_BYTES);
  const view = new DataView(config.buffer);
  for (let register = 0; register < CONFIG_BYTES; register += 4) {
    view.setUint32(register, yield* configRead(host, bdf, register), true);
  }
  if (host.timeoutsOf(virtualSlot) !== timeoutsBefore) {
    const message = `${slotName}: config accesses were not answered in time`;
    return { ok: false, problem: { kind: 'no-answer', message } };
  }
  const msiHeader = msi === undefined ? 0 : view.getUint32(msi.offset, true);
  const capable = pcie === undefined ? 0 : view.getUint32(pcie.offset + DEVICE_CAPABILITIES, true);
  return {
    ok: true,
    survey: {
      vendorId: identity & 0xffff,
      deviceId: identity >>> 16,
      classCode: classRevision >>> 8,
      bars,
      capabilities,
      configBytes: pcie === undefined ? CONFIG_BYTES : PCIE_CONFIG_BYTES,
      config,
      hasPin: pin === 1,
      msi:
        msi === undefined
          ? undefined
          : {
              offset: msi.offset,
              // Values 6 and 7 of Multiple Message Capable are reserved.
              vectors: 1 << Math.min(5, (msiHeader >>> 17) & 7),
              dataOffset: msi.offset + ((msiHeader & MSI_64_BIT) === 0 ? 8 : 12),
            },
      hasMsix: at(CAPABILITY_MSIX) !== undefined,
      flrOffset: (capable & FUNCTION_LEVEL_RESET) === 0 ? undefined : pcie?.offset,
    },
  };
}
