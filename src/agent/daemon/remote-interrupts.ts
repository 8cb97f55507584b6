/**
 * The interrupts of a remote function. Its server signals eventfds, whatever the host has programmed; here
 * they become what the host expects: an MSI is a write of the address and data in the MSI capability, INTx the
 * two messages of a wire.
 *
 * One kind is set up at a time, as the host's MSI Enable says: MSI before the function hears of it, INTx after.
 * INTx masks itself when it fires. As nobody tells when the host has dealt with it, the next access to a BAR
 * counts as that: the wire goes down, the server unmasks, and fires again if the function still asserts.
 */
import type { Nanos } from '#base/units';
import { ROUTE_LOCAL } from '#pcie/intx';
import { IRQ_INTX, IRQ_MSI } from '#vfio-user/irq-info';
import type { ClientSession } from '#vfio-user/client-session';
import type { Refusal } from '#vfio-user/refusal';
import type { RemoteDma } from './remote-dma.ts';
import type { RemoteRegisters } from './remote-registers.ts';

export interface RemoteInterruptsOptions {
  readonly session: ClientSession;
  readonly registers: RemoteRegisters;
  readonly dma: RemoteDma;
  /** Signals come at a time of their own. */
  readonly now: () => Nanos;
  /** Sends a message, or says that it cannot be taken now: `show` is called again then. */
  readonly sendMessage: (now: Nanos, code: number, routing: number) => boolean;
  /** What a signal has caused is to be sent. */
  readonly onWork: () => void;
  /** The server does not do as it must. */
  readonly onFault: (now: Nanos, reason: string) => void;
}

export class RemoteInterrupts {
  readonly #options: RemoteInterruptsOptions;
  /** What the server has been given eventfds for. */
  #kind: 'none' | 'intx' | 'msi' = 'none';
  #count = 0;
  /** Vectors that fired while they were masked. */
  readonly #pending = new Set<number>();
  #isAsserted = false;

  constructor(options: RemoteInterruptsOptions) {
    this.#options = options;
  }

  /** Sets up what the host's registers ask for. */
  setUp(now: Nanos): void {
    const { registers } = this.#options;
    const kind = registers.msiEnabled ? 'msi' : registers.intx === undefined ? 'none' : 'intx';
    const count = kind === 'msi' ? registers.msiCount : 1;
    if (kind !== this.#kind || count !== this.#count) {
      this.tearDown(now);
      this.#kind = kind;
      this.#count = count;
      this.#enable(now);
    }
    this.show(now);
  }

  /** Nothing fires any more. */
  tearDown(now: Nanos): void {
    const { session } = this.#options;
    const kind = this.#kind;
    this.#kind = 'none';
    this.#pending.clear();
    this.#setLevel(now, false);
    if (kind !== 'none') {
      session.disableIrqs(now, kind === 'msi' ? IRQ_MSI : IRQ_INTX, this.#done);
    }
  }

  /** The host has written to the registers: what was masked may fire, the wire may go up or down. */
  show(now: Nanos): void {
    const { registers, dma } = this.#options;
    for (const vector of this.#pending) {
      if (registers.isMasked(vector)) continue;
      this.#pending.delete(vector);
      this.#send(now, vector);
    }
    // A level that is still to come shows itself.
    if (this.#owed() !== 0) dma.after(now, (then) => this.#showWire(then));
  }

  /** The host has accessed a BAR. */
  accessed(now: Nanos): void {
    if (!this.#isAsserted) return;
    this.#setLevel(now, false);
    this.#options.session.unmaskIntx(now, this.#done);
  }

  #enable(now: Nanos): void {
    const { session, onWork } = this.#options;
    if (this.#kind === 'none') return;
    const isMsi = this.#kind === 'msi';
    const fired = (vector: number): void => {
      const then = this.#options.now();
      if (isMsi) this.#fire(then, vector);
      else this.#setLevel(then, true);
      onWork();
    };
    session.enableIrqs(now, isMsi ? IRQ_MSI : IRQ_INTX, this.#count, fired, this.#done);
  }

  #fire(now: Nanos, vector: number): void {
    const { registers } = this.#options;
    if (this.#kind !== 'msi' || !registers.msiEnabled) return;
    if (registers.isMasked(vector)) this.#pending.add(vector);
    else this.#send(now, vector);
  }

  /** A message is a write: without bus mastering there is none (7.5.1.1.3). */
  #send(now: Nanos, vector: number): void {
    const { registers, dma } = this.#options;
    const address = registers.msiAddress;
    if (!registers.busMaster || address < 0) return;
    dma.writeWord(now, address, registers.msiData(vector));
  }

  #setLevel(now: Nanos, asserted: boolean): void {
    const { registers, dma } = this.#options;
    const isAsserted = asserted && this.#kind === 'intx';
    if (isAsserted === this.#isAsserted) return;
    this.#isAsserted = isAsserted;
    // The level, too: somebody may wait already to show what it is, behind fewer writes than this.
    dma.after(now, (then) => {
      registers.intx?.setLevel(isAsserted);
      this.#showWire(then);
    });
  }

  #showWire(now: Nanos): void {
    const { registers, sendMessage } = this.#options;
    const code = this.#owed();
    if (code !== 0 && sendMessage(now, code, ROUTE_LOCAL)) registers.intx?.sent();
  }

  /** The message that the host has to be sent for the wire to be as it is; 0 for none. */
  #owed(): number {
    const { registers } = this.#options;
    return registers.intx?.owed(!registers.interruptDisable && !registers.msiEnabled) ?? 0;
  }

  readonly #done = (now: Nanos, refused: Refusal | undefined): void => {
    if (refused === undefined) return;
    this.#options.onFault(now, `its interrupts cannot be set up or unmasked: ${refused.reason}`);
  };
}
