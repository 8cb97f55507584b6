import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, FlowClass, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { arrivedTlp } from '#testkit/arrived-tlp';
import { answerTo, FakeDevice } from '#testkit/fake-device';
import { encoded, FakeLink } from '#testkit/fake-link';
import { configRequest, NOW } from '#testkit/host-proxy-world';
import { BoxProxy, type BoxProxyEvent, type BoxProxyOptions } from './box-proxy.ts';
import { SlotState } from './link-user.ts';
import type { BoxRow } from './mapping-table.ts';

const { SC, UR } = CompletionStatus;
const { POSTED, NON_POSTED, COMPLETION } = FlowClass;

function row(slot: number, generation: number, host = 'h'): BoxRow {
  return { slot, valid: true, used: true, host, path: 'net', generation };
}

/** Slots 0 to 2, generation 11 each, behind host h whose session is up. */
function readyBox(options: Partial<BoxProxyOptions> = {}) {
  const devices = [0, 1, 2].map(() => new FakeDevice());
  const box = new BoxProxy({ boxId: 'b', devices: new Map(devices.entries()), ...options });
  const link = new FakeLink('host', 'h');
  expect(box.setTable(NOW, [row(0, 11), row(1, 11), row(2, 11)])).toEqual([]);
  box.linkUp(NOW, link);
  link.takeStates();
  for (const device of devices) device.calls = [];
  return { box, link, devices: devices as [FakeDevice, FakeDevice, FakeDevice] };
}

function down(box: BoxProxy, link: FakeLink, tlp: Tlp, slot = 0, generation = 11): boolean {
  return box.linkTlp(NOW, link, arrivedTlp(slot, generation, encoded(tlp)));
}

function mmioRead(tag: number): Tlp {
  const tlp = new Tlp();
  setMemoryRead(tlp, 0x4000_0000, 4, 0x0008, tag);
  return tlp;
}

function dmaWrite(bytes: number): Tlp {
  const tlp = new Tlp();
  setMemoryWrite(tlp, 0x1_0000, bytes, 0x0300);
  tlp.payload = new Uint8Array(bytes);
  return tlp;
}

function dmaRead(tag: number): Tlp {
  const tlp = new Tlp();
  setMemoryRead(tlp, 0x1_0000, 64, 0x0300, tag);
  return tlp;
}

describe('rows', () => {
  test('a slot whose scrub fails is quarantined, and its host told that it is gone', () => {
    const events: BoxProxyEvent[] = [];
    const { box, link, devices } = readyBox({ onEvent: (_now, event) => events.push(event) });
    devices[0].failScrub = true;
    expect(box.setTable(NOW, [row(0, 12), row(1, 11), row(2, 11)])).toEqual([]);
    expect(box.slotState(0)).toBe('quarantined');
    expect(link.takeStates()).toEqual([
      { slot: 0, generation: 11, state: SlotState.GONE },
      { slot: 0, generation: 12, state: SlotState.GONE },
    ]);
    expect(events).toContainEqual({
      kind: 'quarantined',
      slot: 0,
      reason: 'scrub failed: memory test failed',
    });
    devices[0].failScrub = false;
    expect(box.setTable(NOW, [row(0, 13), row(1, 11), row(2, 11)])).toEqual([]);
    expect(box.slotState(0)).toBe('quarantined');
    down(box, link, mmioRead(1), 0, 13);
    expect(link.take()).toMatchObject([{ generation: 13, tlp: { status: UR } }]);
    expect(devices[0].take()).toEqual([]);
  });

  test('a row for a slot without a device is answered, and reported gone', () => {
    const { box, link } = readyBox();
    expect(box.setTable(NOW, [row(0, 11), row(1, 11), row(2, 11), row(9, 11)])).toEqual([]);
    expect(link.takeStates()).toEqual([{ slot: 9, generation: 11, state: SlotState.GONE }]);
    down(box, link, mmioRead(1), 9);
    expect(link.take()).toMatchObject([{ slot: 9, generation: 11, tlp: { status: UR } }]);
    expect(box.strayCounters.staleNonPosted).toBe(1);
  });

  test('slots without a row are reset and scrubbed when asked, once, and then are clean', () => {
    const devices = [0, 1].map(() => new FakeDevice());
    const box = new BoxProxy({ boxId: 'b', devices: new Map(devices.entries()) });
    expect(box.setTable(NOW, [row(0, 11)])).toEqual([]);
    for (const device of devices) device.calls = [];
    expect([0, 1, 2].map((slot) => box.isClean(slot))).toEqual([false, false, false]);
    box.scrubUnbound(NOW);
    expect(devices.map(({ calls }) => calls)).toEqual([[], ['reset', 'scrub']]);
    box.scrubUnbound(NOW);
    expect(devices[1]!.calls).toHaveLength(2);
    expect([0, 1, 2].map((slot) => box.isClean(slot))).toEqual([false, true, false]);
    expect(box.setTable(NOW, [])).toEqual([]);
    expect(box.isClean(0)).toBe(true);
  });

  test('a slot without a row whose scrub fails is quarantined', () => {
    const device = new FakeDevice();
    const box = new BoxProxy({ boxId: 'b', devices: new Map([[0, device]]) });
    device.failScrub = true;
    box.scrubUnbound(NOW);
    expect([box.slotState(0), box.isClean(0)]).toEqual(['quarantined', false]);
  });

  test('the same table again disturbs nobody; a contained row in it stays contained', () => {
    const { box, link, devices } = readyBox();
    link.up = false;
    box.linkDown(NOW, link, 'cut');
    for (const device of devices) device.calls = [];
    expect(box.setTable(NOW, box.rows)).toEqual([]);
    expect(box.slotState(0)).toBe('contained');
    expect(devices[0].calls).toEqual([]);
    expect(box.setTable(NOW, [row(0, 11, 'other')])).toMatchObject([
      { row: 0, field: 'generation', message: /above 11/ },
    ]);
  });
});

describe('down', () => {
  test('type 1 config and kinds that are not handled get UR and reach no device', () => {
    const { box, link, devices } = readyBox();
    down(box, link, configRequest(TlpKind.CfgRd1, 3, 0, 0xf));
    expect(link.take()).toMatchObject([{ tlp: { status: UR } }]);
    // MRdLk is 01h (table 2-3).
    const locked = encoded(mmioRead(4));
    locked[0] = 0x01;
    expect(box.linkTlp(NOW, link, arrivedTlp(0, 11, locked))).toBe(true);
    expect(link.take()).toMatchObject([{ tlp: { status: UR, tag: 4 } }]);
    expect(box.counters(0).unroutable).toBe(2);
    const cut = encoded(mmioRead(5)).subarray(0, 8);
    expect(box.linkTlp(NOW, link, arrivedTlp(0, 11, cut))).toBe(true);
    expect(link.take()).toEqual([]);
    expect(box.counters(0).malformed).toBe(1);
    expect(devices[0].take()).toEqual([]);
  });

  test('a wrong ECRC was dropped in silence: it is counted, passed on, and the read answered', () => {
    const { box, link, devices } = readyBox();
    const request = mmioRead(6);
    request.digest = true;
    const bytes = encoded(request);
    bytes[bytes.length - 1] = (bytes.at(-1) as number) ^ 1;
    // Once, however often it has to wait.
    link.room[COMPLETION] = 0;
    expect(box.linkTlp(NOW, link, arrivedTlp(0, 11, bytes))).toBe(false);
    link.room[COMPLETION] = Infinity;
    box.linkResume(NOW, link);
    expect(devices[0].take()).toMatchObject([{ kind: TlpKind.MRd32, tag: 6, digest: true }]);
    expect(link.take()).toMatchObject([{ tlp: { kind: TlpKind.CplD, tag: 6, status: SC } }]);
    expect(box.counters(0)).toMatchObject({ ecrc: 1, malformed: 0 });
  });

  test('requests wait with their credit while the link takes no answers; writes do not', () => {
    const { box, link, devices } = readyBox();
    const [device] = devices;
    link.room[COMPLETION] = 0;
    expect(down(box, link, mmioRead(1))).toBe(false);
    expect(down(box, link, mmioRead(2))).toBe(false);
    const write = new Tlp();
    setMemoryWrite(write, 0x4000_0000, 4, 0x0008);
    write.payload = new Uint8Array(4);
    expect(down(box, link, write)).toBe(true);
    expect(device.take().map(({ kind }) => kind)).toEqual([TlpKind.MWr32]);
    link.room[COMPLETION] = 1;
    box.linkResume(NOW, link);
    expect(link.take().map(({ tlp }) => tlp.tag)).toEqual([1]);
    link.room[COMPLETION] = Infinity;
    box.linkResume(NOW, link);
    expect(link.take().map(({ tlp }) => tlp.tag)).toEqual([2]);
    expect(link.released).toEqual([
      { flow: NON_POSTED, payloadBytes: 0 },
      { flow: NON_POSTED, payloadBytes: 0 },
    ]);
  });

  test('completions of a device are always taken, and kept in order until the link takes them', () => {
    const { box, link, devices } = readyBox();
    const [device] = devices;
    device.answers = false;
    for (const tag of [1, 2, 3]) down(box, link, mmioRead(tag));
    const requests = device.take();
    link.room[COMPLETION] = 1;
    for (const request of requests) {
      expect(device.port.canSend(COMPLETION, 4)).toBe(true);
      device.port.send(NOW, answerTo(request));
    }
    expect(link.take().map(({ tlp }) => tlp.tag)).toEqual([1]);
    // Room again, but not through the queue.
    link.room[COMPLETION] = Infinity;
    expect(down(box, link, mmioRead(4))).toBe(false);
    box.linkResume(NOW, link);
    expect(link.take().map(({ tlp }) => tlp.tag)).toEqual([2, 3]);
    expect(device.take().map(({ tag }) => tag)).toEqual([4]);
  });

  test('completions kept for a slot that was fenced since are dropped', () => {
    const { box, link, devices } = readyBox();
    const [device] = devices;
    device.answers = false;
    down(box, link, mmioRead(1));
    link.room[COMPLETION] = 0;
    device.port.send(NOW, answerTo(device.take()[0] as Tlp));
    expect(box.setTable(NOW, [row(0, 12), row(1, 11), row(2, 11)])).toEqual([]);
    link.room[COMPLETION] = Infinity;
    box.linkResume(NOW, link);
    expect(link.take()).toEqual([]);
    expect(box.counters(0).dropped).toBe(1);
  });
});

describe('up', () => {
  test("a limit of the box counts a slot's requests, and wakes it when one has ended", () => {
    const { box, link, devices } = readyBox({ outstandingReads: 2 });
    const [device, other] = devices;
    for (const tag of [1, 2]) {
      expect(device.port.canSend(NON_POSTED, 0)).toBe(true);
      device.port.send(NOW, dmaRead(tag));
    }
    expect(device.port.canSend(NON_POSTED, 0)).toBe(false);
    expect(device.port.canSend(POSTED, 64)).toBe(true);
    expect(other.port.canSend(NON_POSTED, 0)).toBe(true);
    const [first] = link.take();
    down(box, link, answerTo(first?.tlp as Tlp));
    expect(device.resumes).toBe(1);
    expect(device.port.canSend(NON_POSTED, 0)).toBe(true);
  });

  test('slots that wait for the link get shares of it in turn', () => {
    const { box, link, devices } = readyBox({ fairShareBytes: 1024 });
    // Each device always has 256-byte writes to send; the link takes 12 at a time.
    const counts = [0, 0, 0];
    const pump = (index: number): void => {
      const device = devices[index] as FakeDevice;
      while (device.port.canSend(POSTED, 256)) {
        device.port.send(NOW, dmaWrite(256));
        counts[index] = (counts[index] as number) + 1;
      }
    };
    for (const [index, device] of devices.entries()) device.onResume = () => pump(index);
    link.room[POSTED] = 12;
    for (const index of [0, 1, 2]) pump(index);
    for (let turn = 0; turn < 30; turn++) {
      link.room[POSTED] = 12;
      box.linkResume(NOW, link);
      expect(link.room[POSTED]).toBe(0);
    }
    // 31 × 12 writes in all. The first took the link alone; from then on the three share it, to
    // within one share of 3 writes (3 × 280 bytes are under 1024, 4 × 280 are not).
    expect(counts.reduce((sum, count) => sum + count)).toBe(372);
    const shared = [(counts[0] as number) - 12, counts[1] as number, counts[2] as number];
    expect(Math.max(...shared) - Math.min(...shared)).toBeLessThanOrEqual(3);
  });

  test('one slot alone has all of the link', () => {
    const { link, devices } = readyBox({ fairShareBytes: 1024 });
    const [device] = devices;
    link.room[POSTED] = 100;
    let sent = 0;
    for (; device.port.canSend(POSTED, 256); sent++) device.port.send(NOW, dmaWrite(256));
    expect(sent).toBe(100);
  });

  test('a device that asks without a session is answered UR, not within its own call', () => {
    const { box, link, devices } = readyBox();
    const [device] = devices;
    link.up = false;
    box.linkDown(NOW, link, 'cut');
    expect(device.calls).toEqual(['reset']);
    device.port.send(NOW, dmaRead(9));
    device.port.send(NOW, dmaWrite(64));
    expect(device.take()).toEqual([]);
    expect(box.nextDeadlineNs()).toBe(NOW);
    box.tick(NOW);
    expect(device.take().map((tlp) => [tlp.tag, tlp.status])).toEqual([[9, UR]]);
    expect([box.counters(0).aborted, box.counters(0).dropped]).toEqual([1, 1]);
    expect(box.nextDeadlineNs()).toBe(Infinity);
  });

  test('devices are driven at their own deadlines', () => {
    const { box, devices } = readyBox();
    devices[1].deadlineNs = 500;
    expect(box.nextDeadlineNs()).toBe(500);
    box.tick(499 as typeof NOW);
    box.tick(500 as typeof NOW);
    expect(devices.map(({ ticks }) => ticks)).toEqual([0, 1, 0]);
  });

  test('what is answered to a device must have been asked', () => {
    const { box, link, devices } = readyBox();
    const [device] = devices;
    device.port.send(NOW, dmaRead(1));
    const [sent] = link.take();
    const answer = answerTo(sent?.tlp as Tlp, 0);
    expect(answer.status).toBe(SC);
    down(box, link, answer, 1);
    down(box, link, Object.assign(answerTo(sent?.tlp as Tlp, 0), { tag: 2 }));
    expect(device.take()).toEqual([]);
    down(box, link, answer);
    down(box, link, answer);
    expect(device.take().map(({ tag }) => tag)).toEqual([1]);
    expect([0, 1].map((slot) => box.counters(slot).unexpectedCompletions)).toEqual([2, 1]);
  });
});
