/** DEVICE_GET_INFO, DEVICE_GET_REGION_INFO and DEVICE_GET_IRQ_INFO, black box: bytes by hand. */
import { closeSync } from 'node:fs';
import { afterEach, describe, expect, test } from 'vitest';
import { ExampleDevice, type ExampleDeviceOptions } from '#testkit/vfio-user-device';
import { hex, SessionRig } from '#testkit/vfio-user-rig';
import {
  encodeRegionInfoReply,
  encodeRegionInfoRequest,
  decodeRegionInfoReply,
} from './region-info.ts';
import { decodeDeviceInfoReply } from './device-info.ts';
import { decodeIrqInfoReply } from './irq-info.ts';
import { parseMessage } from './message.ts';
import { Errno, Refusal } from './refusal.ts';
import { createMemoryFile } from './system-fds.ts';

const rigs: SessionRig[] = [];
function rigOf(options: ExampleDeviceOptions = {}): SessionRig {
  const rig = new SessionRig(new ExampleDevice(options)).hello();
  rigs.push(rig);
  return rig;
}
afterEach(() => rigs.splice(0).forEach((rig) => rig.end()));

function expectReply(rig: SessionRig, request: string, reply: string): void {
  expect(Buffer.from(rig.ask(hex(request)).bytes)).toEqual(Buffer.from(hex(reply)));
}

function expectError(rig: SessionRig, request: string, errno = Errno.EINVAL as number): void {
  const reply = rig.ask(hex(request));
  expect(reply).toMatchObject({ flags: 0x21, errno });
  expect(reply.bytes).toHaveLength(16);
}

describe('DEVICE_GET_INFO', () => {
  test('golden: a PCI device that can be reset, with 9 regions and 5 types of interrupt', () => {
    expectReply(
      rigOf(),
      '0200 0400 20000000 00000000 00000000  10000000 00000000 00000000 00000000',
      '0200 0400 20000000 01000000 00000000  10000000 03000000 09000000 05000000',
    );
  });

  test('golden: as long a structure as was asked with, up to 24 bytes', () => {
    const rig = rigOf();
    // 20 bytes, as a client built on later headers waits for.
    expectReply(
      rig,
      `0200 0400 24000000 00000000 00000000  24000000 ${'00'.repeat(16)}`,
      '0200 0400 24000000 01000000 00000000  14000000 03000000 09000000 05000000 00000000',
    );
    const long = `0200 0400 30000000 00000000 00000000  20000000 ${'00'.repeat(28)}`;
    expect(rig.ask(hex(long)).bytes).toHaveLength(16 + 24);
  });

  test('too short, or with a small argsz: EINVAL', () => {
    const rig = rigOf();
    expectError(rig, '0200 0400 1c000000 00000000 00000000  10000000 00000000 00000000');
    expectError(rig, '0200 0400 20000000 00000000 00000000  0f000000 00000000 00000000 00000000');
    expectError(rig, '0200 0400 10000000 00000000 00000000');
  });

  test('a reply with more than there can be is refused', () => {
    const bytes = hex('0200 0400 20000000 01000000 00000000  10000000 03000000 41000000 05000000');
    expect(decodeDeviceInfoReply(parseMessage(bytes), 64)).toBeInstanceOf(Refusal);
    expect(decodeDeviceInfoReply(parseMessage(bytes.subarray(0, 28)), 64)).toBeInstanceOf(Refusal);
  });
});

describe('DEVICE_GET_REGION_INFO', () => {
  const ask = (index: string, argsz = '20000000'): string =>
    `0300 0500 30000000 00000000 00000000  ${argsz} 00000000 ${index} 00000000 ${'00'.repeat(16)}`;

  test('golden: BAR 2, 1 MiB; one that is not there; the configuration space', () => {
    const rig = rigOf();
    expectReply(
      rig,
      ask('02000000'),
      `0300 0500 30000000 01000000 00000000  20000000 03000000 02000000 00000000
       0000100000000000 0000000000000000`,
    );
    expectReply(
      rig,
      ask('03000000'),
      `0300 0500 30000000 01000000 00000000  20000000 00000000 03000000 00000000
       0000000000000000 0000000000000000`,
    );
    expectReply(
      rig,
      ask('07000000'),
      `0300 0500 30000000 01000000 00000000  20000000 03000000 07000000 00000000
       0010000000000000 0000000000000000`,
    );
  });

  test('golden: a region to map, with and without room for its areas', () => {
    const fd = createMemoryFile('bar', 1 << 20, true);
    const areas = [{ offset: 0x1000, sizeBytes: 0x2000 }];
    const rig = rigOf({ shared: { fd, fileOffset: 0, areas } });
    // READ, WRITE, MMAP, CAPS; argsz 32 + 16 + 16 = 64; capability at 32 all the same.
    const fixed = `0f000000 02000000 20000000 0000100000000000 0000000000000000`;
    rig.give(hex(ask('02000000')));
    const [short] = rig.port.sent.splice(0);
    expect(short!.fds).toEqual([fd]);
    expect(Buffer.from(short!.message.bytes)).toEqual(
      Buffer.from(hex(`0300 0500 30000000 01000000 00000000  40000000 ${fixed}`)),
    );
    rig.give(hex(ask('02000000', '40000000')));
    const [full] = rig.port.sent.splice(0);
    expect(Buffer.from(full!.message.bytes)).toEqual(
      Buffer.from(
        hex(`0300 0500 50000000 01000000 00000000  40000000 ${fixed}
             0100 0100 00000000  01000000 00000000  0010000000000000 0020000000000000`),
      ),
    );
    const info = decodeRegionInfoReply(full!.message, 2);
    expect(info).toMatchObject({ sizeBytes: 1 << 20, mmap: true, areas });
    closeSync(fd);
  });

  test('a region there cannot be, too short, a small argsz: EINVAL', () => {
    const rig = rigOf();
    expectError(rig, ask('09000000'));
    expectError(rig, ask('ffffffff'));
    expectError(rig, ask('00000000', '1f000000'));
    expectError(rig, `0300 0500 2c000000 00000000 00000000  20000000 ${'00'.repeat(24)}`);
  });

  test('replies that cannot be are refused', () => {
    const request = parseMessage(encodeRegionInfoRequest(1, 2, 4096));
    const info = { sizeBytes: 0x4000, read: true, write: true, mmap: true, fileOffset: 0 };
    const reply = (change: (view: DataView) => void): ReturnType<typeof decodeRegionInfoReply> => {
      const areas = [{ offset: 0x1000, sizeBytes: 0x1000 }];
      const bytes = encodeRegionInfoReply(request, 2, { ...info, areas });
      change(new DataView(bytes.buffer));
      return decodeRegionInfoReply(parseMessage(bytes), 2);
    };
    expect(reply(() => {})).toMatchObject({ sizeBytes: 0x4000 });
    const changes: ((view: DataView) => void)[] = [
      (view) => view.setUint32(24, 3, true), // about another region
      (view) => view.setUint32(36, 0xffff_ffff, true), // size beyond 2^53
      (view) => view.setUint32(28, 8, true), // capability inside the fixed part
      (view) => view.setUint32(28, 0xffff_fff0, true), // and beyond the end
      (view) => view.setUint32(56, 2, true), // more areas than there is room for
      (view) => view.setUint32(56, 0xffff_ffff, true),
      (view) => view.setUint32(72, 0x4000, true), // an area that ends outside
      (view) => {
        view.setUint16(48, 9, true); // an unknown capability, next: itself
        view.setUint32(52, 32, true);
      },
    ];
    for (const change of changes) expect(reply(change)).toBeInstanceOf(Refusal);
  });
});

describe('DEVICE_GET_IRQ_INFO', () => {
  const ask = (index: string, argsz = '10000000'): string =>
    `0400 0700 20000000 00000000 00000000  ${argsz} 00000000 ${index} 00000000`;
  const answer = (flags: string, index: string, count: string): string =>
    `0400 0700 20000000 01000000 00000000  10000000 ${flags} ${index} ${count}`;

  test('golden: INTx, MSI, hidden MSI-X, no error, a request', () => {
    const rig = rigOf({ msix: 'hide' });
    // INTx: eventfd, maskable, masks itself; MSI: eventfd, set up as a whole.
    expectReply(rig, ask('00000000'), answer('07000000', '00000000', '01000000'));
    expectReply(rig, ask('01000000'), answer('09000000', '01000000', '04000000'));
    expectReply(rig, ask('02000000'), answer('00000000', '02000000', '00000000'));
    expectReply(rig, ask('03000000'), answer('00000000', '03000000', '00000000'));
    expectReply(rig, ask('04000000'), answer('01000000', '04000000', '01000000'));
  });

  test('golden: MSI-X that is exposed', () => {
    const rig = rigOf({ msix: 'expose' });
    expectReply(rig, ask('02000000'), answer('09000000', '02000000', '04000000'));
  });

  test('a type there cannot be, too short, a small argsz: EINVAL', () => {
    const rig = rigOf();
    expectError(rig, ask('05000000'));
    expectError(rig, ask('00000000', '0c000000'));
    expectError(rig, '0400 0700 18000000 00000000 00000000  10000000 00000000');
  });

  test('replies that cannot be are refused', () => {
    const reply = parseMessage(hex(answer('09000000', '01000000', '21000000')));
    expect(decodeIrqInfoReply(reply, 1, 32)).toBeInstanceOf(Refusal);
    expect(decodeIrqInfoReply(reply, 2, 2048)).toBeInstanceOf(Refusal);
    expect(decodeIrqInfoReply(reply, 1, 64)).toBe(33);
  });
});
