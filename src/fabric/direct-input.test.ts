import * as net from 'node:net';
import { PassThrough } from 'node:stream';
import { afterEach, describe, expect, it } from 'vitest';
import { RealClock } from '#base/clock';
import type { Nanos } from '#base/units';
import { DirectInput, readDirectly } from './direct-input.ts';
import { SocketTransport } from './socket-transport.ts';
import type { PeerIdentity, TransportUser } from './transport.ts';

const peer: PeerIdentity = { kind: 'host', id: 'h' };
const clock = new RealClock();
const open: { destroy(): void }[] = [];

afterEach(() => {
  for (const one of open.splice(0)) one.destroy();
});

/** Both ends of a connection on the loopback; the accepting end is paused. */
async function pair(
  options: { onread?: net.OnReadOpts } = {},
): Promise<{ near: net.Socket; far: net.Socket }> {
  const server = net.createServer({ pauseOnConnect: true });
  const far = new Promise<net.Socket>((resolve) => server.once('connection', resolve));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  const near = net.connect({ host: '127.0.0.1', port, ...options });
  await new Promise((resolve) => near.once('connect', resolve));
  const ends = { near, far: await far };
  server.close();
  open.push(ends.near, ends.far);
  return ends;
}

class Collector implements TransportUser {
  readonly seeds: number[] = [];
  bytes = 0;
  ended: string | undefined;

  frame(_now: Nanos, bytes: Uint8Array, offset: number, length: number): void {
    const seed = bytes[offset];
    const body = bytes.subarray(offset + 8, offset + length);
    expect(body.every((byte) => byte === seed)).toBe(true);
    this.seeds.push(bytes[offset] as number);
    this.bytes += length;
  }
  turnEnd(): void {}
  writable(): void {}
  closed(_now: Nanos, reason: string): void {
    this.ended = reason;
  }
}

function frameOf(bytes: number, seed: number): Buffer {
  const frame = Buffer.alloc(bytes, seed & 0xff);
  frame.writeUInt32BE(bytes, 4);
  return frame;
}

/** 3 MB in frames of all sizes up to 60 KB. */
const frames = Array.from({ length: 100 }, (_, index) =>
  frameOf(8 + ((index * 7919) % 60_000), index),
);
const seeds = frames.map((_, index) => index);

async function collect(transport: SocketTransport): Promise<Collector> {
  const user = new Collector();
  transport.start(user);
  await expect.poll(() => user.ended, { timeout: 5000 }).toBe('the peer closed the connection');
  return user;
}

describe('a socket that a server has accepted', () => {
  it('reads directly, what came before included', async () => {
    const { near, far } = await pair();
    near.write(frames[0] as Buffer);
    // As at the end of a TLS handshake: bytes lie in the stream when the transport is made.
    far.read(0);
    await expect.poll(() => far.readableLength, { timeout: 5000 }).toBe(frames[0]?.length);
    const direct = readDirectly(far);
    expect(direct, 'this version of Node is not as known').toBeDefined();
    near.end(Buffer.concat(frames.slice(1)));
    const user = await collect(new SocketTransport(far, peer, clock, direct));
    expect(user.seeds).toEqual(seeds);
    expect(far.listenerCount('data')).toBe(0);
  });

  it('brings the same without', async () => {
    const { near, far } = await pair();
    near.end(Buffer.concat(frames));
    expect((await collect(new SocketTransport(far, peer, clock))).seeds).toEqual(seeds);
  });

  it('is left alone when it is not as known', async () => {
    const stream = new PassThrough();
    stream.write('kept');
    expect(readDirectly(stream as unknown as net.Socket)).toBeUndefined();
    expect(String(stream.read())).toBe('kept');
    // One that was opened with `onread` has its own already.
    const { near } = await pair({ onread: new DirectInput().onread });
    expect(readDirectly(near)).toBeUndefined();
  });
});

it('a socket opened with a direct input keeps what comes before the transport starts', async () => {
  const direct = new DirectInput();
  const { near, far } = await pair({ onread: direct.onread });
  far.write(frames[0] as Buffer);
  await expect.poll(() => direct.input.nextFrame(), { timeout: 5000 }).toBe(frames[0]?.length);
  const transport = new SocketTransport(near, peer, clock, direct);
  far.end(Buffer.concat(frames.slice(1)));
  const user = await collect(transport);
  expect(user.seeds).toEqual(seeds);
  expect(user.bytes).toBe(frames.reduce((sum, frame) => sum + frame.length, 0));
});
