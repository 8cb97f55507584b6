/**
 * The hot-plug service of a soft host: enumerates what appears in a virtual slot, forgets what
 * leaves it and ends everything that was running on it.
 */
import type { Nanos } from '#base/units';
import type { EnumerationProblem, PciFunction } from './pci-function.ts';
import type { SoftHost } from './root-complex.ts';
import type { Task } from './task.ts';

export interface HotPlugEvents {
  added?(now: Nanos, fn: PciFunction): void;
  removed?(now: Nanos, fn: PciFunction, surprise: boolean): void;
  problem?(now: Nanos, virtualSlot: number, problem: EnumerationProblem): void;
}

export class HotPlug {
  /** Construct before the host is attached to its fabric, so that no event is missed. */
  constructor(_host: SoftHost, _events?: HotPlugEvents) {}

  /** The function in a slot, once it is set up. */
  functionAt(_virtualSlot: number): PciFunction | undefined {
    throw new Error('to be written');
  }
  /** All functions set up, by slot. */
  functions(): PciFunction[] {
    throw new Error('to be written');
  }
  problemAt(_virtualSlot: number): EnumerationProblem | undefined {
    throw new Error('to be written');
  }
  /** Enumerates a slot again whose function could not be set up. */
  rescan(_now: Nanos, _virtualSlot: number): void {
    throw new Error('to be written');
  }
  /** Waits until the slot's function is set up; `deadline_exceeded` (naming any problem) after `withinNs`. */
  *waitForFunction(_virtualSlot: number, _withinNs: number): Task<PciFunction> {
    throw new Error('to be written');
  }
}
