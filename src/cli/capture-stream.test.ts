import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { SlotCounters } from '#fabric/counters';
import { type LinkTap, TapDirection } from '#fabric/link-options';
import { Tlp, TlpKind } from '#pcie/tlp';
import { type CaptureBatch, type CaptureBegin, captureHandlers } from './capture-stream.ts';
import { PcapngReader, type ReadPacket } from './pcapng-reader.ts';
import { encodeHeader } from './pcapng.ts';
import { Taps } from '#agent/daemon/taps';

const TLP = Buffer.from('05000001ca9a5c0ff74807a4', 'hex');

/** A proxy with slots 0 to 9 whose TLPs a test makes, and a reader that may be too slow. */
class Rig {
  tap: LinkTap | undefined;
  readonly counters = new SlotCounters();
  readonly events: (CaptureBegin | CaptureBatch)[] = [];
  readonly abort = new AbortController();
  isSlow = false;
  readonly handlers = captureHandlers({
    taps: new Taps({
      outgoing: 'down',
      install: (tap) => {
        this.tap = tap;
      },
    }),
    checkSlot: (slot) => {
      if (slot > 9) throw new Error('no such slot');
    },
    counters: () => this.counters,
    readFunction: () => ({ bdf: 0x0100, configSpace: '00'.repeat(256) }),
  });

  async begin(params: object): Promise<{ result: Promise<unknown> }> {
    const result = Promise.resolve(this.handlers.capture(params, this.call));
    while (this.tap === undefined) await Promise.resolve();
    return { result };
  }

  readonly call = {
    signal: this.abort.signal,
    emit: (event: unknown): boolean => {
      if (this.isSlow) return false;
      this.events.push(event as CaptureBegin | CaptureBatch);
      return true;
    },
  };

  pass(count: number, slot = 3): void {
    for (let i = 0; i < count; i++) {
      this.tap?.(1e6 as Nanos, TapDirection.OUT, slot, TLP, 0, TLP.length);
    }
  }

  end(): void {
    const [begin] = this.events;
    const id = begin !== undefined && 'id' in begin ? begin.id : 0;
    void this.handlers['end-capture']({ id }, this.call);
  }

  packets(): ReadPacket[] {
    const reader = new PcapngReader();
    const blocks = this.events.flatMap((one) => ('blocks' in one ? [one.blocks] : []));
    const parts = blocks.map((one) => Buffer.from(one, 'base64'));
    return [...reader.push(Buffer.concat([encodeHeader('if', 'app'), ...parts]))];
  }
}

describe('the capture method', () => {
  it('begins with what is known of the function, and gives the TLPs of its slot in batches', async () => {
    const rig = new Rig();
    const { result } = await rig.begin({ slot: 3, count: 1000 });
    expect(rig.events[0]).toMatchObject({ inUse: false, function: { bdf: 0x0100 } });
    rig.pass(5, 4);
    rig.pass(1200);
    expect(await result).toEqual({ captured: 1000, dropped: 0 });
    const packets = rig.packets();
    expect(packets).toHaveLength(1000);
    expect(packets[999]).toMatchObject({ packet: { slot: 3, direction: 'down', tlp: TLP } });
    // Regression: an event each slowed the traffic down. 1000 packets of 60 bytes are one batch.
    expect(rig.events).toHaveLength(2);
    expect(rig.tap).toBeUndefined();
  });

  it('says when the host has written to the function before', async () => {
    const rig = new Rig();
    const write = new Tlp();
    write.kind = TlpKind.MWr32;
    rig.counters.countDown(write);
    const { result } = await rig.begin({ slot: 3 });
    expect(rig.events[0]).toMatchObject({ inUse: true });
    rig.end();
    await result;
  });

  it('ended by its id still counts what was lost, and where (regression: "dropped": 0)', async () => {
    const rig = new Rig();
    const { result } = await rig.begin({ slot: 3 });
    // More than a batch: 96 KiB of packets of 60 bytes are 1639.
    rig.pass(1639);
    rig.isSlow = true;
    rig.pass(1639);
    rig.isSlow = false;
    rig.pass(10);
    rig.end();
    expect(await result).toEqual({ captured: 1649, dropped: 1639 });
    const packets = rig.packets();
    expect(packets.filter(({ lostBefore }) => lostBefore !== undefined)).toMatchObject([
      { number: 1640, lostBefore: 1639 },
    ]);
  });

  it('ends when its caller is gone', async () => {
    const rig = new Rig();
    const { result } = await rig.begin({ slot: 3 });
    rig.abort.abort();
    await result;
    expect(rig.tap).toBeUndefined();
    expect(() => rig.end()).toThrow('there is no capture');
  });
});
