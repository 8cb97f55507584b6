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
