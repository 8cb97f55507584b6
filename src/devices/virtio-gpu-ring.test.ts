/** Configuration space, registers and rings as they are on the bus, from the specification. */
import { beforeEach, describe, expect, it } from 'vitest';
import { TlpKind } from '#pcie/tlp';
import {
  AVAIL,
  DATA,
  DESC,
  ENTRIES,
  HOST_BASE,
  INDIRECT,
  NEEDS_RESET,
  NEXT,
  READY,
  USED,
  VirtioGpuRig,
  WRITE,
} from '#testkit/virtio-gpu-rig';

let rig: VirtioGpuRig;

beforeEach(() => {
  rig = new VirtioGpuRig();
});

const hex = (value: number): string => value.toString(16).padStart(8, '0');

describe('configuration space', () => {
  it('is as the specifications have it, DWORD by DWORD', () => {
    rig.device.reset(rig.host.now);
    const words: Record<string, string> = {};
    for (let register = 0; register < 0x100; register += 4) {
      const value = rig.host.configRead(register);
      if (value !== 0) words[register.toString(16).padStart(2, '0')] = hex(value);
    }
    expect(words).toEqual({
      // 1af4h, 1040h + 16; capabilities; display, other, revision 1; INTA.
      '00': '10501af4',
      '04': '00100000',
      '08': '03800001',
      '2c': '11001af4',
      '34': '00000040',
      '3c': '00000100',
      // Power management version 3, next 48h; no soft reset.
      '40': '00034801',
      '44': '00000008',
      // MSI, 64-bit, one vector, next 58h.
      '48': '00805805',
      // PCI Express version 2, endpoint, next 94h (60 bytes).
      '58': '00029410',
      // Device Capabilities: 512 bytes, extended tags, role-based errors (bit 15).
      '5c': '00008022',
      // Device Control after reset: relaxed ordering, extended tags, no snoop, MRRS 512 (010b).
      '60': '00002910',
      // Link: ×16, 8 GT/s; ASPM Optionality Compliance, which all have (bit 22).
      '64': '00400103',
      '68': '01030000',
      // Device Capabilities 2: completion timeout disable, 10-bit tag completer.
      '7c': '00010010',
      '84': '0000000e',
      // Target speed 8 GT/s; all phases of equalization were successful (bits 20:17).
      '88': '001e0003',
      // Vendor capabilities: 09h, next, length, type; bar 0; offset; length.
      '94': '0110a409', // common
      a0: '0000003c',
      a4: '0214b809', // notify
      ac: '00003000',
      b0: '00000008',
      b4: '00000004',
      b8: '0310c809', // ISR
      c0: '00001000',
      c4: '00000001',
      c8: '0410d809', // device
      d0: '00002000',
      d4: '00000010',
      d8: '05140009', // window
    });
  });

  it('has BAR0 of 16 KiB, 32 bits, not prefetchable, and no other', () => {
    for (const register of [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24]) {
      rig.host.configWrite(register, 0xffff_ffff);
      expect(hex(rig.host.configRead(register))).toBe(register === 0x10 ? 'ffffc000' : '00000000');
    }
  });

  it('has a window over the structures', () => {
    const window = 0xd8;
    const access = (offset: number, length: number, bar = 0): void => {
      rig.host.configWrite(window + 4, bar, 1);
      rig.host.configWrite(window + 8, offset);
      rig.host.configWrite(window + 12, length);
    };
    const data = window + 16;
    access(0x14, 1);
    rig.host.configWrite(data, 0xffff_ff03);
    expect(rig.status).toBe(3);
    access(0x12, 2);
    expect(rig.host.configRead(data)).toBe(2); // num_queues
    access(0x00, 4);
    rig.host.configWrite(data, 1);
    access(0x04, 4);
    // VERSION_1 (32), ACCESS_PLATFORM (33), ORDER_PLATFORM (36).
    expect(rig.host.configRead(data)).toBe(0x13);
    // queue_select alone: the status beside it stays.
    access(0x16, 2);
    rig.host.configWrite(data, 1);
    expect([rig.read(0x16, 2), rig.read(0x18, 2), rig.status]).toEqual([1, 16, 3]);
    // Not an access: misaligned, too long, another BAR, beyond the end.
    for (const [offset, length, bar] of [
      [0x15, 2, 0],
      [0x14, 3, 0],
      [0x14, 1, 2],
      [0x4000, 4, 0],
    ] as const) {
      access(offset, length, bar);
      rig.host.configWrite(data, 0);
      expect([rig.host.configRead(data), rig.status]).toEqual([0, 3]);
    }
  });
});

describe('common configuration', () => {
  it('offers features, and takes none it does not have', () => {
    rig.write(0, 4, 0);
    // EDID (1), INDIRECT_DESC (28), EVENT_IDX (29).
    expect(hex(rig.read(4, 4))).toBe('30000002');
    rig.write(0, 4, 2);
    expect(rig.read(4, 4)).toBe(0);
    for (const [low, high, isFine] of [
      [0, 1, true],
      [0x3000_0002, 0x13, true],
      [1, 1, false], // VIRGL
      [2, 0, false], // no VERSION_1
      [0, 0x101, false],
    ] as const) {
      rig.write(0x14, 1, 0);
      rig.write(0x14, 1, 3);
      rig.write(8, 4, 0);
      rig.write(12, 4, low);
      rig.write(8, 4, 1);
      rig.write(12, 4, high);
      rig.write(0x14, 1, 11);
      expect(rig.status).toBe(isFine ? 11 : 3);
    }
  });

  it('keeps features and queues in use as they are', () => {
    rig.start();
    rig.write(8, 4, 1);
    rig.write(12, 4, 0);
    expect(rig.read(12, 4)).toBe(1);
    rig.write(0x16, 2, 0);
    rig.write(0x18, 2, 4);
    rig.write(0x20, 4, 0x1234_5670);
    rig.write(0x1c, 2, 0);
    expect([rig.read(0x18, 2), rig.read(0x20, 4), rig.read(0x1c, 2)]).toEqual([
      ENTRIES,
      DESC % 2 ** 32,
      1,
    ]);
  });

  it('has no third queue, no MSI-X vectors, sizes that are powers of two alone', () => {
    rig.write(0x16, 2, 2);
    expect(rig.read(0x18, 2)).toBe(0);
    rig.write(0x1c, 2, 1);
    expect(rig.read(0x1c, 2)).toBe(0);
    rig.write(0x16, 2, 0);
    expect([rig.read(0x18, 2), rig.read(0x1e, 2)]).toEqual([256, 0]);
    for (const size of [0, 3, 512]) rig.write(0x18, 2, size);
    expect(rig.read(0x18, 2)).toBe(256);
    rig.write(0x10, 2, 1);
    rig.write(0x1a, 2, 1);
    expect([rig.read(0x10, 2), rig.read(0x1a, 2)]).toEqual([0xffff, 0xffff]);
    rig.write(0x16, 2, 1);
    expect([rig.read(0x18, 2), rig.read(0x1e, 2)]).toEqual([16, 1]);
  });

  it('does nothing with buffers before the driver is ready', () => {
    // ACKNOWLEDGE, DRIVER and FEATURES_OK, but not DRIVER_OK.
    rig.start(0, 11);
    rig.host.sent.length = 0;
    rig.offer([0]);
    expect(rig.host.sent.map(({ tlp }) => tlp.kind)).toEqual([]);
    rig.write(0x14, 1, READY);
    rig.offer([0]);
    expect(rig.host.sent.length).toBeGreaterThan(0);
  });

  it('cannot put rings where none can be', () => {
    for (const [offset, value] of [
      [0x20, 8], // not a multiple of 16
      [0x28, 1],
      [0x30, 2],
      [0x24, 0x20_0000], // from 2^53 on
      [0x2c, 0xffff_ffff],
      [0x34, 0x1f_ffff], // ends beyond
    ] as const) {
      rig.write(0x14, 1, 0);
      rig.write(0x16, 2, 0);
      if (offset === 0x34) rig.write(0x30, 4, 0xffff_fffc);
      rig.write(offset, 4, value);
      rig.write(0x1c, 2, 1);
      expect([rig.read(0x1c, 2), rig.status]).toEqual([0, NEEDS_RESET]);
    }
    rig.write(0x14, 1, 0);
    expect(rig.status).toBe(0);
  });
});

describe('interrupts', () => {
  function answerOne(): void {
    const bytes = rig.request(DATA, 0x102, [9, 0]);
    rig.descriptor(0, DATA, bytes, NEXT, 1);
    rig.descriptor(1, DATA + 0x100, 24, WRITE);
    rig.offer([0], rig.usedIdx() + 1);
  }

  it('go out behind what was written, as INTx until the ISR is read', () => {
    rig.start();
    rig.host.sent.length = 0;
    answerOne();
    const posted = rig.host.sent
      .filter(({ tlp }) => tlp.kind === TlpKind.MWr64 || tlp.kind === TlpKind.Msg)
      .map(({ tlp, address }) => (tlp.kind === TlpKind.Msg ? tlp.messageCode : address));
    // Response, ring entry, idx with the flags before it, Assert_INTA.
    expect(posted).toEqual([DATA + 0x100, USED + 4, USED, 0x20]);
    expect(rig.word(DATA + 0x100)).toBe(0x1203);
    expect([rig.word(USED), rig.word(USED + 4), rig.word(USED + 8)]).toEqual([0x1_0000, 0, 24]);
    expect((rig.host.configRead(4) >>> 19) & 1).toBe(1);
    rig.host.sent.length = 0;
    // Half of the DWORD that is not the ISR does nothing.
    expect(rig.read(0x1002, 2)).toBe(0);
    expect(rig.read(0x1000, 1)).toBe(1);
    expect(rig.read(0x1000, 1)).toBe(0);
    const codes = rig.host.sent.filter(({ tlp }) => tlp.kind === TlpKind.Msg);
    expect(codes.map(({ tlp }) => tlp.messageCode)).toEqual([0x24]);
  });

  it('are MSI where that is enabled', () => {
    rig.enableMsi();
    rig.start();
    rig.host.sent.length = 0;
    answerOne();
    expect(rig.host.interrupts).toEqual([0x31]);
    expect(rig.host.sent.some(({ tlp }) => tlp.kind === TlpKind.Msg)).toBe(false);
    expect(rig.read(0x1000, 1)).toBe(1);
  });

  it('are not sent when the driver does not want them', () => {
    rig.enableMsi();
    rig.start();
    rig.view.setUint16(AVAIL - HOST_BASE, 1, true);
    answerOne();
    expect([rig.usedIdx(), rig.host.interrupts.length]).toEqual([1, 0]);
  });

  it('with an event index are sent where it says alone', () => {
    rig.enableMsi();
    rig.start(1 << 29);
    const bytes = rig.request(DATA, 0x102, [9, 0]);
    rig.descriptor(0, DATA, bytes, NEXT, 1);
    rig.descriptor(1, DATA + 0x100, 24, WRITE);
    // used_event 2: after the third of four.
    rig.view.setUint16(AVAIL + 4 + 2 * ENTRIES - HOST_BASE, 2, true);
    // Flags have no meaning then.
    rig.view.setUint16(AVAIL - HOST_BASE, 1, true);
    rig.offer([0, 0, 0, 0]);
    expect([rig.usedIdx(), rig.host.interrupts.length]).toEqual([4, 1]);
    // avail_event: the next buffer is to be notified.
    expect(rig.view.getUint16(USED + 4 + 8 * ENTRIES - HOST_BASE, true)).toBe(4);
  });

  it('say that the device needs a reset', () => {
    rig.start();
    rig.host.sent.length = 0;
    rig.offer([ENTRIES]);
    expect([rig.status, rig.read(0x1000, 1)]).toEqual([READY | NEEDS_RESET, 2]);
  });
});

describe('a request', () => {
  it('may lie anywhere: in pieces, in the table and in an indirect one behind it', () => {
    rig.start();
    const bytes = rig.request(DATA, 0x102, [9, 0]);
    expect(bytes).toBe(32);
    rig.descriptor(3, DATA, 1, NEXT, 5);
    rig.descriptor(5, DATA + 1, 0, NEXT, 2); // nothing
    // WRITE of the descriptor that refers to a table is to be ignored.
    const table = DATA + 0x1000;
    rig.descriptor(2, table, 16 * 4, INDIRECT | WRITE);
    rig.descriptor(0, DATA + 1, 30, NEXT, 3, table);
    rig.descriptor(3, DATA + 31, 1, NEXT, 1, table);
    rig.descriptor(1, DATA + 0x200, 3, WRITE | NEXT, 2, table);
    rig.descriptor(2, DATA + 0x203, 100, WRITE, 0, table);
    rig.offer([3]);
    expect([rig.status, rig.usedIdx()]).toEqual([READY, 1]);
    expect([rig.word(USED + 4), rig.word(USED + 8)]).toEqual([3, 24]);
    expect(rig.word(DATA + 0x200)).toBe(0x1203);
  });

  const table = DATA + 0x1000;
  it.each<[string, (rig: VirtioGpuRig) => void]>([
    ['a head beyond the table', (it) => it.offer([ENTRIES])],
    ['an idx beyond the ring', (it) => it.offer([0], ENTRIES + 1)],
    [
      'a chain that is a circle',
      (it) => {
        it.descriptor(0, DATA, 24, NEXT, 1);
        it.descriptor(1, DATA, 24, NEXT, 0);
        it.offer([0]);
      },
    ],
    [
      'a chain that leaves the table',
      (it) => {
        it.descriptor(0, DATA, 24, NEXT, 999);
        it.offer([0]);
      },
    ],
    [
      'a readable buffer behind a writable one',
      (it) => {
        it.descriptor(0, DATA, 24, NEXT | WRITE, 1);
        it.descriptor(1, DATA, 24);
        it.offer([0]);
      },
    ],
    [
      'a buffer from 2^53 on',
      (it) => {
        it.descriptor(0, 2 ** 53 - 16, 24);
        it.offer([0]);
      },
    ],
    [
      'a request where no memory is',
      (it) => {
        it.descriptor(0, 0x1000, 24);
        it.offer([0]);
      },
    ],
    [
      'an indirect descriptor with a next one',
      (it) => {
        it.descriptor(0, table, 16, INDIRECT | NEXT, 1);
        it.offer([0]);
      },
    ],
    [
      'an empty indirect table',
      (it) => {
        it.descriptor(0, table, 0, INDIRECT);
        it.offer([0]);
      },
    ],
    [
      'half an indirect table',
      (it) => {
        it.descriptor(0, table, 24, INDIRECT);
        it.offer([0]);
      },
    ],
    [
      'an indirect table of 4 GiB',
      (it) => {
        it.descriptor(0, table, 0xffff_fff0, INDIRECT);
        it.offer([0]);
      },
    ],
    [
      'an indirect table where no memory is',
      (it) => {
        it.descriptor(0, 0x1000, 16, INDIRECT);
        it.offer([0]);
      },
    ],
    [
      'an indirect table in an indirect table',
      (it) => {
        it.descriptor(0, table, 16, INDIRECT);
        it.descriptor(0, table, 16, INDIRECT, 0, table);
        it.offer([0]);
      },
    ],
    [
      'an indirect chain that is a circle',
      (it) => {
        it.descriptor(0, table, 32, INDIRECT);
        it.descriptor(0, DATA, 4, NEXT, 1, table);
        it.descriptor(1, DATA, 4, NEXT, 0, table);
        it.offer([0]);
      },
    ],
    [
      'an indirect chain that leaves its table',
      (it) => {
        it.descriptor(0, table, 32, INDIRECT);
        it.descriptor(0, DATA, 4, NEXT, 2, table);
        it.offer([0]);
      },
    ],
  ])('%s needs a reset, after which all is well', (_name, mistake) => {
    rig.enableMsi();
    rig.start();
    mistake(rig);
    expect(rig.status).toBe(READY | NEEDS_RESET);
    expect(rig.host.interrupts.length).toBe(1);
    expect(rig.log).toHaveLength(1);
    rig.host.sent.length = 0;
    rig.offer([0]);
    rig.offer([0], 1, 1);
    expect(rig.host.sent.filter(({ tlp }) => tlp.kind === TlpKind.MRd64)).toEqual([]);
    rig.host.memory.fill(0);
    rig.start();
    const bytes = rig.request(DATA, 0x102, [9, 0]);
    rig.descriptor(0, DATA, bytes, NEXT, 1);
    rig.descriptor(1, DATA + 0x100, 24, WRITE);
    rig.offer([0]);
    expect([rig.status, rig.usedIdx(), rig.word(DATA + 0x100)]).toEqual([READY, 1, 0x1203]);
  });

  it('of the other queue is not gone on with', () => {
    rig.start();
    rig.host.answerReads = false;
    rig.offer([0], 1, 1);
    const [underWay] = rig.host.waiting.splice(0);
    rig.host.answerReads = true;
    rig.offer([ENTRIES]);
    expect(rig.status).toBe(READY | NEEDS_RESET);
    rig.host.sent.length = 0;
    rig.host.answer(underWay!);
    expect(rig.host.sent).toEqual([]);
  });

  it('with an indirect table is a mistake where that was not negotiated', () => {
    rig.start(0);
    rig.descriptor(0, table, 16, INDIRECT);
    rig.descriptor(0, DATA, 24, 0, 0, table);
    rig.offer([0]);
    expect(rig.status).toBe(READY | NEEDS_RESET);
  });

  it('that is notified while another is under way is not missed', () => {
    rig.start(0);
    const bytes = rig.request(DATA, 0x102, [9, 0]);
    rig.descriptor(0, DATA, bytes, NEXT, 1);
    rig.descriptor(1, DATA + 0x100, 24, WRITE);
    rig.host.answerReads = false;
    rig.offer([0]);
    const answerNext = (): void => rig.host.answer(rig.host.waiting.shift()!);
    while (rig.usedIdx() === 0) answerNext();
    // The device has asked for flags and idx; what it is answered is from before the second buffer.
    expect(rig.host.waiting.map(({ addressLo }) => addressLo)).toEqual([AVAIL % 2 ** 32]);
    rig.offer([0, 0]);
    rig.view.setUint16(AVAIL + 2 - HOST_BASE, 1, true);
    answerNext();
    rig.view.setUint16(AVAIL + 2 - HOST_BASE, 2, true);
    while (rig.host.waiting.length > 0) answerNext();
    expect(rig.usedIdx()).toBe(2);
  });
});
