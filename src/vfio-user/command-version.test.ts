/** VERSION, black box: bytes by hand from the specification, "VFIO_USER_VERSION". */
import { afterEach, expect, test } from 'vitest';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { hex, SessionRig } from '#testkit/vfio-user-rig';
import { Errno, Refusal } from './refusal.ts';
import { HEADER_BYTES, parseMessage } from './message.ts';
import { DEFAULT_CAPABILITIES, decodeVersion, encodeVersion } from './version.ts';

const rigs: SessionRig[] = [];
function rig(options = {}): SessionRig {
  const made = new SessionRig(new ExampleDevice(), options);
  rigs.push(made);
  return made;
}
afterEach(() => rigs.splice(0).forEach((made) => made.end()));

/** A VERSION request with `text` and a NUL as its data. */
function request(major: number, minor: number, text: string): Uint8Array {
  const data = Buffer.from(`${text}\0`);
  const header = Buffer.from(
    hex('0700 0100 00000000 00000000 00000000 0000 0000'), // id 7, command 1
  );
  header.writeUInt32LE(20 + data.length, 4);
  header.writeUInt16LE(major, 16);
  header.writeUInt16LE(minor, 18);
  return Buffer.concat([header, data]);
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.subarray(HEADER_BYTES + 4)).toString('latin1');
}

test('golden: a proposal of 0.1', () => {
  const message = encodeVersion(0x1234, false, 1, { ...DEFAULT_CAPABILITIES, writeMultiple: true });
  const json =
    '{"capabilities":{"max_msg_fds":1,"max_data_xfer_size":1048576,' +
    '"max_dma_maps":65535,"pgsizes":4096,"write_multiple":true}}\0';
  // 16 + 4 + 122 = 142 = 0x8e.
  expect(json).toHaveLength(122);
  expect(Buffer.from(message.subarray(0, 20))).toEqual(
    Buffer.from(hex('3412 0100 8e000000 00000000 00000000  0000 0100')),
  );
  expect(textOf(message)).toBe(json);
});

test('0.0 is answered with 0.0, 0.1 with 0.1, 0.7 with 0.1', () => {
  for (const [asked, answered] of [
    [0, 0],
    [1, 1],
    [7, 1],
  ] as const) {
    const reply = rig().ask(request(0, asked, '{}'));
    expect(Buffer.from(reply.bytes.subarray(0, 4))).toEqual(Buffer.from(hex('0700 0100')));
    expect(reply.flags).toBe(1);
    expect(Buffer.from(reply.bytes.subarray(16, 20))).toEqual(Buffer.from([0, 0, answered, 0]));
  }
});

test('what QEMU proposes is answered with limits, and migration is left out', () => {
  const asked =
    '{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576,"pgsizes":4096,' +
    '"max_dma_maps":65535,"migration":{"pgsize":4096,"max_bitmap_size":268435456}}}';
  const reply = rig().ask(request(0, 0, asked));
  expect(textOf(reply.bytes)).toBe(
    '{"capabilities":{"max_msg_fds":8,"max_data_xfer_size":1048576,' +
      '"max_dma_maps":65535,"pgsizes":4096}}\0',
  );
});

test('write_multiple is answered to whoever proposes it', () => {
  const reply = rig().ask(request(0, 0, '{"capabilities":{"write_multiple":true}}'));
  expect(textOf(reply.bytes)).toContain('"write_multiple":true');
});

test('without data, or with a NUL alone, the defaults hold', () => {
  for (const bytes of [
    hex('0000 0100 14000000 00000000 00000000  0000 0000'),
    hex('0000 0100 15000000 00000000 00000000  0000 0000 00'),
  ]) {
    const version = decodeVersion(parseMessage(bytes));
    expect(version).toMatchObject({ capabilities: DEFAULT_CAPABILITIES, migration: false });
    expect(rig().ask(bytes).flags).toBe(1);
  }
});

const broken: [string, Uint8Array][] = [
  ['half of a version', hex('0000 0100 12000000 00000000 00000000  0000')],
  ['another major', request(1, 0, '{}')],
  ['no JSON', request(0, 0, '{"capabilities":')],
  ['no UTF-8', Buffer.concat([request(0, 0, '{}').subarray(0, 20), Buffer.of(0xff, 0xfe, 0)])],
  ['JSON that is a list', request(0, 0, '[]')],
  ['capabilities that are a number', request(0, 0, '{"capabilities":1}')],
  ['a limit that is text', request(0, 0, '{"capabilities":{"max_msg_fds":"8"}}')],
  ['a limit below zero', request(0, 0, '{"capabilities":{"max_data_xfer_size":-1}}')],
  ['half a limit', request(0, 0, '{"capabilities":{"max_data_xfer_size":1.5}}')],
  ['a promise that is no boolean', request(0, 0, '{"capabilities":{"write_multiple":1}}')],
];

test.each(broken)('%s is refused with EINVAL, and that is the end', (_name, bytes) => {
  const made = rig();
  const reply = made.ask(bytes);
  expect(reply).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
  expect(reply.bytes).toHaveLength(16);
  expect(made.port.isClosed).toBe(true);
  expect(made.ends).toHaveLength(1);
});

test('anything before VERSION is the end', () => {
  const made = rig();
  const reply = made.ask(hex('0100 0d00 10000000 00000000 00000000'));
  expect(reply).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
  expect(made.ends).toEqual(['protocol fault: DEVICE_RESET out of turn']);
});

test('a second VERSION is refused, and no end', () => {
  const made = rig().hello();
  expect(made.ask(request(0, 0, '{}'))).toMatchObject({ flags: 0x21, errno: Errno.EINVAL });
  expect(made.ends).toEqual([]);
});

test('deeply nested JSON does not end the process', () => {
  const deep = '['.repeat(4000) + ']'.repeat(4000);
  const version = decodeVersion(parseMessage(request(0, 0, `{"capabilities":{"x":${deep}}}`)));
  expect(version instanceof Refusal || version.major === 0).toBe(true);
});
