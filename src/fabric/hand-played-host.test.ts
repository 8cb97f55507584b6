import { describe, expect, it } from 'vitest';
import { FlowClass } from '#pcie/tlp';
import { FakeTransport } from '#testkit/fake-transport';
import { BOX, HOST, LinkWorld } from '#testkit/link-world';
import { EndCode, FrameType, helloFrame, writeEntryHeader, writeSessionHeader } from './frame.ts';
import { DEFAULT_LINK_OPTIONS } from './link-options.ts';
import { freshHello } from './session.ts';
import type { TransportUser } from './transport.ts';

/** A box end and a hand-played host that has said HELLO. */
function handPlayed(hello = freshHello(HOST, 5, DEFAULT_LINK_OPTIONS), peer = HOST) {
  const world = new LinkWorld({
    box: {
      windows: [
        { tlps: 2, dataUnits: 256 },
        { tlps: 2, dataUnits: 256 },
        { tlps: 2, dataUnits: 256 },
      ],
    },
  });
  const pipe = new FakeTransport(peer);
  const user: TransportUser = world.box.accept(world.now, pipe);
  const give = (frame: Uint8Array): void => {
    user.frame(world.now, frame, 0, frame.length);
    user.turnEnd(world.now);
  };
  give(helloFrame(FrameType.HELLO, hello));
  return { world, pipe, give };
}

function dataFrame(sequence: number, ack: number, tlps: number): Uint8Array {
  const bytes = new Uint8Array(40 + tlps * 24);
  const view = new DataView(bytes.buffer);
  const limits = new Uint32Array(6).fill(1000);
  writeSessionHeader(view, 0, FrameType.DATA, tlps, bytes.length, sequence, ack, limits);
  for (let index = 0; index < tlps; index++) {
    const at = 40 + index * 24;
    writeEntryHeader(view, at, 1, FlowClass.NON_POSTED, 1, 0, 7, 12);
    // MRd32 of one double word at 0x1000.
    bytes.set([0, 0, 0, 1, 1, 8, 0, 15, 0, 0, 16, 0], at + 12);
  }
  return bytes;
}

describe('a peer at fault', () => {
  it('is welcome when it is not', () => {
    const { world, pipe, give } = handPlayed();
    expect(pipe.sent[0]!.type).toBe(FrameType.HELLO_ACK);
    expect(pipe.sent[0]!.hello).toMatchObject({ identity: BOX, sessionId: 5, resume: false });
    give(dataFrame(0, 0, 2));
    expect(world.boxUser.tlps).toHaveLength(2);
    expect(pipe.isClosed).toBe(false);
  });

  it('is refused if it claims another identity', () => {
    const hello = freshHello({ kind: 'host', id: 'h2' }, 5, DEFAULT_LINK_OPTIONS);
    const { world, pipe } = handPlayed(hello);
    expect(pipe.sent[0]).toMatchObject({
      type: FrameType.REFUSE,
      code: EndCode.IDENTITY,
      text: 'host/h1 claims to be host/h2',
    });
    expect(pipe.isClosed).toBe(true);
    expect(world.boxUser.session).toBe(0);
    expect(world.reports).toEqual(['h1: refused: host/h1 claims to be host/h2']);
  });

  it('is refused if it speaks another version', () => {
    const hello = { ...freshHello(HOST, 5, DEFAULT_LINK_OPTIONS), version: 2 };
    const { pipe } = handPlayed(hello);
    expect(pipe.sent[0]).toMatchObject({ type: FrameType.REFUSE, code: EndCode.VERSION });
    expect(pipe.sent[0]!.text).toBe('protocol version 2, this end speaks 1');
  });

  it('is refused if it is a box', () => {
    const { pipe } = handPlayed(freshHello(BOX, 5, DEFAULT_LINK_OPTIONS), BOX);
    expect(pipe.sent[0]).toMatchObject({ type: FrameType.REFUSE, code: EndCode.IDENTITY });
  });

  it.each<[string, (give: (frame: Uint8Array) => void) => void]>([
    ['sent a TLP of flow class 1 without credit', (give) => give(dataFrame(0, 0, 3))],
    ['acknowledged a frame that was never sent', (give) => give(dataFrame(0, 1, 1))],
    ['sent a frame whose entries do not fill it', (give) => give(cut(dataFrame(0, 0, 2)))],
    ['sent a frame without the magic byte', (give) => give(new Uint8Array(64))],
    [
      'sent HELLO of another session in a session',
      (give) => give(helloFrame(FrameType.HELLO, freshHello(HOST, 6, DEFAULT_LINK_OPTIONS))),
    ],
  ])('that %s loses its session', (what, act) => {
    const { world, pipe, give } = handPlayed();
    act(give);
    expect(pipe.isClosed).toBe(true);
    expect(pipe.sent.at(-1)).toMatchObject({ type: FrameType.BYE, code: EndCode.PROTOCOL });
    expect(world.boxUser.downs).toEqual([`the peer ${what}`]);
    expect(world.box.counters().get('h1')!.protocolErrors).toBe(1);
  });

  it('that sends data before HELLO is disconnected', () => {
    const world = new LinkWorld();
    const pipe = new FakeTransport(HOST);
    const user = world.box.accept(world.now, pipe);
    const frame = dataFrame(0, 0, 1);
    user.frame(world.now, frame, 0, frame.length);
    expect(pipe.isClosed).toBe(true);
    expect(world.reports).toEqual(['h1: connection closed: the peer sent data before HELLO']);
  });

  it('that never says HELLO is disconnected after a second', () => {
    const world = new LinkWorld();
    const pipe = new FakeTransport(HOST);
    world.box.accept(world.now, pipe);
    world.settle();
    world.run(1e9 - 1);
    expect(pipe.isClosed).toBe(false);
    world.run(1);
    expect(pipe.isClosed).toBe(true);
  });

  it('a duplicate is dropped and acknowledged again, a gap is reported once', () => {
    const { world, pipe, give } = handPlayed();
    give(dataFrame(0, 0, 1));
    pipe.sent.length = 0;
    give(dataFrame(0, 0, 1));
    expect(world.boxUser.tlps).toHaveLength(1);
    expect(pipe.sent).toMatchObject([{ type: FrameType.CONTROL, ack: 1, flags: 0 }]);
    give(dataFrame(2, 0, 1));
    give(dataFrame(3, 0, 1));
    expect(world.boxUser.tlps).toHaveLength(1);
    expect(pipe.sent.slice(1)).toMatchObject([{ type: FrameType.CONTROL, ack: 1, flags: 1 }]);
  });
});

/** The same frame, an entry short of what it says. */
function cut(frame: Uint8Array): Uint8Array {
  const shorter = frame.slice(0, frame.length - 4);
  new DataView(shorter.buffer).setUint32(4, shorter.length);
  return shorter;
}
