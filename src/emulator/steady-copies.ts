/**
 * The pace of long copies on a system, measured on it: two copies of different length, and the time by
 * which the longer one is longer. With it long copies of a trace advance in bulk (`Bulk`); a test
 * compares that with copies that go TLP by TLP to the end.
 */
import { DEFAULT_LINK_OPTIONS } from '#fabric/link-options';
import { FLAG_FENCE, Opcode } from '#host/accel-layout';
import type { LinkProfile } from '#pcie/link-profile';
import type { EmulatedSystem } from './emulated-system.ts';
import type { Bulk } from './queue-builder.ts';
import { runWorkload } from './run-workload.ts';
import { singleCall } from './workload.ts';

/** Windows of the two copies, and of what a copy in bulk keeps: by then it is steady. */
const SHORT_WINDOWS = 8;
const LONG_WINDOWS = 24;
const KEPT_WINDOWS = 8;
const PAGE_BYTES = 4096;
/** Posted writes that a link takes at most before they are delivered. */
const BUFFERED_BYTES = 16 * DEFAULT_LINK_OPTIONS.windows[0].dataUnits;
/** Paces that differ by no more are one. */
const SAME = 1e-3;

/** What `steadyBulk` needs of a system: host memory for its copies, and as much device memory. */
function steadyCopyBytes(profile: LinkProfile): number {
  const bytes = LONG_WINDOWS * profile.tags * profile.mrrsBytes;
  return 2 ** Math.ceil(Math.log2(Math.max(2 ** 20, bytes)));
}

/** Undefined where windows are so long that nothing would be gained. `make` gives fresh systems. */
export function steadyBulk(
  profile: LinkProfile,
  make: (bytes: number) => EmulatedSystem,
): Bulk | undefined {
  const windowBytes = profile.tags * profile.mrrsBytes;
  const bytes = steadyCopyBytes(profile);
  if (bytes > 16 * 2 ** 20) return undefined;
  /** Of what the device sees, or of when the fence behind the copy is in host memory. */
  const pace = (opcode: Opcode, end: 'device' | 'host'): number => {
    const [short, long] = [SHORT_WINDOWS, LONG_WINDOWS].map((windows) => {
      const system = make(bytes);
      const host = system.soft.memory.alloc(bytes, PAGE_BYTES).address;
      const isUp = opcode === Opcode.COPY_DTOH;
      const operands = isUp ? { operand0: 0, operand1: host } : { operand0: host, operand1: 0 };
      const command = { opcode, flags: FLAG_FENCE, ...operands, operand2: windows * windowBytes };
      if (end === 'device') return runWorkload(system, singleCall([command]), { profile }).spanNs;
      return runWorkload(system, singleCall([command], 1), { profile }).callEndNs[0];
    });
    return ((long ?? 0) - (short ?? 0)) / ((LONG_WINDOWS - SHORT_WINDOWS) * windowBytes);
  };
  const keepBytes = KEPT_WINDOWS * windowBytes;
  const dtohNsPerByte = pace(Opcode.COPY_DTOH, 'host');
  // Posted writes: with a network slower than the device's link, those of the two copies are all in buffers
  // when the device is done. In the long run they leave at the pace they arrive.
  const isAhead = dtohNsPerByte > (1 + SAME) * pace(Opcode.COPY_DTOH, 'device');
  return {
    windowBytes,
    keepBytes,
    keepDtohBytes: keepBytes + (isAhead ? BUFFERED_BYTES : 0),
    htodNsPerByte: pace(Opcode.COPY_HTOD, 'device'),
    dtohNsPerByte,
  };
}
