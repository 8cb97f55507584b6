/**
 * Sockets that read straight into a transport's buffer, instead of giving out a new buffer for every
 * read: the difference is a third of the time of a small round trip, and most of the garbage of a
 * large transfer.
 */
import type { OnReadOpts, Socket } from 'node:net';
import { StreamInput } from './stream-input.ts';

export class DirectInput {
  readonly input = new StreamInput();
  /** Called whenever bytes have been added to `input`. */
  arrived: (() => void) | undefined;
  readonly room = (): Uint8Array => this.input.room();
  /** `count` bytes have been read into `room()`. */
  readonly added = (count: number): boolean => {
    this.input.added(count);
    this.arrived?.();
    return true;
  };

  /** Option of `net.connect` and `tls.connect`. */
  get onread(): OnReadOpts {
    return { buffer: this.room, callback: this.added };
  }
}

/** What the `onread` option of a socket becomes inside Node. */
interface Inside {
  readonly _handle?: { readonly useUserBuffer?: (buffer: Uint8Array) => void } | null;
  [field: symbol]: unknown;
}

/**
 * A connected socket that a server has accepted, made to read as one that was opened with the `onread`
 * option. Node has that option for the opening side alone, so this sets what the option sets. Returns
 * `undefined`, and changes nothing, where the inside of Node is not as known: the socket's 'data'
 * events then bring the same bytes, slower.
 */
export function readDirectly(socket: Socket): DirectInput | undefined {
  const inside = socket as unknown as Inside;
  const symbols = new Map<string | undefined, symbol>();
  for (const symbol of Object.getOwnPropertySymbols(socket))
    symbols.set(symbol.description, symbol);
  const buffer = symbols.get('kBuffer');
  const callback = symbols.get('kBufferCb');
  const generator = symbols.get('kBufferGen');
  if (buffer === undefined || callback === undefined || generator === undefined) return undefined;
  const { _handle: handle } = inside;
  if (typeof handle?.useUserBuffer !== 'function') return undefined;
  if (inside[buffer] !== null || inside[callback] !== null || inside[generator] !== null) {
    return undefined;
  }

  const direct = new DirectInput();
  // What has come already, with the end of a handshake perhaps, comes first.
  for (let chunk: unknown = socket.read(); chunk instanceof Uint8Array; chunk = socket.read()) {
    direct.input.append(chunk);
  }
  const room = direct.room();
  inside[generator] = direct.room;
  inside[callback] = direct.added;
  inside[buffer] = room;
  handle.useUserBuffer(room);
  return direct;
}
