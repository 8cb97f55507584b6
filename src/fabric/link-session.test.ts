import { describe, expect, it } from 'vitest';
import { nanos } from '#base/units';
import { FlowClass } from '#pcie/tlp';
import { FakeTransport } from '#testkit/fake-transport';
import { serialOf, serialTlp } from '#testkit/link-tlps';
import { BOX, HOST, LinkWorld, RecordingUser } from '#testkit/link-world';
import { BoxLinks } from './box-links.ts';
import { FrameType } from './frame.ts';
import { HostLink } from './host-link.ts';
import type { Transport } from './transport.ts';

const { POSTED } = FlowClass;

function post(world: LinkWorld, from: 'host' | 'box', serial: number): void {
  const link = (from === 'host' ? world.hostUser : world.boxUser).link!;
  link.sendTlp(world.now, 1, 7, serialTlp(POSTED, serial, 16, 0, 1));
  link.flush(world.now);
  world.settle();
}

function arrived(user: RecordingUser): number[] {
  return user.tlps.map((tlp) => serialOf(tlp.bytes));
}

describe('a lost connection', () => {
  it('resumes: what was in flight arrives once, in the same session', () => {
    const world = new LinkWorld().up();
    const id = world.host.sessionId;
    post(world, 'host', 1);
    world.run(1e6);
    post(world, 'host', 2);
    world.paths[0]!.cut('reset');
    post(world, 'host', 3);
    post(world, 'box', 4);
    world.paths[0]!.heal();
    world.run(100e6);
    expect(world.host.sessionId).toBe(id);
    expect(arrived(world.boxUser)).toEqual([1, 2, 3]);
    expect(arrived(world.hostUser)).toEqual([4]);
    expect(world.hostUser.downs).toEqual([]);
    expect(world.host.counters.resumes).toBe(1);
    // 2 was sent before the cut.
    expect(world.host.counters.replayedFrames).toBe(1);
  });

  // `slice` of a `Buffer` copies nothing: the second transmission lay in the replay buffer, and what it
  // says of acknowledgements was written into whichever frame lay at its beginning.
  it('sends a frame again from bytes of its own', () => {
    const world = new LinkWorld().up();
    const sent: Uint8Array[] = [];
    world.onFrame = (from, frame) => {
      if (from === 'host' && frame[1] === FrameType.DATA) sent.push(frame);
    };
    post(world, 'host', 1);
    post(world, 'host', 2);
    const before = sent.map((frame) => new Uint8Array(frame));
    world.paths[0]!.cut('reset');
    world.paths[0]!.heal();
    world.run(100e6);
    expect(arrived(world.boxUser)).toEqual([1, 2]);
    const [first, second, ...again] = sent;
    expect(again).toHaveLength(2);
    for (const frame of again) expect(frame.buffer === first!.buffer).toBe(false);
    expect([first, second].map((frame) => new Uint8Array(frame!))).toEqual(before);
  });

  it('resumes over the other path', () => {
    const world = new LinkWorld({ paths: [{ rttNs: 1000 }, { rttNs: 1000 }] }).up();
    expect(world.host.pathIndex).toBe(0);
    world.paths[0]!.cut('reset');
    world.run(1e6);
    expect(world.host.state).toBe('up');
    expect(world.host.pathIndex).toBe(1);
    expect(world.hostUser.session).toBe(1);
  });

  it('resumes over a path it learnt of meanwhile, and goes on over one it should not take again', () => {
    const world = new LinkWorld({ paths: [{ rttNs: 1000 }, { rttNs: 1000 }, { rttNs: 1000 }] });
    world.host.setPaths(1, 0);
    world.up();
    world.host.setPaths(3, 2);
    world.run(1e9);
    expect([world.host.state, world.host.pathIndex]).toEqual(['up', 2]);
    expect(world.host.counters.connectionsLost).toBe(0);
    // The first after a loss is the next one, at once: from 2 on that is 0, which is cut.
    world.paths[0]!.cut('reset');
    world.run(1e9);
    expect([world.host.state, world.host.pathIndex]).toEqual(['up', 1]);
    expect(world.hostUser.session).toBe(1);
  });

  it('that nobody is told of is found by silence', () => {
    const world = new LinkWorld({ paths: [{ rttNs: 1000 }, { rttNs: 1000 }] }).up();
    const lastFrameNs = world.now;
    world.paths[0]!.cut('silent');
    post(world, 'host', 1);
    world.run(lastFrameNs + 0.99e9 - world.now);
    expect(world.host.counters.connectionsLost).toBe(0);
    world.run(0.2e9);
    expect(world.host.counters.deadPeers).toBe(1);
    expect(world.host.counters.connectionsLost).toBe(1);
    expect(world.host.state).toBe('up');
    expect(arrived(world.boxUser)).toEqual([1]);
  });

  it('resumes within a tenth of the window once the peer is in reach again', () => {
    const world = new LinkWorld().up();
    world.paths[0]!.cut('reset');
    // Pauses of 50, 100, 200 ms and so on would by then be as long as what is left of 3 s.
    world.run(2.65e9);
    world.paths[0]!.heal();
    world.run(0.3e9 + 1e6);
    expect(world.host.state).toBe('up');
    expect(world.hostUser.session).toBe(1);
    expect(world.hostUser.downs).toEqual([]);
  });

  it('ends the session when the resume window does', () => {
    const world = new LinkWorld().up();
    world.paths[0]!.cut('reset');
    world.run(3e9 - 1);
    expect(world.hostUser.downs).toEqual([]);
    expect(world.boxUser.downs).toEqual([]);
    world.run(1);
    expect(world.hostUser.downs).toEqual(['not resumed within 3000 ms']);
    expect(world.boxUser.downs).toEqual(['not resumed within 3000 ms']);
    expect(world.hostUser.link).toBeUndefined();
    world.paths[0]!.heal();
    world.run(2e9);
    expect(world.hostUser.session).toBe(2);
    expect(world.boxUser.session).toBe(2);
  });

  it('takes the place of a half-open one of the same session', () => {
    const world = new LinkWorld({ paths: [{ rttNs: 1000 }, { rttNs: 1000 }] }).up();
    // The host drops it; as the path is silent the box does not hear of that.
    world.paths[0]!.cut('silent');
    world.host.dropConnection(world.now, 'test');
    world.settle();
    world.run(1e6);
    expect(world.host.state).toBe('up');
    expect(world.boxUser.session).toBe(1);
    post(world, 'box', 1);
    world.run(1e6);
    expect(arrived(world.hostUser)).toEqual([1]);
    expect(world.box.counters().get('h1')!.resumes).toBe(1);
  });

  it('is tried again after 50 ms, doubling to 1 s, over the paths in turn', () => {
    const asked: [number, number][] = [];
    const host: HostLink = new HostLink({
      local: HOST,
      peer: BOX,
      paths: 2,
      user: new RecordingUser(),
      newSessionId: () => 1,
      sink: { connect: (now, path) => asked.push([now / 1e6, path]) },
    });
    host.start(nanos(0));
    for (let attempt = 0; attempt < 7; attempt++) {
      const askedAtNs = asked.at(-1)![0] * 1e6;
      host.connectFailed(nanos(askedAtNs), 'refused');
      host.tick(nanos(host.nextDeadlineNs()));
    }
    expect(asked).toEqual([
      [0, 0],
      [50, 1],
      [150, 0],
      [350, 1],
      [750, 0],
      [1550, 1],
      [2550, 0],
      [3550, 1],
    ]);
  });
});

describe('sessions', () => {
  it('a restarted host has to wait until its old connection is known to be gone', () => {
    const world = new LinkWorld().up();
    world.replaceHost();
    world.run(1e9);
    expect(world.boxUser.downs).toEqual(['the host has begun another session']);
    expect(world.hostUser.session).toBe(2);
    expect(world.boxUser.session).toBe(2);
    post(world, 'host', 1);
    world.run(1e6);
    expect(arrived(world.boxUser)).toEqual([1]);
  });

  it('a second session of one identity is refused and reported while the first lives', () => {
    const world = new LinkWorld().up();
    const other = new RecordingUser();
    const second = world.newHost(other);
    second.start(world.now);
    world.run(1e6);
    expect(other.session).toBe(0);
    expect(second.counters.refusals).toBe(1);
    expect(world.reports).toContain('h1: refused: a session of host/h1 is live');
    expect(world.box.counters().get('h1')!.refusals).toBe(1);
    expect(world.host.state).toBe('up');
  });

  it('a restarted box does not know the session: it ends, another begins', () => {
    const world = new LinkWorld({ box: { resumeWindowNs: 1e6 } }).up();
    // The box forgets the session after 1 ms, as if it had restarted.
    world.paths[0]!.cut('reset');
    world.run(10e6);
    world.paths[0]!.heal();
    world.run(1e9);
    expect(world.hostUser.downs).toEqual(['the peer has restarted: it does not know the session']);
    expect(world.hostUser.session).toBe(2);
  });

  it('ends at once on both sides when one stops', () => {
    const world = new LinkWorld().up();
    world.host.stop(world.now, 'maintenance');
    world.settle();
    world.run(1e6);
    expect(world.hostUser.downs).toEqual(['maintenance']);
    expect(world.boxUser.downs).toEqual(['the peer ended the session: maintenance']);
    world.run(5e9);
    expect(world.host.state).toBe('stopped');
  });

  it('does not begin with a box of another name', () => {
    const world = new LinkWorld();
    const user = new RecordingUser();
    const reports: string[] = [];
    const host: HostLink = new HostLink({
      local: HOST,
      peer: { kind: 'box', id: 'other' },
      paths: 1,
      user,
      newSessionId: () => 1,
      sink: { connect: () => {}, report: (_now, _peer, message) => reports.push(message) },
    });
    host.start(world.now);
    const pipe = new FakeTransport(BOX);
    host.connected(world.now, pipe);
    expect(pipe.isClosed).toBe(true);
    expect(reports).toEqual(['box/b1 answered, not box/other']);
  });
});

describe('a connection that ends before HELLO', () => {
  // It once left no line anywhere.
  it.each(['closed by the peer', 'a frame of 1195725856 bytes'])('is reported: %s', (reason) => {
    const reports: [string, Transport | undefined][] = [];
    const links = new BoxLinks({
      local: BOX,
      user: new RecordingUser(),
      report: (_now, peer, message, transport) =>
        reports.push([`${peer.kind}/${peer.id} ${message}`, transport]),
    });
    const pipe = new FakeTransport(HOST);
    links.accept(nanos(0), pipe).closed(nanos(1), reason);
    expect(reports).toEqual([[`host/${HOST.id} connection closed before HELLO: ${reason}`, pipe]]);
  });
});
