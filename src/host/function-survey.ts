/**
 * What a function is, without putting it to use: for hosts whose guests place its BARs and set it up.
 * Memory decode stays off, and every register is left as it was found.
 */
import { type BarRequest, sizeBars } from './bar-assignment.ts';
import { standardCapability, walkCapabilities } from './capability-walk.ts';
import { type Failure, identifyFunction, untilAnswered } from './function-access.ts';
import {
  CAPABILITY_MSI,
  CAPABILITY_PCIE,
  DEVICE_CAPABILITIES,
  msiShape,
} from './function-registers.ts';
import { configRead } from './host-operations.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

const INTERRUPT_PIN = 0x3d;
const FUNCTION_LEVEL_RESET = 1 << 28;
const CAPABILITY_MSIX = 0x11;
const CONFIG_BYTES = 256;
const PCIE_CONFIG_BYTES = 4096;

export interface FunctionSurvey {
  readonly vendorId: number;
  readonly deviceId: number;
  readonly bars: readonly BarRequest[];
  /** Size of configuration space: 4096 bytes with a PCI Express capability, 256 without. */
  readonly configBytes: number;
  /** The first 256 bytes of configuration space. */
  readonly config: Uint8Array;
  readonly hasPin: boolean;
  readonly msi:
    | { readonly offset: number; readonly vectors: number; readonly dataOffset: number }
    | undefined;
  readonly hasMsix: boolean;
  /** Offset of the PCI Express capability if the function can be reset by itself (6.6.2). */
  readonly flrOffset: number | undefined;
}

export type SurveyResult = { readonly ok: true; readonly survey: FunctionSurvey } | Failure;

/**
 * Surveys the function at `bdf`, whose memory decode is off. An ordinary "no" is a value. Throws only
 * what ends the scope it runs in.
 */
export function surveyFunction(
  host: SoftHost,
  virtualSlot: number,
  bdf: number,
  readyTimeoutNs?: number,
): Task<SurveyResult> {
  const slotName = `slot ${virtualSlot}`;
  return untilAnswered(host, virtualSlot, () => lookAt(host, slotName, bdf, readyTimeoutNs));
}

function* lookAt(
  host: SoftHost,
  slotName: string,
  bdf: number,
  readyTimeoutNs: number | undefined,
): Task<SurveyResult> {
  const identity = yield* identifyFunction(host, bdf, slotName, readyTimeoutNs);
  if (typeof identity !== 'number') return { ok: false, problem: identity };
  const capabilities = yield* walkCapabilities(host, bdf);
  const bars = yield* sizeBars(host, bdf);
  if (!Array.isArray(bars)) return { ok: false, problem: bars };
  const config = new Uint8Array(CONFIG_BYTES);
  const view = new DataView(config.buffer);
  for (let register = 0; register < CONFIG_BYTES; register += 4) {
    view.setUint32(register, yield* configRead(host, bdf, register), true);
  }
  // One that has gone meanwhile may have been all ones from anywhere on.
  if ((yield* configRead(host, bdf, 0)) !== identity || view.getUint32(0, true) !== identity) {
    const message = `the function in ${slotName} went while it was looked at`;
    return { ok: false, problem: { kind: 'no-device', message } };
  }
  const pcie = standardCapability(capabilities, CAPABILITY_PCIE);
  const capable =
    pcie === undefined ? 0 : yield* configRead(host, bdf, pcie.offset + DEVICE_CAPABILITIES);
  return {
    ok: true,
    survey: {
      vendorId: identity & 0xffff,
      deviceId: identity >>> 16,
      bars,
      configBytes: pcie === undefined ? CONFIG_BYTES : PCIE_CONFIG_BYTES,
      config,
      hasPin: config[INTERRUPT_PIN] === 1,
      msi: msiOf(view, standardCapability(capabilities, CAPABILITY_MSI)?.offset),
      hasMsix: standardCapability(capabilities, CAPABILITY_MSIX) !== undefined,
      flrOffset: (capable & FUNCTION_LEVEL_RESET) === 0 ? undefined : pcie?.offset,
    },
  };
}

function msiOf(config: DataView, offset: number | undefined): FunctionSurvey['msi'] {
  if (offset === undefined) return undefined;
  const { vectors, dataOffset } = msiShape(config.getUint32(offset, true));
  return { offset, vectors, dataOffset: offset + dataOffset };
}
