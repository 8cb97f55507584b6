import { describe, expect, it } from 'vitest';
import { rootPortsOf } from './pci-topology.ts';

// Shapes after QEMU's QAPI (qapi/pci.json: PciInfo, PciDeviceInfo, PciBridgeInfo, PciBusInfo).
const range = (base: number, limit: number) => ({ base, limit });

const endpoint = (bus: number, slot: number, id = '') => ({
  bus,
  slot,
  function: 0,
  class_info: { class: 512, desc: 'Ethernet controller' },
  id: { device: 0x1041, vendor: 0x1af4 },
  irq: 11,
  irq_pin: 1,
  qdev_id: id,
  regions: [{ bar: 1, type: 'memory', address: 0xfe80_0000, size: 4096, prefetch: false }],
});

function bridge(slot: number, id: string, bus: object, devices?: object[], at = 0) {
  return {
    ...endpoint(at, slot, id),
    class_info: { class: 0x0604, desc: 'PCI bridge' },
    id: { device: 12, vendor: 0x1b36 },
    pci_bridge: { bus, ...(devices === undefined ? {} : { devices }) },
  };
}

const busInfo = (secondary: number, memory: object, prefetchable: object) => ({
  number: 0,
  secondary,
  subordinate: secondary,
  io_range: range(0x1000, 0x1fff),
  memory_range: memory,
  prefetchable_range: prefetchable,
});

/** A q35 with two root ports, one of them with a function, and a switch below a third. */
const ANSWER = [
  {
    bus: 0,
    devices: [
      endpoint(0, 1),
      bridge(
        2,
        'rp0',
        busInfo(1, range(0xfc00_0000, 0xfdff_ffff), range(0x80_0000_0000, 0x80_0fff_ffff)),
        [endpoint(1, 0, 'dxpu-slot0')],
      ),
      // Nothing set up: base registers all ones of their bits, limit zero (7.5.1.3.8).
      bridge(3, 'rp1', busInfo(2, range(0xfff0_0000, 0x000f_ffff), range(0, 0xf_ffff)), []),
      bridge(4, 'sw', busInfo(3, range(0xfb00_0000, 0xfb0f_ffff), range(0, 0)), [
        bridge(
          0,
          '',
          busInfo(4, range(0xfb00_0000, 0xfb0f_ffff), range(0, 0)),
          [bridge(1, 'leaf', busInfo(5, range(0xfb00_0000, 0xfb0f_ffff), range(0, 0)), [], 4)],
          3,
        ),
      ]),
    ],
  },
  { bus: 128, devices: [bridge(0, 'other-root', busInfo(129, range(0, 0), range(0, 0)))] },
];
const EMPTY = { base: 0x10_0000, limit: 0xf_ffff };

describe('root ports of query-pci', () => {
  const ports = rootPortsOf(ANSWER);

  it('are bridges with a name, on any bus and below other bridges', () => {
    expect([...ports.keys()].sort()).toEqual(['leaf', 'other-root', 'rp0', 'rp1', 'sw']);
    expect(ports.get('leaf')?.secondaryBus).toBe(5);
    expect(ports.get('other-root')?.secondaryBus).toBe(129);
  });

  it('have their bus and windows, above 4 GiB too', () => {
    expect(ports.get('rp0')).toEqual({
      id: 'rp0',
      secondaryBus: 1,
      nonPrefetchable: { base: 0xfc00_0000, limit: 0xfdff_ffff },
      prefetchable: { base: 0x80_0000_0000, limit: 0x80_0fff_ffff },
    });
  });

  it('have empty windows until the guest has set them up', () => {
    expect(ports.get('rp1')).toEqual({
      id: 'rp1',
      secondaryBus: 2,
      nonPrefetchable: EMPTY,
      prefetchable: EMPTY,
    });
  });

  it.each([
    ['not of whole MiB', range(0xfc00_1000, 0xfcff_ffff)],
    ['with an end inside a MiB', range(0xfc00_0000, 0xfc00_0fff)],
    ['below zero', range(-0x10_0000, 0xf_ffff)],
    ['beyond what a number holds', range(2 ** 60, 2 ** 60 + 2 ** 54 - 1)],
    ['of text', { base: '0xfc000000', limit: '0xfcffffff' }],
    ['that is missing', {}],
    ['that is null', null as unknown as object],
  ])('have no window %s', (_what, window) => {
    const devices = [bridge(2, 'rp0', busInfo(1, window, window))];
    const found = rootPortsOf([{ bus: 0, devices }]).get('rp0');
    expect(found).toMatchObject({ secondaryBus: 1, nonPrefetchable: EMPTY, prefetchable: EMPTY });
  });

  it.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'q35'],
    ['an object', { bus: 0 }],
    ['buses that are none', [null, 7, {}, { devices: 'many' }]],
    ['devices that are none', [{ devices: [null, 7, 'x', [], {}] }]],
    ['bridges that are none', [{ devices: [{ qdev_id: 'a', pci_bridge: null }] }]],
    ['names that are none', [{ devices: [{ qdev_id: 7, pci_bridge: {} }, { pci_bridge: {} }] }]],
  ])('are none in %s', (_what, answer) => {
    expect(rootPortsOf(answer).size).toBe(0);
  });

  it('have no bus where there is no sense in it', () => {
    for (const bus of [null, {}, { secondary: -1 }, { secondary: 1.5 }, { secondary: '1' }]) {
      const devices = [{ qdev_id: 'rp0', pci_bridge: { bus } }];
      expect(rootPortsOf([{ devices }]).get('rp0')?.secondaryBus).toBe(0);
    }
  });

  it('are looked for no deeper than buses go', () => {
    let devices: object[] = [];
    for (let depth = 0; depth < 100_000; depth++) devices = [bridge(1, `p${depth}`, {}, devices)];
    expect(rootPortsOf([{ bus: 0, devices }]).size).toBe(256);
  });
});
