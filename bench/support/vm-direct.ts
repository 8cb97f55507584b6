/** The accelerator served to QEMU without the fabric, hot-plugged by QMP at a root port. */
import * as path from 'node:path';
import { RealClock } from '#base/clock';
import type { TestVm } from '#testkit/vm/test-vm';
import { QmpConnection } from '#vm/qmp-connection';
import { PinnedProcess } from './pinned-process.ts';
import type { ToVmSide } from './vm-side.ts';

const ID = 'direct';

export class DirectDevice {
  readonly #process: PinnedProcess;
  readonly #path: string;
  readonly #rootPort: string;
  readonly #monitor: QmpConnection;
  readonly #connected: Promise<void>;
  #onDeleted = (): void => {};

  /** Its socket is in `folder`. */
  constructor(vm: TestVm, rootPort: string, folder: string, cpu: number) {
    this.#process = new PinnedProcess('./vm-side.js', cpu);
    this.#path = path.join(folder, 'direct.sock');
    this.#rootPort = rootPort;
    let onConnected = (): void => {};
    this.#connected = new Promise((resolve) => {
      onConnected = resolve;
    });
    this.#monitor = new QmpConnection({
      path: vm.toolQmp,
      clock: new RealClock(),
      user: {
        connected: () => onConnected(),
        event: (_now, name, { device }) => {
          if (name === 'DEVICE_DELETED' && device === ID) this.#onDeleted();
        },
        disconnected: () => {},
        turnEnd: () => {},
      },
    });
  }

  async start(memoryBytes: number): Promise<void> {
    await this.#process.ask({ op: 'serve', path: this.#path, memoryBytes } satisfies ToVmSide);
    await this.#connected;
  }

  /** Returns when QEMU has taken the command. */
  async add(): Promise<void> {
    const socket = { type: 'unix', path: this.#path };
    await this.#execute('device_add', {
      driver: 'vfio-user-pci',
      id: ID,
      bus: this.#rootPort,
      socket,
    });
  }

  /** Returns when QEMU says that the guest has let go. */
  async remove(): Promise<void> {
    const deleted = new Promise<void>((resolve) => {
      this.#onDeleted = resolve;
    });
    await this.#execute('device_del', { id: ID });
    await deleted;
  }

  stop(): void {
    this.#monitor.stop();
    this.#process.stop();
  }

  #execute(command: string, args: Readonly<Record<string, unknown>>): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#monitor.execute(command, args, (_now, answer) => {
        if (answer.ok) resolve();
        else reject(new Error(answer.message));
      });
    });
  }
}
