import { describe, expect, it } from 'vitest';
import { COMMAND, COMMAND_MEMORY_SPACE_ENABLE, ConfigSpace } from './config-space.ts';
import { LINK_CONTROL, PcieCapability, PortType } from './pcie-capability.ts';
import { HotPlugSlot, SLOT_CAPABILITIES, SLOT_CONTROL } from './pcie-slot.ts';
import { EMPTY_WINDOW, Type1Header, encodeWindow } from './type1-header.ts';

const ALL_BYTES = 15;

function port(): { config: ConfigSpace; header: Type1Header } {
  const config = new ConfigSpace(
    { vendorId: 0x1234, deviceId: 1, revisionId: 0, classCode: 0x060400 },
    1,
  );
  return { config, header: new Type1Header(config) };
}

describe('Type1Header', () => {
  it('says header type 1, and what software may write', () => {
    const { config } = port();
    const ones: Record<string, string> = {};
    for (const register of [0x0c, 0x10, 0x18, 0x1c, 0x20, 0x24, 0x28, 0x2c, 0x30, 0x38, 0x3c]) {
      config.write(register, 0xffff_ffff, ALL_BYTES);
      ones[register.toString(16)] = config.read32(register).toString(16).padStart(8, '0');
    }
    expect(ones).toEqual({
      c: '000100ff',
      '10': '00000000',
      '18': '00ffffff',
      '1c': '00000000',
      '20': 'fff0fff0',
      '24': 'fff1fff1',
      '28': 'ffffffff',
      '2c': 'ffffffff',
      '30': '00000000',
      '38': '00000000',
      // Bridge control: parity 0, SERR 1, secondary bus reset 6.
      '3c': '004300ff',
    });
  });

  it('gives bus numbers and routes by them', () => {
    const { config, header } = port();
    expect(header.routesBus(0)).toBe(false);
    config.write(0x18, 0xff08_0501, 0b0111);
    expect([header.primaryBus, header.secondaryBus, header.subordinateBus]).toEqual([1, 5, 8]);
    expect([4, 5, 8, 9].map((bus) => header.routesBus(bus))).toEqual([false, true, true, false]);
  });

  it('decodes windows as inclusive ranges of 1 MiB granules', () => {
    const { config, header } = port();
    // Base E000_0000: field E000h. Limit E1FF_FFFF: field E1F0h.
    config.write(0x20, 0xe1f0_e000, ALL_BYTES);
    expect(header.memoryWindow).toEqual({ base: 0xe000_0000, limit: 0xe1ff_ffff });
    // 80_0000_0000 to 83_FFFF_FFFF.
    config.write(0x24, 0xfff0_0000, ALL_BYTES);
    config.write(0x28, 0x80, ALL_BYTES);
    config.write(0x2c, 0x83, ALL_BYTES);
    expect(header.prefetchableWindow).toEqual({ base: 0x80_0000_0000, limit: 0x83_ffff_ffff });
  });

  it('encodes what it decodes', () => {
    expect(encodeWindow(0xe000_0000, 0xe1ff_ffff)).toBe(0xe1f0_e000);
    expect(encodeWindow(0x80_0010_0000, 0x83_ffff_ffff)).toBe(0xfff0_0010);
    const { config, header } = port();
    config.write(0x20, encodeWindow(0xffe0_0000, 0xffff_ffff), ALL_BYTES);
    expect(header.memoryWindow).toEqual({ base: 0xffe0_0000, limit: 0xffff_ffff });
  });

  it('has an empty window when base is above limit', () => {
    const { config, header } = port();
    config.write(0x20, EMPTY_WINDOW, ALL_BYTES);
    config.write(0x24, EMPTY_WINDOW, ALL_BYTES);
    expect([header.memoryWindow, header.prefetchableWindow]).toEqual([undefined, undefined]);
    config.write(0x28, 1, ALL_BYTES);
    expect(header.prefetchableWindow).toBeUndefined();
  });

  it('forwards what one window holds whole, while memory space is enabled', () => {
    const { config, header } = port();
    config.write(0x20, encodeWindow(0xe000_0000, 0xe00f_ffff), ALL_BYTES);
    config.write(0x24, EMPTY_WINDOW, ALL_BYTES);
    expect(header.forwards(0xe000_0000, 4)).toBe(false);
    config.write(COMMAND, COMMAND_MEMORY_SPACE_ENABLE, ALL_BYTES);
    expect(header.forwards(0xe000_0000, 4)).toBe(true);
    expect(header.forwards(0xe00f_fffc, 4)).toBe(true);
    expect(header.forwards(0xe00f_fffc, 5)).toBe(false);
    expect(header.forwards(0xdfff_fffc, 4)).toBe(false);
  });

  it('shows a secondary bus reset', () => {
    const { config, header } = port();
    config.write(0x3c, 0x0040_0000, 0b0100);
    expect(header.secondaryBusReset).toBe(true);
  });
});

describe('HotPlugSlot', () => {
  function slot(): { config: ConfigSpace; offset: number; slot: HotPlugSlot } {
    const { config } = port();
    const capability = new PcieCapability(config, {
      portType: PortType.DOWNSTREAM,
      maxPayloadBytes: 512,
      extendedTag: true,
      tenBitTagCompleter: true,
      tenBitTagRequester: false,
      generation: 3,
      lanes: 8,
      portNumber: 2,
      slotImplemented: true,
    });
    return {
      config,
      offset: capability.offset,
      slot: new HotPlugSlot(config, capability, { physicalSlotNumber: 3, surprise: true }),
    };
  }

  it('says what it can do', () => {
    const { config, offset } = slot();
    // Version 2, type 6 (downstream), slot implemented: 0162h.
    expect(config.read32(offset)).toBe(0x0162_0010);
    // 8 GT/s, x8, surprise down reporting 19, link active reporting 20, optionality 22, port 2.
    expect(config.read32(offset + 0x0c)).toBe(0x0258_0083);
    // Surprise 5, hot-plug capable 6, no command completed 18, slot number 3 << 19.
    expect(config.read32(offset + SLOT_CAPABILITIES)).toBe(0x001c_0060);
    config.write(offset + SLOT_CONTROL, 0xffff_ffff, ALL_BYTES);
    // Presence 3, hot-plug interrupt 5, link state 12.
    expect(config.read32(offset + SLOT_CONTROL)).toBe(0x0000_1028);
  });

  it('tells of an adapter that comes and goes, once a change', () => {
    const { config, offset, slot: hotPlug } = slot();
    const slotStatus = (): number => config.read32(offset + SLOT_CONTROL) >>> 16;
    const linkStatus = (): number => config.read32(offset + LINK_CONTROL) >>> 16;
    expect([slotStatus(), linkStatus()]).toEqual([0, 0x0003]);
    hotPlug.setPresent(true);
    // Presence Detect State 6, Changed 3.
    expect(slotStatus()).toBe(0x0048);
    hotPlug.setLinkActive(true);
    // Link State Changed 8. Link Status: active 13, x8 << 4, 8 GT/s.
    expect([slotStatus(), linkStatus()]).toEqual([0x0148, 0x2083]);
    config.write(offset + SLOT_CONTROL, 0x0108_0000, 0b1100);
    expect(slotStatus()).toBe(0x0040);
    hotPlug.setPresent(true);
    hotPlug.setLinkActive(true);
    expect(slotStatus()).toBe(0x0040);
    hotPlug.setLinkActive(false);
    hotPlug.setPresent(false);
    expect([slotStatus(), linkStatus()]).toEqual([0x0108, 0x0003]);
    expect([hotPlug.present, hotPlug.linkActive]).toEqual([false, false]);
  });

  it('interrupts for an enabled change until it is cleared', () => {
    const { config, offset, slot: hotPlug } = slot();
    hotPlug.setPresent(true);
    expect(hotPlug.interruptPending).toBe(false);
    config.write(offset + SLOT_CONTROL, 0x0028, 0b0011);
    expect(hotPlug.interruptPending).toBe(true);
    config.write(offset + SLOT_CONTROL, 0x0008_0000, 0b1100);
    expect(hotPlug.interruptPending).toBe(false);
    hotPlug.setLinkActive(true);
    expect(hotPlug.interruptPending).toBe(false);
    config.write(offset + SLOT_CONTROL, 0x1020, 0b0011);
    expect(hotPlug.interruptPending).toBe(true);
    config.write(offset + SLOT_CONTROL, 0x1000, 0b0011);
    expect(hotPlug.interruptPending).toBe(false);
  });
});
