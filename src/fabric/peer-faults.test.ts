/**
 * Peers with a good certificate that mean harm, over the transport they would use: what they send is
 * counted, ends their session with a reason, and costs this end little.
 */
import { describe, expect, it } from 'vitest';
import { TimerDriver } from '#base/clock';
import { nanos } from '#base/units';
import { VirtualClock } from '#base/virtual-clock';
import { FakeSocket, settled } from '#testkit/fake-socket';
import { FakeTransport } from '#testkit/fake-transport';
import { BOX, HOST, LinkWorld, RecordingUser } from '#testkit/link-world';
import { EndCode, FrameType, helloFrame, writeSessionHeader } from './frame.ts';
import { MAX_FRAME_BYTES, MAX_HANDSHAKE_FRAME_BYTES } from './frame-bounds.ts';
import { HostLink } from './host-link.ts';
import { DEFAULT_LINK_OPTIONS } from './link-options.ts';
import { freshHello } from './session.ts';
import { SocketTransport } from './socket-transport.ts';
import type { PeerIdentity, TransportUser } from './transport.ts';

const now = nanos(0);

/** A box, and a socket a host of the pool has opened to it. */
function connectTo(world: LinkWorld): FakeSocket {
  const socket = new FakeSocket();
  const transport = new SocketTransport(socket.asSocket(), HOST, world.clock);
  transport.expectHello();
  transport.start(world.box.accept(world.now, transport));
  return socket;
}

function header(length: number): Buffer {
  const bytes = Buffer.from([0xd7, 5, 0, 1, 0, 0, 0, 0]);
  bytes.writeUInt32BE(length, 4);
  return bytes;
}

const HELLO = Buffer.from(helloFrame(FrameType.HELLO, freshHello(HOST, 5, DEFAULT_LINK_OPTIONS)));

describe('a lie about lengths in a stream was taken for a lost connection', () => {
  it.each<[string, Buffer]>([
    ['0', header(0)],
    ['4', header(4)],
    ['2 MiB', header(2 * MAX_FRAME_BYTES)],
    ['0xffffffff', header(0xffff_ffff)],
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\n\r\n')],
  ])('%s: the session ends, the peer is told, it is counted', async (_what, bytes) => {
    const world = new LinkWorld();
    const socket = connectTo(world);
    socket.push(HELLO);
    await settled();
    expect(world.boxUser.session).toBe(1);
    socket.push(bytes);
    await settled();
    expect(world.boxUser.downs).toHaveLength(1);
    expect(world.boxUser.downs[0]).toMatch(/^the peer sent a frame/);
    expect(socket.frames().at(-1)).toMatchObject({
      type: FrameType.BYE,
      code: EndCode.PROTOCOL,
      text: world.boxUser.downs[0],
    });
    const counters = world.box.counters().get('h1')!;
    expect(counters.protocolErrors).toBe(1);
    expect(counters.connectionsLost).toBe(0);
  });

  it('what still comes after it is read and kept nowhere', async () => {
    const world = new LinkWorld();
    const socket = connectTo(world);
    socket.push(HELLO);
    await settled();
    socket.push(header(0xffff_ffff));
    await settled();
    const before = process.memoryUsage().arrayBuffers;
    const chunk = Buffer.alloc(256 * 1024);
    for (let count = 0; count < 256; count++) {
      socket.push(chunk);
      await settled();
    }
    // 64 MiB have come; the buffer of the connection takes one chunk and a read.
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(8 * 1024 * 1024);
  });
});

describe('a peer without HELLO had a megabyte of memory a connection', () => {
  it('the longest HELLO is taken, what claims to be longer is not', async () => {
    const longest: PeerIdentity = { kind: 'host', id: 'x'.repeat(255) };
    const hello = helloFrame(FrameType.HELLO, freshHello(longest, 5, DEFAULT_LINK_OPTIONS));
    expect(hello.length).toBe(MAX_HANDSHAKE_FRAME_BYTES);
    const world = new LinkWorld();
    const good = connectTo(world);
    good.push(Buffer.from(hello));
    await settled();
    // Understood: it is another's name.
    expect(good.frames()[0]).toMatchObject({ type: FrameType.REFUSE, code: EndCode.IDENTITY });

    const bad = connectTo(world);
    const large = header(MAX_HANDSHAKE_FRAME_BYTES + 4);
    large[1] = FrameType.HELLO;
    bad.push(large);
    await settled();
    await settled();
    expect(bad.writableEnded).toBe(true);
    expect(world.reports.at(-1)).toMatch(/connection closed: the peer sent a frame whose length/);
  });

  it('of one peer eight connections may wait for their HELLO; the ninth is told why', async () => {
    const world = new LinkWorld();
    const waiting = Array.from({ length: 8 }, () => connectTo(world));
    const more = Array.from({ length: 500 }, () => connectTo(world));
    await settled();
    for (const socket of more) {
      expect(socket.frames()).toMatchObject([
        {
          type: FrameType.REFUSE,
          code: EndCode.BUSY,
          text: '8 connections of host/h1 have not said HELLO',
        },
      ]);
    }
    // Said once.
    expect(world.reports).toEqual(['h1: refused: 8 connections of host/h1 have not said HELLO']);
    // Those that wait are served, and then there is room again.
    waiting[0]!.push(HELLO);
    await settled();
    expect(waiting[0]!.frames()[0]?.type).toBe(FrameType.HELLO_ACK);
    expect(connectTo(world).writableEnded).toBe(false);
  });
});

/** A host's link to a box that answers each HELLO and then does `then`. */
function hostAgainst(then: (user: TransportUser, clock: VirtualClock) => void) {
  const clock = new VirtualClock();
  const user = new RecordingUser();
  let attempts = 0;
  let ids = 0;
  const link: HostLink = new HostLink({
    local: HOST,
    peer: BOX,
    paths: 1,
    user,
    newSessionId: () => ++ids,
    sink: {
      connect: () => {
        attempts++;
        clock.at(nanos(clock.now() + 10_000), (at) => {
          const pipe = new FakeTransport(BOX);
          const end = link.connected(at, pipe);
          const hello = pipe.sent[0]?.hello;
          if (hello === undefined) return;
          const ack = helloFrame(FrameType.HELLO_ACK, { ...hello, identity: BOX });
          end.frame(at, ack, 0, ack.length);
          end.turnEnd(at);
          then(end, clock);
          driver.update();
        });
      },
    },
  });
  const driver = new TimerDriver(clock, link);
  link.start(clock.now());
  driver.update();
  const run = (untilNs: number): void => clock.runUntil(nanos(untilNs));
  return { link, user, run, attempts: () => attempts };
}

describe('a peer that takes connections only to drop them kept the host reconnecting', () => {
  it('the window of the session is not begun anew by a resume that brought nothing', () => {
    const { user, run, link } = hostAgainst((end, clock) => end.closed(clock.now(), 'dropped'));
    // The first loss is at 10 µs; the session may be resumed up to 3 s later.
    run(3e9 + 9_999);
    expect(user.downs).toEqual([]);
    expect(link.counters.resumes).toBeGreaterThan(3);
    run(3e9 + 10_000);
    expect(user.downs).toEqual(['not resumed within 3000 ms']);
  });

  it.each<[string, (end: TransportUser, clock: VirtualClock) => void]>([
    ['drops them', (end, clock) => end.closed(clock.now(), 'dropped')],
    [
      'says something and drops them',
      (end, clock) => {
        const ping = new Uint8Array(44);
        const limits = new Uint32Array(6).fill(1000);
        writeSessionHeader(new DataView(ping.buffer), 0, FrameType.PING, 0, 44, 0, 0, limits);
        end.frame(clock.now(), ping, 0, 44);
        end.closed(clock.now(), 'dropped');
      },
    ],
    [
      'ends each session',
      (end, clock) => end.frame(clock.now(), new Uint8Array(header(0xffff_ffff)), 0, 8),
    ],
  ])('a peer that %s is tried again ever more seldom, down to once a second', (_what, then) => {
    const { run, attempts } = hostAgainst(then);
    run(60e9);
    // At once, after 50, 100, 200, 400 and 800 ms, then every second; some more where a session's
    // end begins a pause of its own.
    expect(attempts()).toBeGreaterThan(50);
    expect(attempts()).toBeLessThan(70);
  });

  it('a connection that lasted is tried again at once', () => {
    const world = new LinkWorld({ paths: [{ rttNs: 1000 }] }).up();
    for (let count = 0; count < 3; count++) {
      world.run(1e9);
      world.host.dropConnection(world.now, 'test');
      world.settle();
      // A connection takes a round trip, HELLO and its answer another.
      world.run(2000);
      expect(world.host.state).toBe('up');
    }
  });
});

it('a flood of pings made the box answer each: it ends the session', () => {
  const world = new LinkWorld();
  const end = world.box.accept(world.now, new FakeTransport(HOST));
  end.frame(now, new Uint8Array(HELLO), 0, HELLO.length);
  const ping = new Uint8Array(44);
  const limits = new Uint32Array(6).fill(1000);
  writeSessionHeader(new DataView(ping.buffer), 0, FrameType.PING, 0, 44, 0, 0, limits);
  for (let second = 0; second < 3; second++) {
    for (let count = 0; count < 1000; count++) end.frame(nanos(second * 1e9), ping, 0, 44);
  }
  expect(world.boxUser.downs).toEqual([]);
  end.frame(nanos(2.5e9), ping, 0, 44);
  expect(world.boxUser.downs).toEqual(['the peer sent more than 1000 pings in a second']);
});
