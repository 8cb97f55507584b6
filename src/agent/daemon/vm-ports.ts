/** The virtual ports of a host whose functions a VM uses: QEMU's root ports, as its guest has set them. */
import { formatBdf } from '#base/units';
import type { VirtualPort } from '#host/virtual-port';
import { rootPortsOf } from '#vm/pci-topology';
import type { Logger } from './logger.ts';

export class VmPorts {
  readonly #ports: readonly VirtualPort[];
  readonly #names: readonly string[];
  readonly #log: Logger;
  /** Those of ports whose guest has given no bus yet: as `unknownPorts` made them. */
  readonly #unset: readonly VirtualPort['routing'][];
  readonly #missing = new Set<string>();

  /** `names` are those of the root ports; `ports` are of `unknownPorts`. */
  constructor(ports: readonly VirtualPort[], names: readonly string[], log: Logger) {
    this.#ports = ports;
    this.#names = names;
    this.#log = log;
    this.#unset = ports.map(({ routing }) => routing);
  }

  /** What QEMU lacks of a slot. */
  problemOf(slot: number): string | undefined {
    const name = this.#names[slot] ?? '';
    return this.#missing.has(name) ? noSuchPort(name) : undefined;
  }

  /** Takes the answer to `query-pci`. Returns the slots that have another bus or other windows now. */
  take(answer: unknown): number[] {
    const found = rootPortsOf(answer);
    const changed = this.#ports.flatMap((port, slot) => {
      const name = this.#names[slot] ?? '';
      const there = found.get(name);
      if (there === undefined && !this.#missing.has(name)) this.#log.error({}, noSuchPort(name));
      if (there === undefined) this.#missing.add(name);
      else this.#missing.delete(name);
      const before = JSON.stringify(port.routing);
      const isSet = there !== undefined && there.secondaryBus > 0;
      port.setRouting(isSet ? there : (this.#unset[slot] ?? port.routing));
      return JSON.stringify(port.routing) === before ? [] : slot;
    });
    if (changed.length > 0) {
      const buses = this.#ports.map(({ routing }) => formatBdf(routing.secondaryBus << 8));
      this.#log.info({ ports: buses }, 'buses of the guest');
    }
    return changed;
  }
}

function noSuchPort(name: string): string {
  return (
    `QEMU has no root port ${name}: start it with -device pcie-root-port,id=${name},bus=pcie.0,chassis=N,slot=N,` +
    'mem-reserve=32M,pref64-reserve=256M'
  );
}
