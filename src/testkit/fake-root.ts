/** A root complex that keeps what it is told. */
import type { Nanos } from '#base/units';
import type { RootSide } from '#pcie/root-port';
import type { Tlp } from '#pcie/tlp';
import { decoded, encoded } from './fake-link.ts';

export class FakeRoot implements RootSide {
  completions: Tlp[] = [];
  interrupts: {
    readonly virtualSlot: number;
    readonly address: number;
    readonly data: number;
  }[] = [];
  /** Whether INTA of a slot is asserted now, and how often that changed. */
  readonly pins = new Map<number, boolean>();
  pinChanges = 0;
  links: {
    readonly virtualSlot: number;
    readonly active: boolean;
    readonly surprise: boolean;
  }[] = [];
  resumes = 0;

  completion(_now: Nanos, tlp: Tlp): void {
    this.completions.push(decoded(encoded(tlp)));
  }

  interrupt(_now: Nanos, virtualSlot: number, address: number, data: number): void {
    this.interrupts.push({ virtualSlot, address, data });
  }

  interruptPin(_now: Nanos, virtualSlot: number, asserted: boolean): void {
    this.pins.set(virtualSlot, asserted);
    this.pinChanges++;
  }

  linkActive(_now: Nanos, virtualSlot: number, active: boolean, surprise: boolean): void {
    this.links.push({ virtualSlot, active, surprise });
  }

  resume(): void {
    this.resumes++;
  }

  takeCompletions(): Tlp[] {
    const { completions } = this;
    this.completions = [];
    return completions;
  }
}
