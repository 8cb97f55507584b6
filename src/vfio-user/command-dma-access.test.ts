/** DMA_READ and DMA_WRITE, black box, both ends: bytes by hand from the specification. */
import { beforeEach, describe, expect, test } from 'vitest';
import type { Nanos } from '#base/units';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { hex, RecordingPort, SessionRig } from '#testkit/vfio-user-rig';
import { ArrayMemory, type DmaReadAccess, MemoryLending } from './client-memory.ts';
import { IRQ_MSI } from './irq-info.ts';
import { newMessage, parseMessage } from './message.ts';
import { Errno, type Refusal } from './refusal.ts';
import { systemFds } from './system-fds.ts';

const NOW = 0 as Nanos;
/** 1 MiB at 0, readable and writable, without a descriptor. */
const MAP = hex(`0000 0200 30000000 00000000 00000000  20000000 03000000
  0000000000000000 0000000000000000 0000100000000000`);

describe('the server asks', () => {
  let device: ExampleDevice;
  let rig: SessionRig;
  const ends: (number | undefined)[] = [];
  const done = (_now: Nanos, refused: Refusal | undefined): void => {
    ends.push(refused?.errno);
  };

  beforeEach(() => {
    ends.length = 0;
    device = new ExampleDevice();
    rig = new SessionRig(device, { maxDataXferBytes: 4096, maxDmaMessages: 2 }).hello();
    rig.ask(MAP);
  });

  test('golden: a read of 4 bytes at 0x1002, and its answer', () => {
    const into = new Uint8Array(6);
    device.client!.dmaRead(NOW, { address: 0x1002, bytes: into, at: 1, count: 4, done });
    expect(Buffer.from(rig.port.oneMessage().bytes)).toEqual(
      Buffer.from(hex('0000 0b00 20000000 00000000 00000000  0210000000000000 0400000000000000')),
    );
    rig.give(
      hex('0000 0b00 24000000 01000000 00000000  0210000000000000 0400000000000000 aabbccdd'),
    );
    expect(ends).toEqual([undefined]);
    expect(Buffer.from(into)).toEqual(Buffer.from(hex('00aabbccdd00')));
  });

  test('golden: a write of 3 bytes at 0x20, and both forms of its answer', () => {
    const from = hex('0102030405');
    device.client!.dmaWrite(NOW, { address: 0x20, bytes: from, at: 1, count: 3, done });
    expect(Buffer.from(rig.port.oneMessage().bytes)).toEqual(
      Buffer.from(
        hex('0000 0c00 23000000 00000000 00000000  2000000000000000 0300000000000000 020304'),
      ),
    );
    rig.give(hex('0000 0c00 20000000 01000000 00000000  2000000000000000 0300000000000000'));
    device.client!.dmaWrite(NOW, { address: 0x20, bytes: from, at: 1, count: 3, done });
    rig.port.oneMessage();
    // As the specification's table has it: a count of four bytes.
    rig.give(hex('0100 0c00 1c000000 01000000 00000000  2000000000000000 03000000'));
    expect(ends).toEqual([undefined, undefined]);
  });

  test('long transfers go in pieces, two at a time, in order', () => {
    device.client!.dmaWrite(NOW, {
      address: 100,
      bytes: new Uint8Array(10_000),
      at: 0,
      count: 10_000,
      done,
    });
    const first = rig.port.sent.splice(0).map(({ message }) => message);
    expect(first.map((message) => message.view.getUint32(24, true))).toEqual([4096, 4096]);
    expect(first.map((message) => message.view.getUint32(16, true))).toEqual([100, 4196]);
    rig.give(hex('0100 0c00 20000000 01000000 00000000  6410000000000000 0010000000000000'));
    // 10,000 − 8,192 = 1,808 = 0x710 bytes at 8,292 = 0x2064.
    expect(Buffer.from(rig.port.oneMessage().bytes.subarray(16, 32))).toEqual(
      Buffer.from(hex('6420000000000000 1007000000000000')),
    );
    rig.give(hex('0000 0c00 20000000 01000000 00000000  6400000000000000 0010000000000000'));
    expect(ends).toEqual([]);
    rig.give(hex('0200 0c00 20000000 01000000 00000000  6420000000000000 1007000000000000'));
    expect(ends).toEqual([undefined]);
  });

  test('an errno fails the transfer, and the session goes on', () => {
    device.client!.dmaRead(NOW, { address: 0, bytes: new Uint8Array(4), at: 0, count: 4, done });
    rig.port.oneMessage();
    rig.give(hex('0000 0b00 10000000 21000000 0e000000'));
    expect(ends).toEqual([Errno.EFAULT]);
    device.client!.dmaRead(NOW, { address: 0, bytes: new Uint8Array(4), at: 0, count: 4, done });
    rig.port.oneMessage();
    // The errno is optional.
    rig.give(hex('0100 0b00 10000000 21000000 00000000'));
    expect(ends).toEqual([Errno.EFAULT, Errno.EIO]);
    expect(rig.ends).toEqual([]);
  });

  test('without an answer it fails after its time, and the answer then is for nobody', () => {
    const into = new Uint8Array(4);
    device.client!.dmaRead(NOW, { address: 0, bytes: into, at: 0, count: 4, done });
    rig.port.oneMessage();
    expect(rig.session.nextDeadlineNs()).toBe(4000e6);
    rig.at(3999);
    expect(ends).toEqual([]);
    rig.at(4000);
    expect(ends).toEqual([Errno.ETIMEDOUT]);
    rig.give(
      hex('0000 0b00 24000000 01000000 00000000  0000000000000000 0400000000000000 aabbccdd'),
    );
    expect(into).toEqual(new Uint8Array(4));
    expect(rig.ends).toEqual([]);
  });

  const lies: [string, Uint8Array][] = [
    [
      'another address',
      hex('0000 0b00 24000000 01000000 00000000 08 00000000000000 0400000000000000 aabbccdd'),
    ],
    [
      'fewer bytes',
      hex('0000 0b00 22000000 01000000 00000000 0000000000000000 0400000000000000 aabb'),
    ],
    [
      'another count',
      hex(
        '0000 0b00 28000000 01000000 00000000 0000000000000000 0800000000000000 aabbccddaabbccdd',
      ),
    ],
    ['nothing', hex('0000 0b00 10000000 01000000 00000000')],
    [
      'another command',
      hex('0000 0c00 20000000 01000000 00000000 0000000000000000 0400000000000000'),
    ],
    [
      'another identifier',
      hex('0900 0b00 24000000 01000000 00000000 0000000000000000 0400000000000000 aabbccdd'),
    ],
  ];
  test.each(lies)('an answer with %s ends the session', (_name, bytes) => {
    device.client!.dmaRead(NOW, { address: 0, bytes: new Uint8Array(4), at: 0, count: 4, done });
    rig.port.oneMessage();
    rig.give(bytes);
    expect(rig.ends).toHaveLength(1);
    expect(ends).toHaveLength(1);
    expect(rig.port.isClosed).toBe(true);
  });

  test('reads of regions are answered while DMA is under way', () => {
    device.client!.dmaRead(NOW, { address: 0, bytes: new Uint8Array(4), at: 0, count: 4, done });
    rig.port.oneMessage();
    const reply = rig.ask(
      hex('0500 0900 20000000 00000000 00000000  0000000000000000 00000000 04000000'),
    );
    expect(Buffer.from(reply.bytes.subarray(32))).toEqual(Buffer.from(hex('0100dad0')));
  });

  test('an interrupt waits for the writes before it, and not for the one behind', () => {
    const eventFd = systemFds.createEventFd();
    const { fd } = systemFds.adoptEventFd(eventFd.fd);
    // SET_IRQS: argsz 20, eventfd and trigger, MSI, start 0, count 1.
    rig.ask(
      hex('0000 0800 24000000 00000000 00000000 14000000 24000000 01000000 00000000 01000000'),
      [fd],
    );
    const counter = new Uint8Array(8);
    const fired = (): boolean => systemFds.read(fd, -1, counter, 0, 8);
    device.client!.dmaWrite(NOW, { address: 0, bytes: new Uint8Array(8), at: 0, count: 8, done });
    device.client!.trigger(IRQ_MSI, 0);
    device.client!.dmaWrite(NOW, { address: 8, bytes: new Uint8Array(8), at: 0, count: 8, done });
    rig.port.sent.splice(0);
    rig.give(hex('0100 0c00 20000000 01000000 00000000  0800000000000000 0800000000000000'));
    expect(fired()).toBe(false);
    rig.give(hex('0000 0c00 20000000 01000000 00000000  0000000000000000 0800000000000000'));
    expect(fired()).toBe(true);
    rig.end();
  });
});

describe('the client answers', () => {
  const memory = Uint8Array.from({ length: 0x2000 }, (_, at) => at);
  let port: RecordingPort;
  let lending: MemoryLending;

  beforeEach(() => {
    port = new RecordingPort();
    const limits = { maxBytes: 4096, timeoutMs: 100, maxPending: 2 };
    lending = new MemoryLending(new ArrayMemory(memory), port, limits);
    const rest = { fileOffset: 0, readable: true };
    lending.lend({ address: 0, sizeBytes: 0x1000, writable: true, ...rest });
    lending.lend({ address: 0x1000, sizeBytes: 0x1000, writable: false, ...rest });
  });

  function serve(text: string): Refusal | undefined {
    return lending.serve(NOW, parseMessage(hex(text)));
  }

  test('golden: a read over two regions', () => {
    serve('0300 0b00 20000000 00000000 00000000  fe0f000000000000 0400000000000000');
    expect(Buffer.from(port.oneMessage().bytes)).toEqual(
      Buffer.from(
        hex('0300 0b00 24000000 01000000 00000000  fe0f000000000000 0400000000000000 feff0001'),
      ),
    );
  });

  test('golden: a write', () => {
    serve('0300 0c00 22000000 00000000 00000000  1000000000000000 0200000000000000 aabb');
    expect(Buffer.from(port.oneMessage().bytes)).toEqual(
      Buffer.from(hex('0300 0c00 20000000 01000000 00000000  1000000000000000 0200000000000000')),
    );
    expect(memory[0x10]).toBe(0xaa);
  });

  const refused: [string, string, number][] = [
    [
      'not lent',
      '0300 0b00 20000000 00000000 00000000 ff1f000000000000 0200000000000000',
      Errno.EFAULT,
    ],
    [
      'not for writing',
      '0300 0c00 22000000 00000000 00000000 ff0f000000000000 0200000000000000 aabb',
      Errno.EPERM,
    ],
    [
      'of nothing',
      '0300 0b00 20000000 00000000 00000000 0000000000000000 0000000000000000',
      Errno.EINVAL,
    ],
    [
      'longer than agreed',
      '0300 0b00 20000000 00000000 00000000 0000000000000000 0110000000000000',
      Errno.EINVAL,
    ],
    [
      'with less data than said',
      '0300 0c00 22000000 00000000 00000000 0000000000000000 0300000000000000 aabb',
      Errno.EINVAL,
    ],
    [
      'beyond 2^53',
      '0300 0b00 20000000 00000000 00000000 ffffffffffffffff 0100000000000000',
      Errno.EINVAL,
    ],
    [
      'that is half a message',
      '0300 0b00 18000000 00000000 00000000 0000000000000000',
      Errno.EINVAL,
    ],
  ];
  test.each(refused)('DMA %s', (_name, text, errno) => {
    expect(serve(text)).toMatchObject({ errno });
    expect(port.sent).toEqual([]);
  });

  test('nothing of what has been taken back', () => {
    expect(lending.takeBack(0)).toBe(true);
    expect(
      serve('0300 0b00 20000000 00000000 00000000 0000000000000000 0400000000000000'),
    ).toMatchObject({ errno: Errno.EFAULT });
  });

  test('in time, or with an errno; too many at once get EBUSY', () => {
    const held: DmaReadAccess[] = [];
    const slow = new MemoryLending(
      { read: (_now, access) => held.push(access), write: () => {} },
      port,
      { maxBytes: 4096, timeoutMs: 100, maxPending: 2 },
    );
    slow.lend({ address: 0, sizeBytes: 4096, fileOffset: 0, readable: true, writable: false });
    const read = parseMessage(newMessage(1, 11, 0, 16));
    read.view.setUint32(24, 4, true);
    expect(slow.serve(NOW, read)).toBeUndefined();
    expect(slow.serve(NOW, read)).toBeUndefined();
    expect(slow.serve(NOW, read)).toMatchObject({ errno: Errno.EBUSY });
    held[0]!.complete(NOW, Uint8Array.of(1, 2, 3, 4));
    expect(port.oneMessage().flags).toBe(1);
    slow.accesses.tick(100e6 as Nanos);
    expect(port.oneMessage()).toMatchObject({ flags: 0x21, errno: Errno.ETIMEDOUT });
    held[1]!.complete(NOW, Uint8Array.of(1, 2, 3, 4));
    expect(port.sent).toEqual([]);
  });
});
