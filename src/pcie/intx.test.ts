import { beforeEach, describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { FakeHost } from '#testkit/fake-host';
import { Endpoint } from './endpoint.ts';
import { TlpKind } from './tlp.ts';

const NOW = 0 as Nanos;
const MSI = 0x48; // Behind power management, 8 bytes at 40h.
const INTERRUPT_DISABLE = 1 << 10;

let host: FakeHost;
let endpoint: Endpoint;

beforeEach(() => {
  endpoint = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
    serial: 1n,
    bars: [],
    intx: true,
  });
  host = new FakeHost(0, 4096);
  host.plug(endpoint);
  host.configWrite(0x04, 0x4, 3);
  host.sent.length = 0;
});

/** Messages sent since the last look: Assert_INTA 20h, Deassert_INTA 24h. */
function messages(): number[] {
  const codes = host.sent
    .filter(({ tlp }) => tlp.kind === TlpKind.Msg)
    .map(({ tlp }) => {
      // Local routing, from the function itself.
      expect([tlp.messageRouting, tlp.requesterId]).toEqual([4, host.bdf]);
      return tlp.messageCode;
    });
  host.sent.length = 0;
  return codes;
}

const interruptStatus = (): number => (host.configRead(0x04) >>> 19) & 1;

describe('INTA', () => {
  it('is the pin that config space shows, and is there only when asked for', () => {
    expect(host.configRead(0x3c)).toBe(0x0100);
    host.configWrite(0x3c, 0xffff_ffff);
    expect(host.configRead(0x3c)).toBe(0x01ff);
  });

  it('is asserted and deasserted by one message each', () => {
    endpoint.setInterruptLevel(NOW, true);
    endpoint.setInterruptLevel(NOW, true);
    expect(messages()).toEqual([0x20]);
    expect(interruptStatus()).toBe(1);
    endpoint.setInterruptLevel(NOW, false);
    endpoint.setInterruptLevel(NOW, false);
    expect(messages()).toEqual([0x24]);
    expect(interruptStatus()).toBe(0);
  });

  it('stays silent while Interrupt Disable is set, and says what has become of it then', () => {
    endpoint.setInterruptLevel(NOW, true);
    expect(messages()).toEqual([0x20]);
    host.configWrite(0x04, INTERRUPT_DISABLE, 3);
    expect(messages()).toEqual([0x24]);
    expect(interruptStatus()).toBe(1);
    // Bus mastering is off as well now, and does not matter.
    host.configWrite(0x04, 0, 3);
    expect(messages()).toEqual([0x20]);
  });

  it('gives way to MSI', () => {
    endpoint.setInterruptLevel(NOW, true);
    expect(messages()).toEqual([0x20]);
    host.configWrite(MSI, 1 << 16, 4);
    expect(messages()).toEqual([0x24]);
    host.configWrite(MSI, 0, 4);
    expect(messages()).toEqual([0x20]);
  });

  it('waits for room, and does not say what has passed meanwhile', () => {
    host.postedCredits = 0;
    endpoint.setInterruptLevel(NOW, true);
    endpoint.setInterruptLevel(NOW, false);
    endpoint.setInterruptLevel(NOW, true);
    expect(messages()).toEqual([]);
    host.postedCredits = 1;
    host.resume();
    expect(messages()).toEqual([0x20]);
    endpoint.setInterruptLevel(NOW, false);
    endpoint.setInterruptLevel(NOW, true);
    host.postedCredits = 1;
    host.resume();
    expect(messages()).toEqual([]);
  });

  it('is silent in D3hot', () => {
    endpoint.setInterruptLevel(NOW, true);
    messages();
    host.configWrite(0x44, 3);
    expect(messages()).toEqual([0x24]);
    host.configWrite(0x44, 0);
    expect(messages()).toEqual([0x20]);
  });

  it('is forgotten by a reset, which sends nothing', () => {
    endpoint.setInterruptLevel(NOW, true);
    messages();
    endpoint.reset();
    expect(messages()).toEqual([]);
    expect(interruptStatus()).toBe(0);
    endpoint.setInterruptLevel(NOW, false);
    expect(messages()).toEqual([]);
  });
});

it('a function without MSI has no such capability, and its interrupt is not sent', () => {
  const bare = new Endpoint({
    identity: { vendorId: 0xddb0, deviceId: 1, revisionId: 2, classCode: 0x120000 },
    serial: 1n,
    bars: [],
    msiVectors: 0,
  });
  const other = new FakeHost(0, 4096);
  other.plug(bare);
  expect(bare.config.findCapability(0x05)).toBe(0);
  expect(bare.interrupt(NOW, 0, 0, undefined, 0)).toBe(false);
  bare.setInterruptLevel(NOW, true);
  expect(other.sent).toEqual([]);
  expect(other.configRead(0x3c)).toBe(0);
});

it('a handler sees accesses to its register alone, a read before it is answered', () => {
  const seen: string[] = [];
  endpoint.config.define(0xf0, 0, 0xffff_ffff);
  endpoint.handleConfig(0xf0, {
    beforeRead: () => {
      seen.push('read');
      endpoint.config.set32(0xf0, 0x1234);
    },
    afterWrite: () => seen.push(`write ${endpoint.config.read32(0xf0).toString(16)}`),
  });
  expect(host.configRead(0xf0)).toBe(0x1234);
  host.configWrite(0xf0, 0xabcd, 1);
  host.configWrite(0xf4, 1);
  host.configRead(0xec);
  expect(seen).toEqual(['read', 'write 12cd']);
});
