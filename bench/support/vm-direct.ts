/** The accelerator served to QEMU without the fabric, hot-plugged by QMP at a root port. */
import * as path from 'node:path';
import type { MonitoredVm } from '#testkit/vm/monitored-vm';
import { PinnedProcess } from './pinned-process.ts';
import type { EchoPlace, ToVmSide } from './vm-side.ts';

const ID = 'direct';

export class DirectDevice {
  readonly #process: PinnedProcess;
  readonly #path: string;
  readonly #rootPort: string;
  readonly #vm: MonitoredVm;

  /** Its socket is in `folder`. */
  constructor(vm: MonitoredVm, rootPort: string, folder: string, cpu: number) {
    this.#vm = vm;
    this.#process = new PinnedProcess('./vm-side.js', cpu);
    this.#path = path.join(folder, 'direct.sock');
    this.#rootPort = rootPort;
  }

  /** `echo` is for `behindEcho`. */
  async start(memoryBytes: number, echo: EchoPlace): Promise<void> {
    await this.#process.ask({ op: 'serve', path: this.#path, memoryBytes } satisfies ToVmSide);
    await this.#process.ask({ op: 'connect', ...echo } satisfies ToVmSide);
  }

  /** While `act` runs the device answers a read once a TLS round trip has passed. */
  async behindEcho<T>(act: () => Promise<T>): Promise<T> {
    await this.#process.ask({ op: 'behind-echo', isOn: true } satisfies ToVmSide);
    try {
      return await act();
    } finally {
      await this.#process.ask({ op: 'behind-echo', isOn: false } satisfies ToVmSide);
    }
  }

  /** Returns when QEMU has taken the command. */
  add(): Promise<void> {
    return this.#vm.add(ID, this.#rootPort, this.#path);
  }

  /** Returns when QEMU says that the guest has let go. */
  remove(): Promise<void> {
    return this.#vm.remove(ID);
  }

  stop(): void {
    this.#process.stop();
  }
}
