import { AER_CAPABILITY_ID, AdvancedErrorReporting, UncorrectableError } from '#pcie/aer';
import { completeWithData, completeWithoutData } from '#pcie/completion';
import { ConfigSpace } from '#pcie/config-space';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, FlowClass, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { encoded } from '#testkit/fake-link';
import {
  configRequest,
  HostProxyWorld,
  hostRow,
  NOW,
  PCIE_OFFSET,
} from '#testkit/host-proxy-world';
import { Refusal } from './counters.ts';
import type { HostProxyEvent } from './host-proxy.ts';
import { SlotState } from './link-user.ts';

const BDF = 0x0300;
const RW = { read: true, write: true };
const { SC, UR, CRS } = CompletionStatus;

/** Slot 7 of box b, generation 11 is virtual slot 0, with bus mastering on and memory at 10000h. */
function readyWorld(options: ConstructorParameters<typeof HostProxyWorld>[0] = {}) {
  const world = new HostProxyWorld(options);
  world.ready();
  world.setBusMaster(0, true);
  const memory = Uint8Array.from({ length: 8192 }, (_, index) => (index * 7 + (index >> 8)) & 0xff);
  world.proxy.registerMemory(0x1_0000, memory, RW);
  return { world, memory };
}

function read(address: number, bytes: number, tag = 1): Uint8Array {
  const tlp = new Tlp();
  setMemoryRead(tlp, address, bytes, BDF, tag);
  return encoded(tlp);
}

function up(world: HostProxyWorld, bytes: Uint8Array): boolean {
  return world.receive(world.linkB, 7, 11, bytes);
}

describe('down: routing', () => {
  test('memory goes to the slot whose window holds it, as it came', () => {
    const { world } = readyWorld();
    for (const slot of [0, 1, 2]) {
      const { row, link } = world.routeOf(slot);
      for (const address of [row.nonPrefetchable.base, row.prefetchable.limit - 3]) {
        const tlp = new Tlp();
        setMemoryWrite(tlp, address, 4, 0x0008);
        tlp.payload = Uint8Array.of(1, 2, 3, 4);
        link.take();
        world.proxy.request(NOW, tlp);
        const [sent] = link.take();
        expect([sent?.slot, sent?.generation]).toEqual([row.slot, row.generation]);
        expect(sent?.bytes).toEqual(encoded(tlp));
      }
    }
  });

  test('type 1 config to the secondary bus becomes type 0; other devices and buses get UR', () => {
    const { world } = readyWorld();
    world.proxy.request(NOW, configRequest(TlpKind.CfgRd1, 3, 0x10, 0xf));
    const [sent] = world.linkB.take();
    expect(sent?.tlp).toMatchObject({ kind: TlpKind.CfgRd0, completerId: BDF, register: 0x10 });
    expect(world.root.takeCompletions()).toEqual([]);
    const wrongDevice = configRequest(TlpKind.CfgRd1, 3, 0, 0xf);
    wrongDevice.completerId = 0x0308;
    const wrongBus = configRequest(TlpKind.CfgRd1, 9, 0, 0xf);
    const type0 = configRequest(TlpKind.CfgRd0, 3, 0, 0xf);
    for (const request of [wrongDevice, wrongBus, type0]) {
      world.proxy.request(NOW, request);
      expect(world.root.takeCompletions().map(({ status }) => status)).toEqual([UR]);
    }
    expect(world.linkB.take()).toEqual([]);
  });

  test('what is in no window, or above 2^53, gets UR; a posted write is dropped; both counted', () => {
    const { world } = readyWorld();
    const high = new Tlp();
    setMemoryRead(high, 0x10_0000_0000, 4, 0, 2);
    high.addressHi += 0x20_0000;
    const low = new Tlp();
    setMemoryRead(low, 0x2000_0000, 4, 0, 3);
    const write = new Tlp();
    setMemoryWrite(write, 0x2000_0000, 4, 0);
    write.payload = new Uint8Array(4);
    for (const request of [high, low, write]) world.proxy.request(NOW, request);
    expect(world.root.takeCompletions().map((tlp) => [tlp.tag, tlp.status])).toEqual([
      [2, UR],
      [3, UR],
    ]);
    expect(world.proxy.strayCounters.unroutable).toBe(3);
  });

  test('a slot its box has not reported ready answers config with the retry status', () => {
    const world = new HostProxyWorld();
    expect(world.proxy.setTable(NOW, [hostRow(0, 11)])).toEqual([]);
    expect(world.proxy.slotState(0)).toBe('waiting');
    world.proxy.request(NOW, configRequest(TlpKind.CfgRd1, 3, 0, 0xf));
    expect(world.root.takeCompletions().map(({ status }) => status)).toEqual([CRS]);
  });

  test("whether a request is taken is the link's to say", () => {
    const { world } = readyWorld();
    world.linkB.room[FlowClass.POSTED] = 0;
    expect(world.proxy.canRequest(0, FlowClass.POSTED, 64)).toBe(false);
    expect(world.proxy.canRequest(0, FlowClass.NON_POSTED, 0)).toBe(true);
    expect(world.proxy.canRequest(2, FlowClass.POSTED, 64)).toBe(true);
    world.linkB.up = false;
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    expect(world.proxy.canRequest(0, FlowClass.POSTED, 64)).toBe(true);
  });
});

describe('slots come up and go', () => {
  test('READY that came before the row takes effect with the row, for that generation alone', () => {
    const world = new HostProxyWorld();
    world.proxy.linkUp(NOW, world.linkB);
    world.proxy.linkSlotState(NOW, world.linkB, 7, 11, SlotState.READY);
    world.proxy.linkSlotState(NOW, world.linkB, 8, 11, SlotState.READY);
    expect(world.root.links).toEqual([]);
    expect(world.proxy.setTable(NOW, [hostRow(0, 11), hostRow(1, 12)])).toEqual([]);
    expect(world.root.links).toEqual([{ virtualSlot: 0, active: true, surprise: false }]);
    expect([0, 1].map((slot) => world.proxy.slotState(slot))).toEqual(['ready', 'waiting']);
  });

  test('another box cannot report the slot ready', () => {
    const world = new HostProxyWorld();
    expect(world.proxy.setTable(NOW, [hostRow(0, 11)])).toEqual([]);
    world.proxy.linkUp(NOW, world.linkC);
    world.proxy.linkSlotState(NOW, world.linkC, 7, 11, SlotState.READY);
    expect(world.proxy.slotState(0)).toBe('waiting');
  });

  test('windows and bus of a bound slot change in place', () => {
    const { world } = readyWorld();
    const moved = { ...hostRow(0, 11), secondaryBus: 77 };
    const rows = world.proxy.rows.map((row) => (row.virtualSlot === 0 ? moved : row));
    expect(world.proxy.setTable(NOW, rows)).toEqual([]);
    expect(world.proxy.slotState(0)).toBe('ready');
    world.proxy.request(NOW, configRequest(TlpKind.CfgRd1, 77, 0, 0xf));
    expect(world.linkB.take()).toHaveLength(1);
    expect(world.root.links.filter(({ active }) => !active)).toEqual([]);
  });

  test('a box slot cannot come back under an old generation behind another virtual slot', () => {
    const { world } = readyWorld();
    const stolen = { ...hostRow(1, 11), slot: 7 };
    const errors = world.proxy.setTable(NOW, [stolen]);
    expect(errors).toMatchObject([{ row: 0, field: 'generation' }]);
    expect(errors[0]?.message).toBe('11 was used before; a new binding needs one above 12');
    expect(world.proxy.slotState(0)).toBe('ready');
  });

  test('events tell what happened, a refusal once per reason', () => {
    const events: HostProxyEvent[] = [];
    const { world } = readyWorld({ onEvent: (_now, event) => events.push(event) });
    up(world, read(0x9_0000, 4));
    up(world, read(0x9_1000, 4));
    world.linkB.up = false;
    world.proxy.linkDown(NOW, world.linkB, 'cable pulled');
    const seen = events.filter((event) => event.virtualSlot === 0);
    expect(seen).toEqual([
      { kind: 'slot-up', virtualSlot: 0, generation: 11 },
      {
        kind: 'refused',
        virtualSlot: 0,
        reason: 'unregistered',
        message: 'virtual slot 0: MRd32 at 0x90000 refused: the host has not opened this memory',
      },
      {
        kind: 'slot-down',
        virtualSlot: 0,
        generation: 11,
        surprise: true,
        reason: 'link to box b is down: cable pulled',
      },
    ]);
    expect(world.proxy.counters(0).refusedTotal).toBe(2);
  });
});

describe('up: DMA', () => {
  // Worked by hand: MPS 128, RCB 64. 10030h + 300 bytes: the first completion may carry 128 bytes
  // but must end at a multiple of 64: 100b0h back to 10080h, 80 bytes; then 128, then 92.
  test('a read is answered in completions cut at MPS and RCB', () => {
    const { world, memory } = readyWorld({ maxPayloadBytes: 128, rcbBytes: 64 });
    expect(up(world, read(0x1_0030, 300))).toBe(true);
    const sent = world.linkB.take().map(({ tlp }) => tlp);
    expect(sent.map((tlp) => [tlp.byteCount, tlp.lowerAddress, tlp.payloadBytes])).toEqual([
      [300, 0x30, 80],
      [220, 0x00, 128],
      [92, 0x00, 92],
    ]);
    const data = sent.flatMap((tlp) => [
      ...tlp.payload.subarray(tlp.payloadOffset, tlp.payloadOffset + tlp.payloadBytes),
    ]);
    expect(data).toEqual([...memory.subarray(0x30, 0x30 + 300)]);
  });

  test('no completion is larger than the payload size the function was set to', () => {
    const { world } = readyWorld({ maxPayloadBytes: 512 });
    world.enumerate(0);
    const sizes = (): number[] => {
      up(world, read(0x1_0000, 512));
      return world.linkB.take().map(({ tlp }) => tlp.payloadBytes);
    };
    // A function that has a PCIe capability starts with 128; 1 in bits 7:5 is 256 (7.5.3.4).
    expect(sizes()).toEqual([128, 128, 128, 128]);
    world.configWrite(0, PCIE_OFFSET + 8, 1 << 5, 0b0011);
    expect(sizes()).toEqual([256, 256]);
  });

  test('a zero-length read is answered with one double word and counts one byte', () => {
    const { world } = readyWorld();
    up(world, read(0x1_0040, 0));
    const [sent] = world.linkB.take();
    expect(sent?.tlp).toMatchObject({ status: SC, byteCount: 1, lowerAddress: 0x40, lengthDw: 1 });
  });

  test('a read the link cannot answer now keeps its credit and goes on where it stopped', () => {
    const { world, memory } = readyWorld({ maxPayloadBytes: 128 });
    world.linkB.room[FlowClass.COMPLETION] = 1;
    expect(up(world, read(0x1_0000, 256, 5))).toBe(false);
    // Behind it in the queue, although it would fit; posted writes never wait.
    expect(up(world, read(0x1_1000, 4, 6))).toBe(false);
    const write = new Tlp();
    setMemoryWrite(write, 0x1_00fc, 4, BDF);
    write.payload = Uint8Array.of(9, 9, 9, 9);
    expect(up(world, encoded(write))).toBe(true);
    expect(memory.slice(0xfc, 0x100)).toEqual(Uint8Array.of(9, 9, 9, 9));
    expect(world.linkB.take().map(({ tlp }) => [tlp.tag, tlp.byteCount])).toEqual([[5, 256]]);
    world.linkB.room[FlowClass.COMPLETION] = Infinity;
    world.proxy.linkResume(NOW, world.linkB);
    expect(world.linkB.take().map(({ tlp }) => [tlp.tag, tlp.byteCount])).toEqual([
      [5, 128],
      [6, 4],
    ]);
    const { NON_POSTED } = FlowClass;
    expect(world.linkB.released).toEqual([
      { flow: NON_POSTED, payloadBytes: 0 },
      { flow: NON_POSTED, payloadBytes: 0 },
    ]);
    expect(world.root.resumes).toBe(1);
  });

  test('nothing queued touches memory that was taken back', () => {
    const { world, memory } = readyWorld({ maxPayloadBytes: 128 });
    world.linkB.room[FlowClass.COMPLETION] = 1;
    expect(up(world, read(0x1_0000, 256, 5))).toBe(false);
    const swap = new Tlp();
    Object.assign(swap, {
      kind: TlpKind.Swap32,
      addressLo: 0x1_0100,
      lengthDw: 1,
      requesterId: BDF,
      tag: 6,
      payload: Uint8Array.of(9, 9, 9, 9),
      payloadBytes: 4,
    });
    expect(up(world, encoded(swap))).toBe(false);
    world.proxy.unregisterMemory(0x1_0000);
    const before = memory.slice();
    world.linkB.take();
    world.linkB.room[FlowClass.COMPLETION] = Infinity;
    world.proxy.linkResume(NOW, world.linkB);
    // What is left of the read, and all of the swap.
    expect(
      world.linkB.take().map(({ tlp }) => [tlp.tag, tlp.status, tlp.byteCount, tlp.kind]),
    ).toEqual([
      [5, UR, 128, TlpKind.Cpl],
      [6, UR, 4, TlpKind.Cpl],
    ]);
    expect(memory).toEqual(before);
  });

  test('a request that waits when its slot is fenced is answered UR under its own generation', () => {
    const { world } = readyWorld();
    world.linkB.room[FlowClass.COMPLETION] = 0;
    expect(up(world, read(0x1_0000, 4))).toBe(false);
    expect(world.proxy.setTable(NOW, [hostRow(0, 21)])).toEqual([]);
    world.linkB.room[FlowClass.COMPLETION] = Infinity;
    world.proxy.linkResume(NOW, world.linkB);
    expect(world.linkB.take()).toMatchObject([{ slot: 7, generation: 11, tlp: { status: UR } }]);
    expect(world.proxy.counters(0).staleNonPosted).toBe(1);
  });

  test('a session that ends takes its waiting requests along', () => {
    const { world } = readyWorld();
    world.linkB.room[FlowClass.COMPLETION] = 0;
    expect(up(world, read(0x1_0000, 4))).toBe(false);
    world.linkB.up = false;
    world.proxy.linkDown(NOW, world.linkB, 'cut');
    world.linkB.up = true;
    world.linkB.room[FlowClass.COMPLETION] = Infinity;
    world.proxy.linkUp(NOW, world.linkB);
    world.proxy.linkResume(NOW, world.linkB);
    expect(world.linkB.take()).toEqual([]);
    expect(world.linkB.released).toEqual([]);
  });

  test('memory and windows cannot share addresses, whichever comes first', () => {
    const { world } = readyWorld();
    const page = new Uint8Array(4096);
    expect(() => world.proxy.registerMemory(0x4000_0000, page, RW)).toThrow(/virtual slot 0/);
    const rows = [{ ...hostRow(0, 20), nonPrefetchable: { base: 0x0, limit: 0xf_ffff } }];
    expect(world.proxy.setTable(NOW, rows)).toMatchObject([
      { row: 0, field: 'nonPrefetchable.base' },
    ]);
  });
});

describe('Max_Payload_Size', () => {
  function write(bytes: number): Uint8Array {
    const tlp = new Tlp();
    setMemoryWrite(tlp, 0x1_0000, bytes, BDF);
    tlp.payload = new Uint8Array(bytes).fill(0xee);
    return encoded(tlp);
  }

  test('writes and completions from a function that are longer passed: malformed (2.2.2)', () => {
    const { world, memory } = readyWorld();
    const before = memory.slice();
    world.enumerate(0);
    up(world, write(132));
    expect(memory).toEqual(before);
    const cpuRead = new Tlp();
    setMemoryRead(cpuRead, 0x4000_0000, 256, 0x0008, 9);
    world.proxy.request(NOW, cpuRead);
    const answer = new Tlp();
    completeWithData(answer, cpuRead, BDF, 0, 256, 256, new Uint8Array(256), 0);
    up(world, encoded(answer));
    expect(world.root.takeCompletions()).toEqual([]);
    expect(world.proxy.counters(0).refused[Refusal.MALFORMED]).toBe(2);
    expect(world.proxy.aer(0).firstError).toBe(UncorrectableError.MALFORMED_TLP);
    // What the host has allowed passes: 256 bytes (Device Control bits 7:5 are 1).
    world.configWrite(0, PCIE_OFFSET + 8, 1 << 5, 0b0011);
    up(world, write(256));
    expect(memory.subarray(0, 256)).toEqual(new Uint8Array(256).fill(0xee));
    up(world, encoded(answer));
    expect(world.root.takeCompletions()).toHaveLength(1);
  });

  test('a function that has not shown what it takes was sent 512 bytes: it gets 128', () => {
    const { world } = readyWorld();
    up(world, read(0x1_0000, 512));
    const answers = world.linkB.take().filter(({ tlp }) => tlp.kind === TlpKind.CplD);
    expect(answers.map(({ tlp }) => tlp.payloadBytes)).toEqual([128, 128, 128, 128]);
  });
});

describe('errors are logged in AER', () => {
  test('as advisory if the requester is told, else as uncorrectable, with the header', () => {
    const config = new ConfigSpace(
      { vendorId: 1, deviceId: 2, revisionId: 0, classCode: 0x060400 },
      1,
    );
    const aer = new AdvancedErrorReporting(config, { ecrc: false });
    expect(config.read32(aer.offset) & 0xffff).toBe(AER_CAPABILITY_ID);
    const { world } = readyWorld({ aer: (slot) => (slot === 0 ? aer : undefined) });
    up(world, read(0x9_0000, 4));
    expect(aer.firstError).toBe(-1);
    // Advisory Non-Fatal is bit 13 of Correctable Error Status, at 10h (7.8.4.5).
    expect(config.read32(aer.offset + 0x10)).toBe(1 << 13);
    const write = new Tlp();
    setMemoryWrite(write, 0x9_0000, 4, BDF);
    write.payload = new Uint8Array(4);
    up(world, encoded(write));
    expect(aer.firstError).toBe(UncorrectableError.UNSUPPORTED_REQUEST);
    expect(config.read32(aer.offset + 0x1c)).toBe(0x4000_0001);
    expect(config.read32(aer.offset + 0x24)).toBe(0x0009_0000);
  });

  test('unexpected completions too', () => {
    const { world } = readyWorld();
    const request = new Tlp();
    setMemoryRead(request, 0x4000_0000, 4, 0x0008, 77);
    const answer = new Tlp();
    completeWithData(answer, request, BDF, 0, 4, 4, new Uint8Array(4), 0);
    up(world, encoded(answer));
    completeWithoutData(answer, request, BDF, UR);
    up(world, encoded(answer));
    expect(world.proxy.counters(0).unexpectedCompletions).toBe(2);
    expect(world.root.takeCompletions()).toEqual([]);
    // Advisory Non-Fatal is masked after reset: it shows in its own status bit alone.
    expect(world.proxy.aer(0).firstError).toBe(-1);
  });
});
