/**
 * The raw baseline: the least a process can do with the same sockets. The first byte of a connection
 * says what it is for: E echoes, U counts a stream up to the box, D sends one down to the host.
 */
import * as net from 'node:net';
import * as tls from 'node:tls';
import type { TlsCredentials } from '#identity/tls-identity';
import { MMIO_ANSWER_BYTES, MMIO_REQUEST_BYTES, STREAM_WRITE_BYTES } from './protocol.ts';

export function listenRaw(credentials: TlsCredentials | undefined): Promise<number> {
  const serve = (socket: net.Socket): void => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.once('data', (chunk: Buffer) => {
      const rest = chunk.subarray(1);
      const kind = String.fromCharCode(chunk[0] ?? 0);
      if (kind === 'E') serveEcho(socket, rest);
      else if (kind === 'U') serveSink(socket, rest);
      else serveSource(socket, rest);
    });
  };
  const server =
    credentials === undefined
      ? net.createServer(serve)
      : tls.createServer(
          {
            ca: credentials.ca,
            cert: credentials.cert,
            key: credentials.key,
            minVersion: 'TLSv1.3',
          },
          serve,
        );
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port));
  });
}

function serveEcho(socket: net.Socket, rest: Buffer): void {
  const answer = Buffer.alloc(MMIO_ANSWER_BYTES, 1);
  let bytes = rest.length;
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length;
    while (bytes >= MMIO_REQUEST_BYTES) {
      bytes -= MMIO_REQUEST_BYTES;
      socket.write(answer);
    }
  });
}

/** Takes rounds of (8 bytes of count, that many bytes) and answers each with one byte. */
function serveSink(socket: net.Socket, rest: Buffer): void {
  let head = rest;
  let left = 0;
  const take = (chunk: Buffer): void => {
    let input = chunk;
    while (input.length > 0) {
      if (left > 0) {
        const used = Math.min(left, input.length);
        left -= used;
        input = input.subarray(used);
        if (left === 0) socket.write('.');
        continue;
      }
      head = Buffer.concat([head, input]);
      if (head.length < 8) return;
      left = Number(head.readBigUInt64BE(0));
      input = head.subarray(8);
      head = Buffer.alloc(0);
    }
  };
  socket.on('data', take);
}

/** Takes counts of 8 bytes and answers each with that many bytes, in large writes. */
function serveSource(socket: net.Socket, rest: Buffer): void {
  const block = Buffer.alloc(STREAM_WRITE_BYTES, 1);
  let head = rest;
  socket.on('data', (chunk: Buffer) => {
    head = Buffer.concat([head, chunk]);
    if (head.length < 8) return;
    const count = Number(head.readBigUInt64BE(0));
    head = head.subarray(8);
    void sendStream(socket, block, count);
  });
}

/** Writes `count` bytes in writes of a block, as fast as the socket takes them. */
export async function sendStream(socket: net.Socket, block: Buffer, count: number): Promise<void> {
  for (let sent = 0; sent < count; sent += block.length) {
    const size = Math.min(block.length, count - sent);
    if (!socket.write(size === block.length ? block : block.subarray(0, size))) {
      await new Promise((resolve) => socket.once('drain', resolve));
    }
  }
}
