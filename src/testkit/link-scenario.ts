/**
 * A life of one link from a seed: traffic of all classes both ways over paths that lose, duplicate,
 * reorder and are cut, with credit windows down to one TLP and receivers that keep what they got for
 * a while. At the end the world heals, and what was delivered is compared with what was sent:
 * exactly once and in order while the session lived (invariant 6b), nothing stuck (7), a prefix of
 * each class in a session that ended (6c).
 */
import { Prng } from '#base/prng';
import type { LinkCounters } from '#fabric/link-counters';
import type { CreditWindow, LinkFaults, LinkOptions } from '#fabric/link-options';
import { mayPass, orderingClassOf, type OrderingSubject, Pass } from '#pcie/ordering';
import { ATTR_ID_BASED_ORDERING, ATTR_RELAXED_ORDERING, FlowClass } from '#pcie/tlp';
import { serialOf, serialTlp } from './link-tlps.ts';
import { LinkWorld, type RecordingUser } from './link-world.ts';

export interface LinkScenarioOptions {
  /** Cuts may outlast the resume window, and the host process may be replaced. */
  readonly sessionsMayEnd?: boolean;
  /** Receivers keep every non-posted request until the others have arrived. */
  readonly nonPostedStuck?: boolean;
  readonly faults?: LinkFaults;
}

interface Sent {
  readonly serial: number;
  readonly session: number;
  readonly flow: FlowClass;
  readonly subject: OrderingSubject;
}

const FLOWS = [FlowClass.POSTED, FlowClass.NON_POSTED, FlowClass.COMPLETION] as const;
const TOTAL_STEPS = 40;
const HEAL_NS = 120e9;

/** One direction: who sends, who receives, what was sent. */
class Flow {
  readonly sent: Sent[] = [];
  readonly bySerial = new Map<number, { item: Sent; index: number }>();
  /** Serial numbers as they were delivered. */
  readonly arrived: number[] = [];
  readonly kept: { flow: FlowClass; payloadBytes: number }[] = [];
  readonly keptTlps: [number, number, number] = [0, 0, 0];
  wanted = 0;
  held = false;
  overrun = '';
  readonly from: RecordingUser;
  readonly to: RecordingUser;

  constructor(from: RecordingUser, to: RecordingUser) {
    this.from = from;
    this.to = to;
  }
}

export interface LinkScenarioResult {
  /** What went wrong, or `undefined`. */
  readonly wrong: string | undefined;
  /** Of both ends, so that a test can tell that the machinery was at work. */
  readonly counters: readonly LinkCounters[];
}

/** Runs it. */
export function runLinkScenario(
  seed: number,
  options: LinkScenarioOptions = {},
): LinkScenarioResult {
  const prng = new Prng(seed);
  const linkOptions = (): Partial<LinkOptions> => randomOptions(prng, options.faults ?? {});
  const receiverOptions = { host: linkOptions(), box: linkOptions() };
  const rate = prng.pick([Infinity, 100e9, 1e9]);
  const path = {
    rttNs: prng.pick([0, 2_000, 50_000]),
    rateToListener: rate,
    rateToDialer: rate,
    loss: prng.pick([0, 0, 0.02, 0.2]),
    duplication: prng.pick([0, 0, 0.1]),
    reordering: prng.pick([0, 0, 0.1]),
    reorderDelayNs: 100_000,
  };
  const world = new LinkWorld({ seed: prng.uint32(), paths: [path, path], ...receiverOptions });
  const flows = [new Flow(world.hostUser, world.boxUser), new Flow(world.boxUser, world.hostUser)];
  let serials = 0;
  for (const [index, flow] of flows.entries()) {
    const windows = (index === 0 ? receiverOptions.box : receiverOptions.host).windows;
    flow.to.onTlp = (_now, _link, tlp) => {
      const serial = serialOf(tlp.bytes);
      flow.arrived.push(serial);
      const sent = flow.bySerial.get(serial)?.item;
      const keep =
        sent !== undefined &&
        (options.nonPostedStuck === true ? sent.flow === FlowClass.NON_POSTED : prng.chance(0.3));
      if (!keep) return true;
      const payloadBytes = payloadOf(tlp.bytes);
      flow.kept.push({ flow: sent.flow, payloadBytes });
      flow.keptTlps[sent.flow]++;
      const window = windows?.[sent.flow];
      if (window !== undefined && flow.keptTlps[sent.flow] > window.tlps) {
        flow.overrun = `more than the window of ${window.tlps} TLPs of class ${sent.flow} kept`;
      }
      return false;
    };
    // What was kept of a session goes with it.
    flow.to.onDown = () => {
      flow.kept.length = 0;
      flow.keptTlps.fill(0);
    };
    flow.from.onResume = () => send(flow);
  }

  const send = (flow: Flow): void => {
    const link = flow.from.link;
    if (link === undefined) {
      flow.wanted = 0;
      return;
    }
    while (flow.wanted > 0) {
      const kind = prng.pick(FLOWS);
      const payloadBytes =
        kind === FlowClass.NON_POSTED ? prng.pick([0, 8]) : 4 * prng.pick([1, 2, 16, 128, 1024]);
      if (!link.canSend(kind, payloadBytes)) return;
      const attributes = prng.pick([0, 0, 0, ATTR_RELAXED_ORDERING, ATTR_ID_BASED_ORDERING]);
      const source = prng.below(2) + 1;
      const serial = ++serials;
      const tlp = serialTlp(kind, serial, payloadBytes, attributes, source);
      link.sendTlp(world.now, prng.below(4), 7, tlp);
      const item: Sent = {
        serial,
        session: flow.from.session,
        flow: kind,
        subject: {
          ordering: orderingClassOf(tlp.kind),
          attributes,
          sourceId: source,
          transactionId: serial,
          completesIoOrConfigWrite: false,
        },
      };
      flow.bySerial.set(serial, { item, index: flow.sent.length });
      flow.sent.push(item);
      flow.wanted--;
    }
  };
  const release = (flow: Flow, count: number): void => {
    for (let index = 0; index < count && flow.kept.length > 0; index++) {
      const kept = flow.kept.splice(prng.below(flow.kept.length), 1)[0];
      if (kept === undefined) return;
      flow.keptTlps[kept.flow]--;
      flow.to.link?.release(world.now, kept.flow, kept.payloadBytes);
    }
  };

  world.up();
  for (let step = 0; step < TOTAL_STEPS; step++) {
    const flow = prng.pick(flows);
    const action = prng.below(10);
    if (action < 5) {
      flow.wanted += prng.pick([1, 1, 3, 10, 40]);
      send(flow);
      if (prng.chance(0.8)) flow.from.link?.flush(world.now);
    } else if (action < 7) {
      if (options.nonPostedStuck !== true) release(flow, prng.between(1, 8));
    } else if (action < 8) {
      const cut = prng.pick(world.paths);
      cut.cut(prng.pick(['reset', 'silent'] as const));
      const longest = options.sessionsMayEnd === true ? 6e9 : 1e9;
      world.run(prng.float() * longest);
      cut.heal();
    } else if (action < 9) {
      for (const each of world.paths) {
        each.setOptions({ loss: prng.pick([0, 0.05, 0.3]), duplication: prng.pick([0, 0.2]) });
      }
    } else if (options.sessionsMayEnd === true && prng.chance(0.3)) {
      // The old process is gone: what it had not delivered is lost, nobody tells its user.
      world.hostUser.linkDown(world.now, world.hostUser.link as never, 'killed');
      world.replaceHost(receiverOptions.host);
    }
    world.settle();
    world.run(prng.pick([100, 5_000, 1e6, 20e6]));
  }

  // Heal: everything that can still arrive must.
  for (const each of world.paths) {
    each.heal();
    each.setOptions({ loss: 0, duplication: 0, reordering: 0 });
  }
  const stuck = options.nonPostedStuck === true;
  const limitNs = world.now + HEAL_NS;
  const missing = (): string | undefined => {
    for (const flow of flows) {
      if (flow.overrun !== '') return flow.overrun;
      const session = flow.from.session;
      const arrived = new Set(flow.arrived);
      const late = flow.sent.filter(
        (item) =>
          item.session === session &&
          !arrived.has(item.serial) &&
          !(stuck && item.flow === FlowClass.NON_POSTED),
      );
      if (flow.from.link === undefined) return 'no session after the network healed';
      if (late.length > 0) return `${late.length} TLPs of the live session never arrived`;
    }
    return undefined;
  };
  while (missing() !== undefined && world.now < limitNs) {
    for (const flow of flows) {
      if (!stuck) release(flow, 1000);
      flow.from.link?.flush(world.now);
    }
    world.settle();
    world.run(100e6);
  }
  const counters = [world.host.counters, ...world.box.counters().values()];
  const wrong = missing() ?? endedWrongly(world, options) ?? flows.map(checkFlow).find(isText);
  return { wrong, counters };
}

function endedWrongly(world: LinkWorld, options: LinkScenarioOptions): string | undefined {
  if (options.sessionsMayEnd !== true && world.hostUser.downs.length > 0) {
    return `the session ended: ${world.hostUser.downs[0]}`;
  }
  return world.host.counters.protocolErrors > 0 ? 'a protocol error was counted' : undefined;
}

function isText(value: string | undefined): value is string {
  return value !== undefined;
}

function checkFlow(flow: Flow): string | undefined {
  const seen = new Set<number>();
  const positions: number[] = [];
  for (const serial of flow.arrived) {
    const known = flow.bySerial.get(serial);
    if (known === undefined) return `TLP ${serial} was never sent`;
    if (seen.has(serial)) return `TLP ${serial} was delivered twice`;
    seen.add(serial);
    positions.push(known.index);
  }
  // Nothing is missing before something that arrived, in one class and session.
  for (const kind of FLOWS) {
    const missing = new Set<number>();
    for (const item of flow.sent) {
      if (item.flow !== kind) continue;
      if (!seen.has(item.serial)) missing.add(item.session);
      else if (missing.has(item.session)) return `a TLP of class ${kind} was lost in the middle`;
    }
  }
  // Whoever arrived before an earlier one must have been allowed to overtake it.
  for (let later = 0; later < positions.length; later++) {
    const first = flow.sent[positions[later] as number] as Sent;
    for (let index = later + 1; index < positions.length; index++) {
      if ((positions[index] as number) >= (positions[later] as number)) continue;
      const overtaken = flow.sent[positions[index] as number] as Sent;
      if (first.flow === overtaken.flow) {
        return `TLP ${first.serial} overtook ${overtaken.serial} of its own class`;
      }
      if (mayPass(first.subject, overtaken.subject) === Pass.NO) {
        return `TLP ${first.serial} must not overtake ${overtaken.serial}`;
      }
    }
  }
  return undefined;
}

function payloadOf(bytes: Uint8Array): number {
  const headerBytes = ((bytes[0] as number) & 0x20) === 0 ? 12 : 16;
  return ((bytes[0] as number) & 0x40) === 0 ? 0 : bytes.length - headerBytes;
}

function randomOptions(prng: Prng, faults: LinkFaults): Partial<LinkOptions> {
  const wide = { tlps: 1000, dataUnits: 100_000 };
  const window = (): CreditWindow => ({
    tlps: prng.pick([1, 2, 5, 1000]),
    dataUnits: prng.pick([256, 300, 10_000]),
  });
  return {
    windows: prng.chance(0.3) ? [wide, wide, wide] : [window(), window(), window()],
    maxFrameBytes: prng.pick([8192, 32768]),
    replayBytes: prng.pick([4 * 32768, 1 << 20]),
    replayFrames: prng.pick([4, 64, 1024]),
    queueTlps: prng.pick([4, 64]),
    queueBytes: prng.pick([8192, 65536]),
    initialSequence: prng.pick([0, 0x7fff_fffa, 0xffff_fffa]),
    replayTimerFloorNs: prng.pick([200_000, 10e6]),
    deadPeerNs: 500e6,
    pingIntervalNs: 100e6,
    handshakeTimeoutNs: 500e6,
    helloRetryNs: 20e6,
    ackFrames: prng.pick([1, 4, 64]),
    faults,
  };
}
