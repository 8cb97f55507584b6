/** Both proxies joined: what the CPU and a device see of each other through them. */
import { completeWithData } from '#pcie/completion';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { describe, expect, test } from 'vitest';
import { DirectLink } from '#testkit/direct-link';
import { FakeDevice } from '#testkit/fake-device';
import { FakeRoot } from '#testkit/fake-root';
import { configRequest, hostRow, littleEndian, NOW } from '#testkit/host-proxy-world';
import { fc } from '#testkit/properties';
import { BoxProxy } from './box-proxy.ts';
import { HostProxy } from './host-proxy.ts';

const { SC, UR } = CompletionStatus;
const BDF = 0x0300;
const BAR = 0x10_0000_0000;

/** A function with 4 KiB of memory behind its BAR, which it also moves to and from host memory. */
class MemoryDevice extends FakeDevice {
  readonly memory = new Uint8Array(4096);
  readonly reads = new Map<number, number>();
  failed = 0;

  override receive(now: typeof NOW, tlp: Tlp): void {
    switch (tlp.kind) {
      case TlpKind.MWr64: {
        const at = tlp.addressLo % 4096;
        const { payload, payloadOffset } = tlp;
        for (let i = 0; i < tlp.payloadBytes; i++) {
          this.memory[at + i] = payload[payloadOffset + i] as number;
        }
        return;
      }
      case TlpKind.MRd64: {
        const out = new Tlp();
        const at = tlp.addressLo % 4096;
        const bytes = 4 * tlp.lengthDw;
        completeWithData(out, tlp, BDF, at, bytes, bytes, this.memory, at);
        this.port.send(now, out);
        return;
      }
      case TlpKind.CplD: {
        const at = this.reads.get(tlp.tag) as number;
        this.memory.set(
          tlp.payload.subarray(tlp.payloadOffset, tlp.payloadOffset + tlp.payloadBytes),
          at,
        );
        this.reads.set(tlp.tag, at + tlp.payloadBytes);
        if (tlp.byteCount === tlp.payloadBytes) this.reads.delete(tlp.tag);
        return;
      }
      case TlpKind.Cpl:
        this.reads.delete(tlp.tag);
        this.failed++;
        return;
      default:
        super.receive(now, tlp);
    }
  }
}

function join(immediate: boolean) {
  const root = new FakeRoot();
  const host = new HostProxy({ hostId: 'h', rootSide: root, maxPayloadBytes: 128 });
  const device = new MemoryDevice();
  const box = new BoxProxy({ boxId: 'b', devices: new Map([[7, device]]) });
  const link = new DirectLink(host, box, immediate);
  const memory = new Uint8Array(8192);
  host.registerMemory(0x1_0000, memory, { read: true, write: true });
  const bind = (generation: number): void => {
    const boxRow = { slot: 7, valid: true, used: true, host: 'h', path: 'net', generation };
    expect(box.setTable(NOW, [boxRow])).toEqual([]);
    expect(host.setTable(NOW, [hostRow(0, generation)])).toEqual([]);
    link.deliver(NOW);
  };
  const setBusMaster = (): void => {
    const command = configRequest(TlpKind.CfgWr1, 3, 4, 0b0011);
    command.payload = littleEndian(6);
    command.payloadBytes = 4;
    host.request(NOW, command);
    link.deliver(NOW);
    expect(root.takeCompletions().map(({ status }) => status)).toEqual([SC]);
  };
  return { root, host, device, box, link, memory, bind, setBusMaster };
}

describe.each([
  ['answers within the call', true],
  ['answers when frames arrive', false],
])('%s', (_name, immediate) => {
  test('a slot comes up with both rows and the session, in any order', () => {
    const first = join(immediate);
    first.link.up(NOW);
    first.bind(5);
    const second = join(immediate);
    second.bind(5);
    second.link.up(NOW);
    second.link.deliver(NOW);
    for (const { root, host, box } of [first, second]) {
      expect([host.slotState(0), box.slotState(7)]).toEqual(['ready', 'ready']);
      expect(root.links).toEqual([{ virtualSlot: 0, active: true, surprise: false }]);
    }
  });

  test('when the session ends both contain the slot, and a higher generation frees it', () => {
    const { root, host, device, box, link, bind } = join(immediate);
    bind(5);
    link.up(NOW);
    link.deliver(NOW);
    link.down(NOW);
    expect([host.slotState(0), box.slotState(7)]).toEqual(['contained', 'contained']);
    link.up(NOW);
    link.deliver(NOW);
    expect([host.slotState(0), box.slotState(7)]).toEqual(['contained', 'contained']);
    device.calls = [];
    bind(6);
    expect([host.slotState(0), box.slotState(7)]).toEqual(['ready', 'ready']);
    expect(device.calls).toEqual(['reset', 'scrub']);
    expect(root.links.map(({ active, surprise }) => [active, surprise])).toEqual([
      [true, false],
      [false, true],
      [true, false],
    ]);
  });

  test('a box row taken away first is a surprise for the host', () => {
    const { root, host, box, link, bind } = join(immediate);
    bind(5);
    link.up(NOW);
    link.deliver(NOW);
    expect(box.setTable(NOW, [])).toEqual([]);
    link.deliver(NOW);
    expect(host.slotState(0)).toBe('contained');
    const request = new Tlp();
    setMemoryRead(request, BAR, 4, 0x0008, 3);
    host.request(NOW, request);
    expect(root.takeCompletions().map((tlp) => [tlp.tag, tlp.status])).toEqual([[3, UR]]);
  });
});

const op = fc.record({
  kind: fc.constantFrom('cpu-read', 'cpu-write', 'dma-read', 'dma-write'),
  at: fc.integer({ min: 0, max: 15 }),
  value: fc.integer({ min: 0, max: 255 }),
});

test('memory on both sides ends as if there were no fabric, however little is on its way', () => {
  fc.assert(
    fc.property(
      fc.array(op, { maxLength: 40 }),
      fc.boolean(),
      fc.constantFrom(1, 2, Infinity),
      (ops, immediate, room) => {
        const { root, host, device, link, memory, bind, setBusMaster } = join(immediate);
        bind(5);
        link.up(NOW);
        link.deliver(NOW);
        setBusMaster();
        link.completionRoom = room;
        const model = { host: new Uint8Array(8192), device: new Uint8Array(4096) };
        let tag = 0;
        const reads = new Map<number, Uint8Array>();
        const one = (kind: string, offset: number, value: number): void => {
          const tlp = new Tlp();
          const payload = new Uint8Array(256).fill(value);
          tag = (tag + 1) % 512;
          switch (kind) {
            case 'cpu-write':
              setMemoryWrite(tlp, BAR + offset, 256, 0x0008);
              tlp.payload = payload;
              host.request(NOW, tlp);
              model.device.set(payload, offset);
              break;
            case 'cpu-read':
              setMemoryRead(tlp, BAR + offset, 256, 0x0008, tag);
              reads.set(tag, model.device.slice(offset, offset + 256));
              host.request(NOW, tlp);
              break;
            case 'dma-write':
              setMemoryWrite(tlp, 0x1_0000 + offset, 256, BDF);
              tlp.payload = payload;
              device.port.send(NOW, tlp);
              model.host.set(payload, offset);
              break;
            default:
              setMemoryRead(tlp, 0x1_0000 + offset, 256, BDF, tag);
              device.reads.set(tag, offset);
              model.device.set(model.host.slice(offset, offset + 256), offset);
              device.port.send(NOW, tlp);
          }
        };
        for (const { kind, at, value } of ops) {
          // Several of a kind at once, at different places, so that the model needs no delays.
          for (let i = 0; i < 4; i++) one(kind, 256 * ((at + i) % 16), value + i);
          link.deliver(NOW);
        }
        expect(Buffer.compare(memory, model.host)).toBe(0);
        expect(Buffer.compare(device.memory, model.device)).toBe(0);
        expect([device.failed, device.reads.size]).toEqual([0, 0]);
        const answers = root.takeCompletions();
        expect(answers.map((answer) => answer.tag)).toEqual([...reads.keys()]);
        for (const answer of answers) {
          expect(answer.status).toBe(SC);
          const from = answer.payloadOffset;
          const data = answer.payload.subarray(from, from + 256);
          expect(Buffer.compare(data, reads.get(answer.tag) as Uint8Array)).toBe(0);
        }
        expect([link.host.kept, link.box.kept]).toEqual([0, 0]);
        const counters = host.counters(0);
        expect([counters.refusedTotal, counters.unexpectedCompletions]).toEqual([0, 0]);
      },
    ),
    { numRuns: 200 },
  );
});
