/**
 * A host proxy between a fake root and fake links, and the function behind virtual slot 0 as its host
 * would set it up: config reads and writes go through the proxy, so that its shadow learns from them.
 */
import type { Nanos } from '#base/units';
import { HostProxy, type HostProxyOptions } from '#fabric/host-proxy';
import { SlotState } from '#fabric/link-user';
import type { HostRow } from '#fabric/mapping-table';
import { completeWithData, completeWithoutData } from '#pcie/completion';
import { CompletionStatus, Tlp, TlpKind } from '#pcie/tlp';
import { arrivedTlp } from './arrived-tlp.ts';
import { encoded, FakeLink } from './fake-link.ts';
import { FakeRoot } from './fake-root.ts';

export const NOW = 0 as Nanos;

/** Tag of config requests; memory requests of tests stay below. */
const CONFIG_TAG = 1000;

export const MSI_OFFSET = 0x40;
export const MSIX_OFFSET = 0x60;
export const PCIE_OFFSET = 0x80;

/** Config registers of the function; what is not here reads 0. */
export const FUNCTION_IMAGE: ReadonlyMap<number, number> = new Map([
  [0x10, 0x0000_0000], // BAR0, 32 bit
  [0x34, MSI_OFFSET],
  // MSI, 64 bit (control bit 7), up to four messages (bits 3:1 = 2).
  [MSI_OFFSET, 0x0084_0005 | (MSIX_OFFSET << 8)],
  // MSI-X, four entries (bits 10:0 = 3), table at BAR0 + 0x1000.
  [MSIX_OFFSET, 0x0003_0011 | (PCIE_OFFSET << 8)],
  [MSIX_OFFSET + 4, 0x1000],
  [PCIE_OFFSET, 0x0002_0010],
  // Function level reset capable (device capabilities bit 28), MPS up to 512 (bits 2:0 = 2).
  [PCIE_OFFSET + 4, 0x1000_0002],
]);

/** Three virtual slots: two of box b, one of box c. Bus 3 + i, windows of 1 MiB and 1 GiB. */
export function hostRow(virtualSlot: number, generation: number, used = true): HostRow {
  const nonPrefetchable = 0x4000_0000 + virtualSlot * 0x10_0000;
  const prefetchable = 0x10_0000_0000 + virtualSlot * 0x4000_0000;
  return {
    virtualSlot,
    used,
    secondaryBus: 3 + virtualSlot,
    nonPrefetchable: { base: nonPrefetchable, limit: nonPrefetchable + 0xf_ffff },
    prefetchable: { base: prefetchable, limit: prefetchable + 0x3fff_ffff },
    box: virtualSlot === 2 ? 'c' : 'b',
    slot: virtualSlot === 2 ? 0 : 7 + virtualSlot,
    path: 'net',
    generation,
  };
}

export class HostProxyWorld {
  readonly root = new FakeRoot();
  readonly proxy: HostProxy;
  readonly linkB = new FakeLink('box', 'b');
  readonly linkC = new FakeLink('box', 'c');

  constructor(options: Partial<HostProxyOptions> = {}) {
    this.proxy = new HostProxy({ hostId: 'h', rootSide: this.root, ...options });
  }

  /** Rows of all three slots with these generations, both links up, all slots ready. */
  ready(generations: readonly [number, number, number] = [11, 12, 13]): void {
    const rows = generations.map((generation, index) => hostRow(index, generation));
    const errors = this.proxy.setTable(NOW, rows);
    if (errors.length > 0) throw new Error(JSON.stringify(errors));
    this.proxy.linkUp(NOW, this.linkB);
    this.proxy.linkUp(NOW, this.linkC);
    for (const row of rows) {
      const link = row.box === 'b' ? this.linkB : this.linkC;
      this.proxy.linkSlotState(NOW, link, row.slot, row.generation, SlotState.READY);
    }
  }

  /** What a box sends, as bytes. */
  receive(link: FakeLink, slot: number, generation: number, bytes: Uint8Array): boolean {
    return this.proxy.linkTlp(NOW, link, arrivedTlp(slot, generation, bytes));
  }

  /** The row of a virtual slot and the link to its box. */
  routeOf(virtualSlot: number): { row: HostRow; link: FakeLink } {
    const row = this.proxy.rows.find((one) => one.virtualSlot === virtualSlot);
    if (row === undefined) throw new Error(`no row for ${virtualSlot}`);
    return { row, link: row.box === 'b' ? this.linkB : this.linkC };
  }

  /** A config read that the box answers from `image`. */
  configRead(virtualSlot: number, register: number, image = FUNCTION_IMAGE): void {
    const { row, link } = this.routeOf(virtualSlot);
    const request = configRequest(TlpKind.CfgRd1, row.secondaryBus, register, 0xf);
    link.take();
    this.proxy.request(NOW, request);
    const [sent] = link.take();
    if (sent === undefined) return;
    const value = image.get(register) ?? 0;
    const answer = new Tlp();
    completeWithData(answer, sent.tlp, sent.tlp.completerId, 0, 4, 4, littleEndian(value), 0);
    this.receive(link, row.slot, row.generation, encoded(answer));
    this.root.takeCompletions();
  }

  /** A config write; `complete` false leaves it under way. */
  configWrite(
    virtualSlot: number,
    register: number,
    value: number,
    byteEnables = 0xf,
    complete = true,
  ): void {
    const { row, link } = this.routeOf(virtualSlot);
    const request = configRequest(TlpKind.CfgWr1, row.secondaryBus, register, byteEnables);
    request.payload = littleEndian(value);
    request.payloadBytes = 4;
    link.take();
    this.proxy.request(NOW, request);
    const [sent] = link.take();
    if (sent === undefined || !complete) return;
    this.completeConfigWrite(virtualSlot);
  }

  completeConfigWrite(virtualSlot: number): void {
    const { row, link } = this.routeOf(virtualSlot);
    const request = configRequest(TlpKind.CfgWr0, row.secondaryBus, 0, 0xf);
    const answer = new Tlp();
    completeWithoutData(answer, request, request.completerId, CompletionStatus.SC);
    this.receive(link, row.slot, row.generation, encoded(answer));
    this.root.takeCompletions();
  }

  /** Reads the whole capability list and BAR 0, as enumeration does. */
  enumerate(virtualSlot: number, image = FUNCTION_IMAGE): void {
    for (const register of image.keys()) this.configRead(virtualSlot, register, image);
  }

  setBusMaster(virtualSlot: number, on: boolean): void {
    this.configWrite(virtualSlot, 0x04, on ? 0x6 : 0x2, 0b0011);
  }

  /** Message address and data, and the enable bit with `vectors` (a power of two) allocated. */
  programMsi(virtualSlot: number, address: number, data: number, vectors = 1): void {
    this.configWrite(virtualSlot, MSI_OFFSET + 4, address % 2 ** 32);
    this.configWrite(virtualSlot, MSI_OFFSET + 8, Math.floor(address / 2 ** 32));
    this.configWrite(virtualSlot, MSI_OFFSET + 12, data, 0b0011);
    this.configWrite(virtualSlot, MSI_OFFSET, (1 << 16) | (Math.log2(vectors) << 20), 0b1100);
  }
}

/** Type 1 or 0, to device 0, function 0 of `bus`. */
export function configRequest(
  kind: TlpKind,
  bus: number,
  register: number,
  byteEnables: number,
): Tlp {
  const tlp = new Tlp();
  tlp.kind = kind;
  tlp.lengthDw = 1;
  tlp.firstBe = byteEnables;
  tlp.completerId = bus << 8;
  tlp.register = register;
  tlp.tag = CONFIG_TAG;
  return tlp;
}

export function littleEndian(value: number): Uint8Array {
  const bytes = new Uint8Array(4);
  new DataView(bytes.buffer).setUint32(0, value, true);
  return bytes;
}
