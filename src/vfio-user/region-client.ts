/** Region accesses of a client. */
import { assert } from '#base/assert';
import type { Nanos } from '#base/units';
import type { PeerPort } from './message-channel.ts';
import { Command, commandName, FLAG_NO_REPLY, type Message } from './message.ts';
import type { ReplyHandler } from './pending-requests.ts';
import { type Done, Errno, Refusal } from './refusal.ts';
import {
  encodeRegionRead,
  encodeRegionWrite,
  isRegionReply,
  REGION_DATA,
  type RegionRange,
} from './region-access.ts';

/** `bytes` are valid during the call. */
export type ReadDone = (now: Nanos, bytes: Uint8Array | Refusal) => void;

/**
 * Sends what `encode` makes of the identifier it is given, with `fds`. Descriptors that come with the
 * reply are closed unless `takesFds`.
 */
export type SendRequest = (
  now: Nanos,
  command: number,
  encode: (id: number) => Uint8Array,
  done: ReplyHandler,
  fds?: readonly number[],
  takesFds?: boolean,
) => void;

export class RegionClient {
  /** The largest `count` of one access. */
  maxBytes = 0;
  readonly #port: PeerPort;
  readonly #request: SendRequest;
  readonly #onLie: (now: Nanos, reason: string) => void;

  /** `onLie` is told of an answer that cannot be, after whoever asked has been. */
  constructor(port: PeerPort, request: SendRequest, onLie: (now: Nanos, reason: string) => void) {
    this.#port = port;
    this.#request = request;
    this.#onLie = onLie;
  }

  read(now: Nanos, range: RegionRange, done: ReadDone): void {
    this.#check(range);
    const encode = (id: number): Uint8Array => encodeRegionRead(id, range);
    this.#request(now, Command.REGION_READ, encode, (then, reply) => {
      if (reply instanceof Refusal) done(then, reply);
      else if (isRegionReply(reply, range)) done(then, reply.bytes.subarray(REGION_DATA));
      else this.#lie(then, reply, done);
    });
  }

  write(now: Nanos, range: RegionRange, bytes: Uint8Array, done: Done): void {
    this.#check(range);
    const write = { ...range, bytes };
    const encode = (id: number): Uint8Array => encodeRegionWrite(id, write);
    this.#request(now, Command.REGION_WRITE, encode, (then, reply) => {
      if (reply instanceof Refusal) done(then, reply);
      else if (isRegionReply(reply, range)) done(then, undefined);
      else this.#lie(then, reply, done);
    });
  }

  /** Nobody is told how it went. */
  post(range: RegionRange, bytes: Uint8Array): void {
    this.#check(range);
    this.#port.send(encodeRegionWrite(0, { ...range, bytes }, FLAG_NO_REPLY));
  }

  #check(range: RegionRange): void {
    const { count } = range;
    assert(count > 0 && count <= this.maxBytes, `an access of ${count} bytes`);
  }

  #lie(now: Nanos, reply: Message, done: (now: Nanos, refused: Refusal) => void): void {
    const reason = `a ${commandName(reply.command)} reply that does not answer its request`;
    done(now, new Refusal(Errno.EPROTO, reason));
    this.#onLie(now, reason);
  }
}
