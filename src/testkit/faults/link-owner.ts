/** The host or box of a fault world, as the observer of its links knows it. */
import type { Nanos } from '#base/units';
import type { Tlp } from '#pcie/tlp';
import type { TlpOrigin, WatchedPort } from './watched-port.ts';

export interface LinkOwner {
  readonly name: string;
  /** A TLP is about to be handed to the proxy; `undefined` for one that is malformed. */
  entering(now: Nanos, origin: TlpOrigin, tlp: Tlp | undefined): void;
  /** The proxy has dealt with it. */
  entered(now: Nanos): void;
  /** The proxy sends a TLP. */
  sending(now: Nanos, peer: string, slot: number, generation: number, tlp: Tlp): void;
  sessionUp(now: Nanos, peer: string): void;
  /** Around the proxy being told that a session has ended. */
  sessionEnding(now: Nanos, port: WatchedPort): void;
  sessionEnded(now: Nanos, peer: string): void;
  /** Sends what is queued and arms timers, after something was done from outside. */
  settle(): void;
}
