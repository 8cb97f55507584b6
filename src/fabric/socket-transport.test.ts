import { describe, expect, it } from 'vitest';
import { VirtualClock } from '#base/virtual-clock';
import type { Nanos } from '#base/units';
import { FakeSocket, settled } from '#testkit/fake-socket';
import { frameOf, FrameRecorder } from '#testkit/frame-recorder';
import { fc } from '#testkit/properties';
import { FRAME_HEADER_BYTES, MAX_FRAME_BYTES } from './frame.ts';
import { SocketTransport } from './socket-transport.ts';
import { connectTransport, listenTransports } from './socket-endpoint.ts';
import { RealClock } from '#base/clock';
import type { PeerIdentity } from './transport.ts';

const peer: PeerIdentity = { kind: 'box', id: 'b1' };
const clock = new VirtualClock();
const now = 0 as Nanos;

function connected(): { socket: FakeSocket; transport: SocketTransport; user: FrameRecorder } {
  const socket = new FakeSocket();
  const transport = new SocketTransport(socket.asSocket(), peer, clock);
  const user = new FrameRecorder();
  transport.start(user);
  return { socket, transport, user };
}

describe('frames in a byte stream', () => {
  it('come out whole and in order, however the stream is cut', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 2, max: 1500 }), { minLength: 1, maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 2000 }), { maxLength: 30 }),
        async (words, cuts) => {
          const frames = words.map((count, index) => frameOf(count * 4, index));
          const stream = Buffer.concat(frames);
          const { socket, user } = connected();
          let at = 0;
          for (const cut of [...cuts, stream.length]) {
            if (at >= stream.length) break;
            socket.push(Buffer.from(stream.subarray(at, at + cut)));
            at += cut;
            await settled();
          }
          expect(user.frames.length).toBe(frames.length);
          for (const [index, frame] of frames.entries()) {
            expect(Buffer.compare(user.frames[index]!, frame)).toBe(0);
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it('that lie in one chunk are handed on one by one, with one turn end', async () => {
    const { socket, user } = connected();
    const chunk = Buffer.concat([frameOf(16, 1), frameOf(64, 2), frameOf(8, 3)]);
    socket.push(chunk);
    await settled();
    expect(user.events).toEqual(['frame', 'frame', 'frame', 'turnEnd']);
  });

  it('that come in pieces, as of TLS records, have one turn while a frame is begun', async () => {
    const { socket, transport, user } = connected();
    user.onFrame = () => transport.send(now, frameOf(8, 7), 0, 8);
    const stream = Buffer.concat([frameOf(16, 1), frameOf(64, 2), frameOf(8, 3)]);
    for (const [from, to] of [
      [0, 30],
      [30, 50],
      [50, 88],
    ]) {
      socket.push(Buffer.from(stream.subarray(from, to)));
    }
    await settled();
    expect(user.events).toEqual(['frame', 'frame', 'frame', 'turnEnd']);
    expect(socket.written.map((part) => part.length)).toEqual([24]);
    await settled();
    expect(user.events).toEqual(['frame', 'frame', 'frame', 'turnEnd']);
  });

  it('that are sent leave at once when their sender has no more, in one write', () => {
    const { socket, transport } = connected();
    transport.send(now, frameOf(8, 7), 0, 8);
    transport.send(now, frameOf(16, 8), 0, 16);
    expect(socket.written).toEqual([]);
    transport.flush();
    expect(Buffer.concat(socket.written).length).toBe(24);
    transport.flush();
    expect(Buffer.concat(socket.written).length).toBe(24);
  });

  it('have their turn end though the rest of the next does not come', async () => {
    const { socket, transport, user } = connected();
    user.onFrame = () => transport.send(now, frameOf(8, 7), 0, 8);
    socket.push(Buffer.concat([frameOf(16, 1), frameOf(64, 2).subarray(0, 20)]));
    await settled();
    await settled();
    expect(user.events).toEqual(['frame', 'turnEnd']);
    expect(socket.written.length).toBe(1);
    // Nor does it wait for more of a long stream than 64 KiB.
    const frame = frameOf(30_000, 2);
    socket.push(Buffer.from(frameOf(64, 2).subarray(20)));
    for (let part = 0; part < 5; part++) {
      socket.push(Buffer.concat([frame.subarray(part === 0 ? 0 : 8), frame.subarray(0, 8)]));
    }
    await settled();
    await settled();
    expect(user.events.join(' ')).toBe(
      'frame turnEnd frame turnEnd frame frame frame turnEnd frame frame turnEnd',
    );
  });

  it('are not ended twice when the connection goes within their turn', async () => {
    const { socket, user } = connected();
    socket.push(Buffer.concat([frameOf(16, 1), frameOf(64, 2).subarray(0, 20)]));
    socket.push(null);
    await settled();
    await settled();
    await settled();
    const gone = user.events.indexOf('closed: the peer closed the connection');
    expect(gone).toBeGreaterThan(0);
    expect(user.events.slice(gone + 1)).toEqual([]);
  });

  it('come from one buffer all the time, unless one is larger than it', async () => {
    const { socket, user } = connected();
    const stream = Buffer.concat(Array.from({ length: 40 }, (_, index) => frameOf(30_004, index)));
    for (let at = 0; at < stream.length; at += 65_536) {
      socket.push(Buffer.from(stream.subarray(at, at + 65_536)));
      await settled();
    }
    expect(user.frames.length).toBe(40);
    expect(new Set(user.sources).size).toBe(1);
    socket.push(Buffer.from(frameOf(MAX_FRAME_BYTES, 7)));
    await settled();
    expect(user.frames.at(-1)?.length).toBe(MAX_FRAME_BYTES);
    expect(new Set(user.sources).size).toBe(2);
  });

  it.each([0, FRAME_HEADER_BYTES - 1, MAX_FRAME_BYTES + 1, 0xffffffff])(
    'a frame that claims %i bytes is shown to be none, and ends the connection, with the reason',
    async (length) => {
      const lie = Buffer.alloc(16);
      lie.writeUInt32BE(length, 4);
      // Whole in a chunk, and with its header coming in two parts.
      for (const cut of [16, 5]) {
        const { socket, user } = connected();
        socket.push(Buffer.concat([frameOf(12, 1), lie.subarray(0, cut)]));
        await settled();
        if (!socket.destroyed) socket.push(Buffer.from(lie.subarray(cut)));
        await settled();
        // Its header by itself: no frame, as it states another length.
        expect(user.frames.slice(1)).toEqual([new Uint8Array(lie.subarray(0, 8))]);
        expect(socket.destroyed).toBe(true);
        expect(user.events.filter((event) => event.startsWith('closed'))).toEqual([
          `closed: the peer sent a frame of ${length} bytes, ` +
            `${FRAME_HEADER_BYTES} to ${MAX_FRAME_BYTES} are allowed`,
        ]);
      }
    },
  );

  it('end with the connection: half a frame is not delivered', async () => {
    const { socket, user } = connected();
    socket.push(Buffer.from(frameOf(64, 1)).subarray(0, 40));
    socket.push(null);
    await settled();
    await settled();
    expect(user.frames).toEqual([]);
    expect(user.events.at(-1)).toBe('closed: the peer closed the connection');
  });

  it('stop when the user closes from within a frame', async () => {
    const { socket, transport, user } = connected();
    user.onFrame = () => transport.close();
    socket.push(Buffer.concat([frameOf(16, 1), frameOf(16, 2)]));
    await settled();
    expect(user.events).toEqual(['frame']);
  });
});

describe('sending', () => {
  it('lets out all frames of one turn together', async () => {
    const { socket, transport, user } = connected();
    user.onFrame = () => {
      transport.send(now, frameOf(8, 7), 0, 8);
      transport.send(now, frameOf(12, 8), 0, 12);
      expect(socket.written).toEqual([]);
    };
    socket.push(Buffer.from(frameOf(16, 1)));
    await settled();
    expect(socket.written.map((part) => part.length)).toEqual([20]);
    transport.send(now, frameOf(8, 1), 0, 8);
    transport.send(now, frameOf(8, 2), 0, 8);
    expect(socket.written.length).toBe(1);
    await settled();
    expect(socket.written.map((part) => part.length)).toEqual([20, 16]);
  });

  it('asks to hold when much is waiting, and says when to go on', async () => {
    const { socket, transport, user } = connected();
    socket.stuck = [];
    let sent = 0;
    // 32 KiB each: the sender is told to hold before 8 of them wait.
    while (transport.send(now, frameOf(32 * 1024, sent), 0, 32 * 1024)) sent++;
    expect(sent).toBeLessThan(8);
    expect(user.events).toEqual([]);
    await settled();
    while (socket.stuck.length > 0) {
      socket.stuck.shift()?.();
      await settled();
    }
    expect(user.events).toEqual(['writable']);
    expect(transport.send(now, frameOf(8, 0), 0, 8)).toBe(true);
  });

  it('is silent after the connection has gone', async () => {
    const { socket, transport, user } = connected();
    socket.destroy(new Error('read ECONNRESET'));
    await settled();
    expect(transport.send(now, frameOf(8, 0), 0, 8)).toBe(true);
    expect(user.events).toEqual(['closed: read ECONNRESET']);
  });

  it('tells a user that starts after the connection has gone', async () => {
    const socket = new FakeSocket();
    const transport = new SocketTransport(socket.asSocket(), peer, clock);
    socket.destroy(new Error('gone before'));
    await settled();
    const user = new FrameRecorder();
    transport.start(user);
    await settled();
    expect(user.events).toEqual(['closed: gone before']);
  });
});

describe('real sockets', () => {
  it('carry frames both ways over plain TCP, and tell when the peer closes', async () => {
    const real = new RealClock();
    const server = new FrameRecorder();
    const hostPeer: PeerIdentity = { kind: 'host', id: 'h1' };
    const listener = await listenTransports({
      host: '127.0.0.1',
      port: 0,
      clock: real,
      protection: { kind: 'insecure-plain-tcp', peer: hostPeer },
      onRefused: () => {},
      onTransport: (transport) => {
        server.onFrame = () => {
          for (const frame of server.frames.splice(0))
            transport.send(real.now(), frame, 0, frame.length);
        };
        transport.start(server);
      },
    });
    const client = new FrameRecorder();
    const transport = await connectTransport({
      host: '127.0.0.1',
      port: listener.port,
      clock: real,
      protection: { kind: 'insecure-plain-tcp', peer },
    });
    transport.start(client);
    // 285 KB in frames that fit no chunk size, after one in the place of HELLO.
    const frames = Array.from({ length: 20 }, (_, index) =>
      frameOf(index === 0 ? 64 : 15_004, index),
    );
    for (const frame of frames) transport.send(real.now(), frame, 0, frame.length);
    await expect.poll(() => client.frames.length, { timeout: 5000 }).toBe(20);
    expect(Buffer.compare(Buffer.concat(client.frames), Buffer.concat(frames))).toBe(0);
    transport.close();
    await expect
      .poll(() => server.events.at(-1), { timeout: 5000 })
      .toBe('closed: the peer closed the connection');
    listener.close();
  });
});
