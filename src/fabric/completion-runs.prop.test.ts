/**
 * A run of completions does what its TLPs would do one by one: sent by a host proxy, as frames; received
 * by a box proxy, in the memory of a device, in the order of what it does next, and in all counters.
 */
import { describe, expect, test } from 'vitest';
import { completeWithData } from '#pcie/completion';
import type { Device } from '#pcie/device';
import { Endpoint } from '#pcie/endpoint';
import { completionChunk, setMemoryRead } from '#pcie/split';
import { CompletionStatus, FlowClass, Tlp } from '#pcie/tlp';
import { arrivedTlp } from '#testkit/arrived-tlp';
import { encoded, FakeLink } from '#testkit/fake-link';
import { configRequest, HostProxyWorld, littleEndian, NOW } from '#testkit/host-proxy-world';
import { type ArrivedEntry, deliver, framesOf } from '#testkit/link-halves';
import { fc } from '#testkit/properties';
import { BoxProxy } from './box-proxy.ts';
import { Egress } from './egress.ts';
import { LinkCounters } from './link-counters.ts';
import { DEFAULT_LINK_OPTIONS } from './link-options.ts';

const PAGE = 4096;
const GENERATION = 11;
const FUNCTION = 0x0300;

describe('received by a box proxy', () => {
  const MEMORY_BYTES = 16 * PAGE;

  /**
   * A transfer, how its requests are answered, and what is wrong with completion number `wrongAt`, and, if
   * `lasting`, with all behind it.
   */
  const transfer = fc.record({
    address: fc.constantFrom(0x10_0000, 0x10_0000, 0x10_0040, 0x10_0203, 0x5_0000_0000),
    bytes: fc.constantFrom(100, 512, 1024, PAGE, 2 * PAGE, 3 * PAGE - 4),
    mps: fc.constantFrom(64, 128, 128, 256, 256, 512),
    wrongAt: fc.nat({ max: 60 }),
    lasting: fc.boolean(),
    wrong: fc.constantFrom(
      'nothing',
      'tag',
      'requester',
      'byte-count',
      'lower-address',
      'status',
      'reserved',
      'modified',
      'poison',
      'digest',
      'generation',
      'slot',
      'completer',
      'traffic-class',
      'missing',
      'twice',
    ),
    /** Aborted before its data comes, as a halted channel does. */
    aborted: fc.integer({ min: 0, max: 9 }).map((one) => one === 0),
  });
  type Transfer = typeof transfer extends fc.Arbitrary<infer T> ? T : never;

  function completionsOf(request: Tlp, how: Transfer, wrongAt: number) {
    const { mps, wrong, lasting } = how;
    const entries: ArrivedEntry[] = [];
    const payload = Uint8Array.from({ length: PAGE }, (_, at) => at + (at >> 8) + request.tag);
    const first = request.addressHi * 2 ** 32 + request.addressLo;
    const bytes = 4 * request.lengthDw;
    for (let done = 0, index = 0; done < bytes; index++) {
      const isWrong = index === wrongAt || (lasting && index > wrongAt);
      const tlp = new Tlp();
      const chunk = completionChunk(first + done, bytes - done, mps, 64);
      completeWithData(tlp, request, 0, first + done, bytes - done, chunk, payload, done);
      done += chunk;
      let slot = 0;
      let generation = GENERATION;
      let times = 1;
      if (isWrong) {
        if (wrong === 'tag') tlp.tag ^= 1;
        if (wrong === 'requester') tlp.requesterId ^= 8;
        if (wrong === 'byte-count') tlp.byteCount = Math.min(PAGE, tlp.byteCount + 128);
        if (wrong === 'lower-address') tlp.lowerAddress ^= 64;
        if (wrong === 'modified') tlp.byteCountModified = true;
        if (wrong === 'poison') tlp.poisoned = true;
        if (wrong === 'digest') tlp.digest = true;
        if (wrong === 'generation') generation--;
        if (wrong === 'slot') slot++;
        if (wrong === 'completer') tlp.completerId = 8;
        if (wrong === 'traffic-class') tlp.trafficClass = 1;
        if (wrong === 'missing') times = 0;
        if (wrong === 'twice') times = 2;
      }
      const bytesOf = encoded(tlp);
      // Past what the codec makes: a status with data, a reserved bit.
      if (isWrong && wrong === 'status') bytesOf[6]! |= CompletionStatus.UR << 5;
      if (isWrong && wrong === 'reserved') bytesOf[11]! |= 0x80;
      for (; times > 0; times--) entries.push({ slot, generation, bytes: bytesOf });
    }
    return entries;
  }

  function box(transfers: readonly Transfer[], runs: boolean) {
    const memory = new Uint8Array(MEMORY_BYTES);
    const endpoint = new Endpoint({
      identity: { vendorId: 0x1ddf, deviceId: 1, revisionId: 0, classCode: 0xff0000 },
      serial: 1n,
      bars: [],
      maxPayloadBytes: 256,
      dmaChannels: transfers.length,
      // So few that requests wait for completions.
      tags: 4,
    });
    const device: Device = {
      identity: { kind: 'memory', model: 'memory', memoryBytes: MEMORY_BYTES, uuid: '' },
      plug: (port) => endpoint.plug(port),
      receive: (now, tlp) => endpoint.receive(now, tlp),
      receiveRun: (now, first, stride, count) => endpoint.receiveRun(now, first, stride, count),
      resume: (now) => endpoint.resume(now),
      reset: () => endpoint.reset(),
      scrub: () => memory.fill(0),
      nextDeadlineNs: () => endpoint.nextDeadlineNs(),
      tick: (now) => endpoint.tick(now),
    };
    const proxy = new BoxProxy({ boxId: 'b', devices: new Map([[0, device]]) });
    const link = new FakeLink('host', 'h');
    const row = { slot: 0, valid: true, used: true, host: 'h', path: 'p', generation: GENERATION };
    expect(proxy.setTable(NOW, [row])).toEqual([]);
    proxy.linkUp(NOW, link);
    const write = (register: number, value: number): void => {
      const tlp = configRequest(0x44, FUNCTION >> 8, register, 0xf);
      tlp.payload = littleEndian(value);
      tlp.payloadBytes = 4;
      proxy.linkTlp(NOW, link, arrivedTlp(0, GENERATION, encoded(tlp)));
    };
    write(0x04, 0x4);
    let capability = endpoint.config.read32(0x34) & 0xff;
    while ((endpoint.config.read32(capability) & 0xff) !== 0x10) {
      capability = (endpoint.config.read32(capability) >> 8) & 0xff;
    }
    // Payloads up to 256 bytes, read requests up to 4096.
    write(capability + 8, (1 << 5) | (5 << 12));
    link.take();

    const done: string[] = [];
    const client = {
      dmaDone: (_now: number, cookie: number, status: number) => {
        done.push(`${cookie} ended with ${status} after ${link.sent.length} requests`);
      },
    };
    let at = 0;
    const places = transfers.map(({ bytes }) => (at += bytes) - bytes);
    for (const [channel, { address, bytes }] of transfers.entries()) {
      endpoint.dma.read(NOW, channel, address, memory, places[channel]!, bytes, client, channel);
    }
    for (const [channel, { aborted }] of transfers.entries()) {
      if (aborted) endpoint.dma.abort(channel);
    }
    const results: unknown[] = [];
    let inRuns = 0;
    for (let round = 0; round < 20; round++) {
      const requests = link.take();
      const entries = requests.flatMap(({ tlp }, index) => {
        const how = transfers[(round + index) % transfers.length]!;
        return completionsOf(tlp, how, how.wrongAt - 4 * round - index);
      });
      if (entries.length === 0) break;
      const { inRuns: count, ...delivered } = deliver(
        proxy,
        link,
        entries,
        runs,
        FlowClass.COMPLETION,
      );
      inRuns += count;
      results.push(delivered, link.sent, done.splice(0));
    }
    const counted = JSON.stringify([proxy.counters(0), proxy.strayCounters, endpoint.counters]);
    const registers = Array.from({ length: 128 }, (_, index) => endpoint.config.read32(4 * index));
    const waiting = [endpoint.nextDeadlineNs(), endpoint.dma.pending, endpoint.dma.failedRequests];
    // What waits can still be aborted: the proxy knows the same of it.
    proxy.linkDown(NOW, link, 'over');
    results.push(done, JSON.stringify([proxy.counters(0), endpoint.counters]));
    return { memory, counted, registers, waiting, results, inRuns };
  }

  test('memory, counters, error registers, credits and what comes next are the same', () => {
    let inRuns = 0;
    fc.assert(
      fc.property(fc.array(transfer, { minLength: 1, maxLength: 4 }), (transfers) => {
        const { inRuns: count, memory, ...together } = box(transfers, true);
        const { inRuns: none, memory: expected, ...single } = box(transfers, false);
        expect(none).toBe(0);
        inRuns += count;
        expect(Buffer.compare(memory, expected)).toBe(0);
        expect(together).toEqual(single);
      }),
      { numRuns: 300 },
    );
    expect(inRuns).toBeGreaterThan(2000);
  });
});

describe('sent by a host proxy', () => {
  const BASE = 0x10_0000;

  const step = fc.record({
    page: fc.nat({ max: 4 }),
    offset: fc.constantFrom(0, 0, 0, 64, 128, 3, 500),
    bytes: fc.constantFrom(4, 512, 1024, 2500, PAGE, PAGE),
    generation: fc.constantFrom(GENERATION, GENERATION, GENERATION, GENERATION - 1),
    /** Credits that come behind it. */
    tlps: fc.constantFrom(0, 5, 40),
    units: fc.constantFrom(0, 100, 1500),
  });
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

  function host(steps: readonly Step[], mps: number, rcbBytes: 64 | 128, runs: boolean) {
    const world = new HostProxyWorld({ maxPayloadBytes: mps, rcbBytes });
    const memory = Uint8Array.from({ length: 4 * PAGE }, (_, at) => at * 7 + (at >> 8));
    world.proxy.registerMemory(BASE, memory, { read: true, write: true });
    world.ready();
    world.enumerate(0);
    world.setBusMaster(0, true);
    world.configWrite(0, 0x88, Math.log2(mps / 128) << 5, 0b0011);
    const { linkB: link, proxy } = world;

    const counters = new LinkCounters();
    const limits = Uint32Array.from([10, 100, 10, 100, 20, 1000]);
    const options = { ...DEFAULT_LINK_OPTIONS, maxFrameBytes: 8192, replayBytes: 1 << 20 };
    const egress = new Egress(options, 8192, 0, limits, counters, { sealed: () => {} });
    const tapped: string[] = [];
    egress.tap = (_now, direction, slot, bytes, offset, length) => {
      const seen = Buffer.from(bytes.subarray(offset, offset + length)).toString('hex');
      tapped.push(`${direction} ${slot} ${seen}`);
    };
    let inRuns = 0;
    Object.assign(link, {
      canSend: (flow: FlowClass, bytes: number) => egress.canSend(flow, bytes),
      sendTlp: (...sent: Parameters<Egress['sendTlp']>) => egress.sendTlp(...sent),
      sendRun: (...run: Parameters<Egress['sendRun']>) => {
        const sent = runs ? egress.sendRun(...run) : 0;
        inRuns += sent;
        return sent;
      },
    });
    for (const [tag, { page, offset, bytes, generation, tlps, units }] of steps.entries()) {
      const tlp = new Tlp();
      const most = Math.min(bytes, PAGE - offset);
      setMemoryRead(tlp, BASE + page * PAGE + offset, most, FUNCTION, tag);
      world.receive(link, 7, generation, encoded(tlp));
      limits[4]! += tlps;
      limits[5]! += units;
      egress.credits.update(limits);
      egress.drain(NOW);
      proxy.linkResume(NOW, link);
    }
    egress.seal();
    return {
      frames: framesOf(egress).join(' '),
      tapped: tapped.join(' '),
      counted: JSON.stringify([proxy.counters(0), proxy.counters(1), proxy.strayCounters]),
      link: counters,
      waiting: egress.waiting,
      left: egress.credits.covers(FlowClass.COMPLETION, 128),
      released: link.released,
      inRuns,
    };
  }

  test('the frames, counters, credits and what a tap sees are the same', () => {
    let inRuns = 0;
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 12 }),
        fc.constantFrom(128, 256, 512),
        fc.constantFrom<64 | 128>(64, 128),
        (steps, mps, rcbBytes) => {
          const { inRuns: count, ...together } = host(steps, mps, rcbBytes, true);
          const { inRuns: none, ...single } = host(steps, mps, rcbBytes, false);
          expect(none).toBe(0);
          inRuns += count;
          expect(together.frames === single.frames).toBe(true);
          expect(together.tapped === single.tapped).toBe(true);
          expect({ ...together, frames: '', tapped: '' }).toEqual({
            ...single,
            frames: '',
            tapped: '',
          });
        },
      ),
      { numRuns: 150 },
    );
    expect(inRuns).toBeGreaterThan(2000);
  });
});
