/** The host's end of the raw baseline: see raw-server.ts. */
import * as net from 'node:net';
import * as tls from 'node:tls';
import type { TlsCredentials } from '#identity/tls-identity';
import { MMIO_ANSWER_BYTES, MMIO_REQUEST_BYTES, STREAM_WRITE_BYTES } from './protocol.ts';
import { sendStream } from './raw-server.ts';

export class RawClient {
  readonly #echo: net.Socket;
  readonly #up: net.Socket;
  readonly #down: net.Socket;

  private constructor(echo: net.Socket, up: net.Socket, down: net.Socket) {
    this.#echo = echo;
    this.#up = up;
    this.#down = down;
  }

  static async connect(port: number, credentials: TlsCredentials | undefined): Promise<RawClient> {
    const open = (kind: string): Promise<net.Socket> =>
      new Promise((resolve, reject) => {
        const socket =
          credentials === undefined
            ? net.connect({ port, host: '127.0.0.1' })
            : tls.connect({
                port,
                host: '127.0.0.1',
                ca: credentials.ca,
                checkServerIdentity: () => undefined,
              });
        socket.once('error', reject);
        socket.once(credentials === undefined ? 'connect' : 'secureConnect', () => {
          socket.setNoDelay(true);
          socket.write(kind);
          resolve(socket);
        });
      });
    return new RawClient(await open('E'), await open('U'), await open('D'));
  }

  /** Mean nanoseconds of a round trip; `each` is told what each took. */
  echo(rounds: number, each?: (ns: number) => void): Promise<number> {
    const socket = this.#echo;
    const request = Buffer.alloc(MMIO_REQUEST_BYTES, 2);
    return new Promise((resolve) => {
      let done = 0;
      let bytes = 0;
      const start = process.hrtime.bigint();
      let began = start;
      const onData = (chunk: Buffer): void => {
        bytes += chunk.length;
        if (bytes < MMIO_ANSWER_BYTES) return;
        bytes -= MMIO_ANSWER_BYTES;
        if (each !== undefined) {
          const now = process.hrtime.bigint();
          each(Number(now - began));
          began = now;
        }
        if (++done === rounds) {
          socket.removeListener('data', onData);
          resolve(Number(process.hrtime.bigint() - start) / rounds);
          return;
        }
        socket.write(request);
      };
      socket.on('data', onData);
      socket.write(request);
    });
  }

  /** Returns what sends one request; `answered` is called for each answer. Not beside `echo`. */
  echoing(answered: () => void): () => void {
    const socket = this.#echo;
    const request = Buffer.alloc(MMIO_REQUEST_BYTES, 2);
    let bytes = 0;
    socket.on('data', (chunk: Buffer) => {
      for (bytes += chunk.length; bytes >= MMIO_ANSWER_BYTES; bytes -= MMIO_ANSWER_BYTES) {
        answered();
      }
    });
    return () => socket.write(request);
  }

  /** Bytes a second, until the box says it has them all. */
  async streamUp(count: number): Promise<number> {
    const socket = this.#up;
    const done = new Promise((resolve) => socket.once('data', resolve));
    const start = process.hrtime.bigint();
    socket.write(countBytes(count));
    await sendStream(socket, Buffer.alloc(STREAM_WRITE_BYTES, 3), count);
    await done;
    return (count * 1e9) / Number(process.hrtime.bigint() - start);
  }

  /** Bytes a second, until the last has come. */
  streamDown(count: number): Promise<number> {
    const socket = this.#down;
    return new Promise((resolve) => {
      let bytes = 0;
      const start = process.hrtime.bigint();
      const onData = (chunk: Buffer): void => {
        bytes += chunk.length;
        if (bytes < count) return;
        socket.removeListener('data', onData);
        resolve((count * 1e9) / Number(process.hrtime.bigint() - start));
      };
      socket.on('data', onData);
      socket.write(countBytes(count));
    });
  }
}

function countBytes(count: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(count));
  return bytes;
}
