/**
 * The pace of long copies on a system, measured on it: two copies of different length, and the time by
 * which the longer one is longer. With it long copies of a trace advance in bulk (`Bulk`); a test
 * compares that with copies that go TLP by TLP to the end.
 */
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
  const pace = (opcode: Opcode): number => {
    const [short, long] = [SHORT_WINDOWS, LONG_WINDOWS].map((windows) => {
      const system = make(bytes);
      const host = system.soft.memory.alloc(bytes, PAGE_BYTES).address;
      const isUp = opcode === Opcode.COPY_DTOH;
      const operands = isUp ? { operand0: 0, operand1: host } : { operand0: host, operand1: 0 };
      const command = { opcode, flags: FLAG_FENCE, ...operands, operand2: windows * windowBytes };
      return runWorkload(system, singleCall([command]), { profile }).spanNs;
    });
    return ((long ?? 0) - (short ?? 0)) / ((LONG_WINDOWS - SHORT_WINDOWS) * windowBytes);
  };
  return {
    windowBytes,
    keepBytes: KEPT_WINDOWS * windowBytes,
    htodNsPerByte: pace(Opcode.COPY_HTOD),
    dtohNsPerByte: pace(Opcode.COPY_DTOH),
  };
}
