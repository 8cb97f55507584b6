/** What a channel sends when a command is done, behind the data it has written: the fence, then the interrupt. */
import type { Nanos } from '#base/units';
import type { DmaClient } from '#pcie/endpoint-transfer';
import {
  type AccelCommand,
  COMMAND_FENCE_VALUE,
  FLAG_FENCE,
  FLAG_INTERRUPT,
} from './accel-command.ts';
import type { ChannelContext } from './accel-context.ts';

// Cookies of its DMA.
const FENCE_SENT = 1;
const INTERRUPT_SENT = 2;

export class CommandSignal implements DmaClient {
  /** The last fence that was sent: 64 raw bits, more than a number holds exactly. */
  fenceValueLo = 0;
  fenceValueHi = 0;
  readonly #index: number;
  readonly #dmaChannel: number;
  readonly #context: ChannelContext;
  readonly #sent: (now: Nanos) => void;
  #interrupts = false;

  /** Of channel `index`. `sent` is called when all that a command asks for has left. */
  constructor(
    index: number,
    dmaChannel: number,
    context: ChannelContext,
    sent: (now: Nanos) => void,
  ) {
    this.#index = index;
    this.#dmaChannel = dmaChannel;
    this.#context = context;
    this.#sent = sent;
  }

  clear(): void {
    this.fenceValueLo = 0;
    this.fenceValueHi = 0;
  }

  /** `command` is that at byte `at` of `view`. */
  send(now: Nanos, command: Readonly<AccelCommand>, view: DataView, at: number): void {
    this.#interrupts = (command.flags & FLAG_INTERRUPT) !== 0;
    if ((command.flags & FLAG_FENCE) === 0) {
      this.#interrupt(now);
      return;
    }
    this.fenceValueLo = view.getUint32(at + COMMAND_FENCE_VALUE, true);
    this.fenceValueHi = view.getUint32(at + COMMAND_FENCE_VALUE + 4, true);
    this.#context.endpoint.dma.writeSmall(
      now,
      this.#dmaChannel,
      command.fenceAddress,
      this.fenceValueLo,
      this.fenceValueHi,
      8,
      this,
      FENCE_SENT,
    );
  }

  dmaDone(now: Nanos, cookie: number): void {
    if (cookie === FENCE_SENT) this.#interrupt(now);
    else this.#sent(now);
  }

  #interrupt(now: Nanos): void {
    if (this.#interrupts) {
      const { endpoint } = this.#context;
      this.#context.fenceSignalled(this.#index);
      if (endpoint.interrupt(now, this.#dmaChannel, 0, this, INTERRUPT_SENT)) return;
    }
    this.#sent(now);
  }
}
