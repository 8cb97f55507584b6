/**
 * A real VM for tests: QEMU with a stock Linux, in a folder of its own. A watchdog ends it, and nothing else:
 * after the time it was given, and when this process ends, however it ends (QEMU sees to that itself).
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { USUAL_WINDOWS } from '#cli/vm-words';
import { guestInitramfs } from '#vm/guest-initramfs';
import { CONTROL_PARAMETER } from '#vm/guest-scripts';
import { qemuArguments, slotPorts } from '#vm/qemu-command';
import { type GuestAnswer, GuestControl } from './guest-control.ts';
import type { VmNeeds } from './vm-needs.ts';

export interface TestVmOptions {
  readonly slots: number;
  /** It is ended then. */
  readonly watchdogMs: number;
}

/**
 * An emulated processor boots a second sooner without messages on the serial port, and without the tests that a
 * source of random numbers makes of itself.
 */
const FAST_BOOT = ['quiet', 'initcall_blacklist=jent_mod_init'];
const READY_WITHIN_MS = 60_000;
const COMMAND_WITHIN_MS = 30_000;
const LOOK_MS = 20;

export class TestVm {
  /** At which a host proxy drives it. */
  readonly qmp: string;
  /** A second one, for whoever has the VM. */
  readonly toolQmp: string;
  /** The root ports of its slots, in order. */
  readonly ports: readonly string[];
  readonly #folder: string;
  readonly #control: GuestControl;
  readonly #ended: Promise<unknown>;
  readonly #qemu: ChildProcess;
  readonly #watchdog: NodeJS.Timeout;

  private constructor(folder: string, qemu: ChildProcess, watchdogMs: number, ports: string[]) {
    this.#folder = folder;
    this.qmp = path.join(folder, 'host.qmp');
    this.toolQmp = path.join(folder, 'tool.qmp');
    this.ports = ports;
    this.#qemu = qemu;
    this.#ended = new Promise((resolve) => {
      qemu.once('error', resolve);
      qemu.once('exit', resolve);
    });
    this.#watchdog = setTimeout(() => qemu.kill('SIGKILL'), watchdogMs);
    this.#control = new GuestControl(path.join(folder, 'control'));
  }

  /** Returns once the guest takes commands. */
  static async start(needs: VmNeeds, options: TestVmOptions): Promise<TestVm> {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-vm-'));
    const initrd = path.join(folder, 'initrd');
    writeFileSync(initrd, guestInitramfs(needs.image, needs.programs));
    const ports = slotPorts(options.slots, USUAL_WINDOWS);
    const words = qemuArguments({
      kernel: needs.image.kernel,
      initrd,
      append: [CONTROL_PARAMETER, ...FAST_BOOT],
      // With less than 512 MiB Linux has no huge pages for programs.
      memoryMib: 768,
      cpus: 1,
      ports,
      qmp: [path.join(folder, 'host.qmp'), path.join(folder, 'tool.qmp')],
      console: path.join(folder, 'console'),
      consoleLog: path.join(folder, 'console.log'),
      control: path.join(folder, 'control'),
      accelerator: 'tcg',
      endsWithParent: true,
    });
    const qemu = spawn(needs.qemu.program, [...needs.qemu.args, ...words], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    qemu.stderr.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    const isThere = (): boolean => existsSync(path.join(folder, 'control'));
    try {
      await until(isThere, READY_WITHIN_MS, () => `QEMU does not start: ${said}`, qemu);
    } catch (error) {
      rmSync(folder, { recursive: true });
      throw error;
    }
    const names = ports.map(({ id }) => id);
    const vm = new TestVm(folder, qemu, options.watchdogMs, names);
    try {
      await within(READY_WITHIN_MS, vm.#control.ready, () => `no guest; ${said}${vm.console}`);
      return vm;
    } catch (error) {
      await vm.stop();
      throw error;
    }
  }

  /** Of QEMU. */
  get pid(): number {
    return this.#qemu.pid ?? 0;
  }

  /** All that the guest's serial console has shown. */
  get console(): string {
    const file = path.join(this.#folder, 'console.log');
    return existsSync(file) ? readFileSync(file, 'latin1') : '';
  }

  /** What a command of the guest's shell prints. Fails where it ends with another status than 0. */
  async shell(command: string, withinMs = COMMAND_WITHIN_MS): Promise<string> {
    const { status, text } = await this.run(command, withinMs);
    if (status === 0) return text;
    throw new Error(`in the guest, status ${status} of ${command}:\n${text}`);
  }

  run(command: string, withinMs = COMMAND_WITHIN_MS): Promise<GuestAnswer> {
    const answer = this.#control.run(command);
    return within(withinMs, answer, () => `no answer of the guest to ${command}; ${this.#tail()}`);
  }

  /** Waits for the guest to come up anew, after `restart` has made it. */
  async restarted(restart: () => Promise<unknown>): Promise<void> {
    const ready = this.#control.nextReady();
    await restart();
    await within(READY_WITHIN_MS, ready, () => `the guest does not restart; ${this.#tail()}`);
  }

  /** Until a condition of the guest's shell holds; the guest looks ten times a second. */
  async until(condition: string, withinMs = COMMAND_WITHIN_MS): Promise<void> {
    const looks = Math.ceil(withinMs / 100);
    await this.shell(
      `n=0; until { ${condition}; } >/run/until 2>&1; do n=$((n + 1)); ` +
        `[ $n -lt ${looks} ] || { echo "not within ${withinMs} ms: $(cat /run/until)"; ` +
        'dmesg | tail -20; exit 1; }; sleep 0.1; done',
      withinMs * 2,
    );
  }

  /** At once, as a power cut. */
  async stop(): Promise<void> {
    clearTimeout(this.#watchdog);
    this.#control.close();
    this.#qemu.kill('SIGKILL');
    await this.#ended;
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #tail(): string {
    return `its console ends with:\n${this.console.slice(-2000)}`;
  }
}

async function until(
  condition: () => boolean,
  withinMs: number,
  message: () => string,
  qemu: ChildProcess,
): Promise<void> {
  for (let waited = 0; !condition(); waited += LOOK_MS) {
    if (waited >= withinMs || qemu.exitCode !== null) {
      qemu.kill('SIGKILL');
      throw new Error(message());
    }
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** `promise`, or a failure when it takes longer. */
function within<T>(ms: number, promise: Promise<T>, message: () => string): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(message())), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
