/**
 * What host software does with a function that appears in a slot: find out what it is, place its
 * BARs in the windows of the port, set up its link parameters and MSI, and only then enable it.
 * Until the last step the function decodes no memory and sends nothing.
 */
import { placeBars, sizeBars, writeBars } from './bar-assignment.ts';
import { standardCapability, walkCapabilities } from './capability-walk.ts';
import { type Failure, identifyFunction, untilAnswered } from './function-access.ts';
import {
  CAPABILITY_MSI,
  CAPABILITY_PCIE,
  COMMAND,
  COMMAND_INTX_DISABLE,
  DEVICE_CAPABILITIES,
  DEVICE_CONTROL,
  LOWER_HALF,
  msiShape,
  UPPER_HALF,
  VENDOR_ID,
} from './function-registers.ts';
import { configRead, configWrite } from './host-operations.ts';
import { MSI_ADDRESS, msiDataOf } from './msi-vectors.ts';
import type { EnumerationProblem, PciCapability, PciFunction, PciMsi } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task, TaskScope } from './task.ts';
import type { VirtualPort } from './virtual-port.ts';

// Registers that enumeration alone touches (PCIe 5.0 base, 7.5.1, 7.5.3 and 7.7.1).
const CLASS_REVISION = 0x08;
const SUBSYSTEM = 0x2c;
const ROM_BASE = 0x30;

const COMMAND_MEMORY = 1 << 1;
const COMMAND_BUS_MASTER = 1 << 2;

const DEVICE_CAPABILITIES_2 = 0x24;
const DEVICE_CONTROL_2 = 0x28;
const EXTENDED_TAG_SUPPORTED = 1 << 5;
const TEN_BIT_REQUESTER_SUPPORTED = 1 << 17;
const CONTROL_ERROR_REPORTING = 15;
const CONTROL_RELAXED_ORDERING = 1 << 4;
const CONTROL_EXTENDED_TAG = 1 << 8;
const CONTROL_NO_SNOOP = 1 << 11;
const CONTROL_2_TEN_BIT_REQUESTER = 1 << 12;

const MSI_ENABLE = 1 << 16;
const MSI_MASKING = 1 << 24;
const MAX_VECTORS_GRANTED = 8;

export interface EnumerationOptions {
  /** How long a function may answer "retry" before it counts as broken. Default 60 s. */
  readonly readyTimeoutNs?: number;
  /** MPS and MRRS to set, if the function supports as much. */
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
}

export type EnumerationResult = { readonly ok: true; readonly fn: PciFunction } | Failure;

/**
 * Sets up the function behind `port`. An ordinary "no" is a value, and leaves the function disabled.
 * Throws only what ends the scope.
 */
export function enumerateFunction(
  host: SoftHost,
  port: VirtualPort,
  scope: TaskScope,
  options: EnumerationOptions,
): Task<EnumerationResult> {
  const { virtualSlot } = port;
  return untilAnswered(
    host,
    virtualSlot,
    () => setUpFunction(host, port, scope, options),
    function* () {
      const bdf = port.options.secondaryBus << 8;
      yield* configWrite(host, bdf, COMMAND, COMMAND_INTX_DISABLE, LOWER_HALF);
      host.resetSlotPayload(virtualSlot);
    },
  );
}

function* setUpFunction(
  host: SoftHost,
  port: VirtualPort,
  scope: TaskScope,
  options: EnumerationOptions,
): Task<EnumerationResult> {
  const bdf = port.options.secondaryBus << 8;
  const slotName = `slot ${port.virtualSlot}`;
  const identity = yield* identifyFunction(host, bdf, slotName, options.readyTimeoutNs);
  if (typeof identity !== 'number') return failure(identity);
  const classRevision = yield* configRead(host, bdf, CLASS_REVISION);
  const subsystem = yield* configRead(host, bdf, SUBSYSTEM);
  yield* configWrite(host, bdf, COMMAND, COMMAND_INTX_DISABLE, LOWER_HALF);
  yield* configWrite(host, bdf, ROM_BASE, 0);

  const capabilities = yield* walkCapabilities(host, bdf);
  const requests = yield* sizeBars(host, bdf);
  if (!Array.isArray(requests)) return failure(requests);
  const bars = placeBars(requests, port.options, slotName);
  if (!Array.isArray(bars)) return failure(bars);
  const writeProblem = yield* writeBars(host, bdf, bars);
  if (writeProblem !== undefined) return failure(writeProblem);

  const link = yield* setUpDeviceControl(host, bdf, capabilities, options);
  const msi = yield* setUpMsi(host, bdf, capabilities, port.virtualSlot);

  // A function that stopped answering reads all ones everywhere: nothing above can be believed then.
  if ((yield* configRead(host, bdf, VENDOR_ID)) !== identity) {
    return failure({ kind: 'no-device', message: `${slotName} stopped answering` });
  }
  host.setSlotPayload(port.virtualSlot, link.maxPayloadBytes);
  const enable = COMMAND_MEMORY | COMMAND_BUS_MASTER | COMMAND_INTX_DISABLE;
  yield* configWrite(host, bdf, COMMAND, enable, LOWER_HALF);
  return {
    ok: true,
    fn: {
      virtualSlot: port.virtualSlot,
      bdf,
      vendorId: identity & 0xffff,
      deviceId: identity >>> 16,
      subsystemVendorId: subsystem & 0xffff,
      subsystemId: subsystem >>> 16,
      classCode: classRevision >>> 8,
      revision: classRevision & 0xff,
      bars,
      capabilities,
      msi,
      ...link,
      scope,
    },
  };
}

function failure(problem: EnumerationProblem): Failure {
  return { ok: false, problem };
}

interface LinkSettings {
  readonly maxPayloadBytes: number;
  readonly maxReadRequestBytes: number;
}

/** Sets MPS, MRRS and tag width (7.5.3.4, 7.5.3.16). */
function* setUpDeviceControl(
  host: SoftHost,
  bdf: number,
  capabilities: readonly PciCapability[],
  options: EnumerationOptions,
): Task<LinkSettings> {
  const pcie = standardCapability(capabilities, CAPABILITY_PCIE);
  // Without the capability there is nothing to set, and 128 bytes is what any function can take.
  if (pcie === undefined) return { maxPayloadBytes: 128, maxReadRequestBytes: 128 };
  const supported = yield* configRead(host, bdf, pcie.offset + DEVICE_CAPABILITIES);
  const maxPayloadBytes = Math.min(options.maxPayloadBytes, 128 << (supported & 7));
  const maxReadRequestBytes = options.maxReadRequestBytes;
  let control =
    CONTROL_ERROR_REPORTING |
    CONTROL_RELAXED_ORDERING |
    CONTROL_NO_SNOOP |
    (Math.log2(maxPayloadBytes / 128) << 5) |
    (Math.log2(maxReadRequestBytes / 128) << 12);
  if ((supported & EXTENDED_TAG_SUPPORTED) !== 0) control |= CONTROL_EXTENDED_TAG;
  if (pcie.version >= 2) {
    const supported2 = yield* configRead(host, bdf, pcie.offset + DEVICE_CAPABILITIES_2);
    if ((supported2 & TEN_BIT_REQUESTER_SUPPORTED) !== 0) {
      const register = pcie.offset + DEVICE_CONTROL_2;
      const control2 = yield* configRead(host, bdf, register);
      yield* configWrite(host, bdf, register, control2 | CONTROL_2_TEN_BIT_REQUESTER, LOWER_HALF);
    }
  }
  yield* configWrite(host, bdf, pcie.offset + DEVICE_CONTROL, control, LOWER_HALF);
  return { maxPayloadBytes, maxReadRequestBytes };
}

/** Grants up to eight vectors and enables MSI (7.7.1). */
function* setUpMsi(
  host: SoftHost,
  bdf: number,
  capabilities: readonly PciCapability[],
  virtualSlot: number,
): Task<PciMsi | undefined> {
  const msi = standardCapability(capabilities, CAPABILITY_MSI);
  if (msi === undefined) return undefined;
  const header = yield* configRead(host, bdf, msi.offset);
  const { vectors: asked, is64Bit, dataOffset } = msiShape(header);
  const vectors = Math.min(asked, MAX_VECTORS_GRANTED);
  const data = msiDataOf(virtualSlot, 0);
  yield* configWrite(host, bdf, msi.offset + 4, MSI_ADDRESS);
  if (is64Bit) yield* configWrite(host, bdf, msi.offset + 8, 0);
  yield* configWrite(host, bdf, msi.offset + dataOffset, data, LOWER_HALF);
  if ((header & MSI_MASKING) !== 0) {
    yield* configWrite(host, bdf, msi.offset + dataOffset + 4, 0);
  }
  const enabled = (header & 0xff8f_ffff) | (Math.log2(vectors) << 20) | MSI_ENABLE;
  yield* configWrite(host, bdf, msi.offset, enabled, UPPER_HALF);
  return { offset: msi.offset, address: MSI_ADDRESS, data, vectors };
}
