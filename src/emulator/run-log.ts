/**
 * Keeps what happens in a pooled run for `chromeTrace`: commands and fetches of the device, where the
 * recorded work is among the commands, and what passes the link.
 */
import type { Nanos } from '#base/units';
import type { AccelCommand } from '#devices/accel-command';
import { Opcode } from '#host/accel-layout';
import type { LinkProfile } from '#pcie/link-profile';
import { linkBytesPerNs } from './device-link.ts';
import type { EmulationWatch } from './emulate.ts';
import { LinkLog } from './link-log.ts';
import type { PlacedWork } from './trace-workload.ts';

export interface DoneCommand {
  readonly startedNs: number;
  readonly endedNs: number;
  readonly opcode: number;
  /** Of a copy, else 0. */
  readonly bytes: number;
}

export interface DoneFetch {
  readonly channel: number;
  readonly askedNs: number;
  readonly endedNs: number;
  readonly commands: number;
}

export class RunLog {
  /** By channel, in the order of the ring. */
  readonly commands: DoneCommand[][] = [];
  /** In the order in which they ended. */
  readonly fetches: DoneFetch[] = [];
  readonly placed: PlacedWork[] = [];
  /** None where no bursts were asked for. */
  readonly link: LinkLog | undefined;

  /** `bursts`: of TLPs, each way and at each end, at most; 0 for none. */
  constructor(profile: LinkProfile, bursts: number) {
    this.link = bursts === 0 ? undefined : new LinkLog(bursts, linkBytesPerNs(profile));
  }

  /** To be given to the emulator. */
  get watch(): EmulationWatch {
    const { link } = this;
    return {
      onCommand: this.#take,
      onFetch: (now, channel, askedNs, commands) =>
        this.fetches.push({ channel, askedNs, endedNs: now, commands }),
      placed: (work) => this.placed.push(work),
      ...(link === undefined
        ? {}
        : { device: link.device, onTlp: link.tap, begun: (now) => link.begin(now) }),
    };
  }

  readonly #take = (
    now: Nanos,
    channel: number,
    startedNs: number,
    command: Readonly<AccelCommand>,
  ): void => {
    const { opcode } = command;
    const isCopy = opcode === Opcode.COPY_HTOD || opcode === Opcode.COPY_DTOH;
    const bytes = isCopy ? command.operand2 : 0;
    (this.commands[channel] ??= []).push({ startedNs, endedNs: now, opcode, bytes });
  };
}
