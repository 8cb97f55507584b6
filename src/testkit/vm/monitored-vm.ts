/** A VM whose QEMU is asked, by its second QMP socket, to plug vfio-user devices in and out. */
import { RealClock } from '#base/clock';
import { QmpConnection } from '#vm/qmp-connection';
import type { TestVm } from './test-vm.ts';

export class MonitoredVm {
  readonly vm: TestVm;
  readonly #monitor: QmpConnection;
  readonly #connected: Promise<void>;
  readonly #onDeleted = new Map<string, () => void>();

  constructor(vm: TestVm) {
    this.vm = vm;
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
          if (name === 'DEVICE_DELETED') this.#onDeleted.get(String(device))?.();
        },
        disconnected: () => {},
        turnEnd: () => {},
      },
    });
  }

  /** What is served at `socketPath`, at a root port; returns when QEMU has taken the command. */
  async add(id: string, rootPort: string, socketPath: string): Promise<void> {
    const socket = { type: 'unix', path: socketPath };
    await this.#execute('device_add', { driver: 'vfio-user-pci', id, bus: rootPort, socket });
  }

  /** Returns when QEMU says that the guest has let go. */
  async remove(id: string): Promise<void> {
    const deleted = new Promise<void>((resolve) => this.#onDeleted.set(id, resolve));
    await this.#execute('device_del', { id });
    await deleted;
  }

  /** `QEMU 11.1.3`. */
  async version(): Promise<string> {
    const answer = (await this.#execute('query-version', {})) as {
      qemu: { major: number; minor: number; micro: number };
    };
    const { major, minor, micro } = answer.qemu;
    return `QEMU ${major}.${minor}.${micro}`;
  }

  async stop(): Promise<void> {
    this.#monitor.stop();
    await this.vm.stop();
  }

  async #execute(command: string, args: Readonly<Record<string, unknown>>): Promise<unknown> {
    await this.#connected;
    return new Promise((resolve, reject) => {
      this.#monitor.execute(command, args, (_now, answer) => {
        if (answer.ok) resolve(answer.value);
        else reject(new Error(answer.message));
      });
    });
  }
}
