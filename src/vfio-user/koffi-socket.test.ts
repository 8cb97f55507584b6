import { mkdtempSync, rmSync } from 'node:fs';
import * as net from 'node:net';
import * as os from 'node:os';
import * as path from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { koffiTransport } from './koffi-socket.ts';
import type { UnixFdSocket } from './unix-fd-socket.ts';

const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-socket-'));
afterAll(() => rmSync(folder, { recursive: true }));

// unix(7) hands a peer ECONNRESET where bytes were left unread, and QEMU 11.1.3 ends by an assertion then.
test('a connection that is closed with bytes unread ends for its peer, and does not fail (regression)', async () => {
  const file = path.join(folder, 'socket');
  let accepted = (_socket: UnixFdSocket): void => {};
  const connection = new Promise<UnixFdSocket>((resolve) => {
    accepted = resolve;
  });
  const listener = koffiTransport.listen(file, (socket) => accepted(socket));
  const peer = net.connect(file);
  // More than one look takes.
  await new Promise((resolve) => peer.write(new Uint8Array(100_000), resolve));
  const ended = new Promise((resolve) => {
    peer.once('error', resolve);
    peer.once('end', () => resolve('the end'));
  });
  peer.resume();
  (await connection).close();
  expect(await ended).toBe('the end');
  peer.destroy();
  listener.close();
});

// A device's process that was killed with bytes unread was told of as `receive: ECONNRESET`.
test('a peer that goes with bytes unread has closed the connection (regression)', async () => {
  const file = path.join(folder, 'reset');
  const server = net.createServer({ pauseOnConnect: true });
  const accepted = new Promise<net.Socket>((resolve) => {
    server.once('connection', resolve);
  });
  await new Promise<void>((resolve) => server.listen(file, resolve));
  const socket = koffiTransport.connect(file);
  expect(socket.send(new Uint8Array(100), 0, [])).toBe(100);
  (await accepted).destroy();
  await new Promise((resolve) => server.close(resolve));
  const receive = (): number => socket.receive(new Uint8Array(4), 0, 4, []);
  expect(receive).toThrow('the peer closed the connection');
  expect(() => socket.send(new Uint8Array(1), 0, [])).toThrow('the peer closed the connection');
  socket.close();
});
