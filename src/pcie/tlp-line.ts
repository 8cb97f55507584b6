/** One line a TLP, as an engineer reads it in a trace. */
import { formatBdf } from '#base/units';
import { LAYOUTS, TlpLayout } from './tlp-rules.ts';
import {
  ATTR_ID_BASED_ORDERING,
  ATTR_NO_SNOOP,
  ATTR_RELAXED_ORDERING,
  CompletionStatus,
  TLP_KIND_NAMES,
  TlpKind,
  type Tlp,
} from './tlp.ts';

const STATUS_NAMES: Readonly<Record<number, string>> = {
  [CompletionStatus.SC]: 'SC',
  [CompletionStatus.UR]: 'UR',
  [CompletionStatus.CRS]: 'CRS',
  [CompletionStatus.CA]: 'CA',
};

const MESSAGE_NAMES: Readonly<Record<number, string>> = {
  0x00: 'Unlock',
  0x01: 'Invalidate_Request',
  0x02: 'Invalidate_Completion',
  0x04: 'Page_Request',
  0x05: 'PRG_Response',
  0x10: 'LTR',
  0x12: 'OBFF',
  0x14: 'PM_Active_State_Nak',
  0x18: 'PM_PME',
  0x19: 'PME_Turn_Off',
  0x1b: 'PME_TO_Ack',
  0x20: 'Assert_INTA',
  0x21: 'Assert_INTB',
  0x22: 'Assert_INTC',
  0x23: 'Assert_INTD',
  0x24: 'Deassert_INTA',
  0x25: 'Deassert_INTB',
  0x26: 'Deassert_INTC',
  0x27: 'Deassert_INTD',
  0x30: 'ERR_COR',
  0x31: 'ERR_NONFATAL',
  0x33: 'ERR_FATAL',
  0x50: 'Set_Slot_Power_Limit',
  0x52: 'PTM_Request',
  0x53: 'PTM_Response',
  0x7e: 'Vendor_Defined_0',
  0x7f: 'Vendor_Defined_1',
};

/** Table 2-18. */
const ROUTING_NAMES: readonly string[] = [
  'to root',
  'by address',
  'by ID',
  'broadcast',
  'local',
  'gathered',
  'routing 6',
  'routing 7',
];

const SHOWN_DATA_BYTES = 16;

function hex(value: number, digits: number): string {
  return value.toString(16).padStart(digits, '0');
}

/** The address in full, low half padded when there is a high one. */
export function addressText(tlp: Tlp): string {
  const { addressHi, addressLo } = tlp;
  return addressHi === 0
    ? `0x${addressLo.toString(16)}`
    : `0x${addressHi.toString(16)}${hex(addressLo, 8)}`;
}

function flagsText(tlp: Tlp): string {
  const { attributes } = tlp;
  let text = '';
  if (tlp.trafficClass !== 0) text += ` TC${tlp.trafficClass}`;
  if ((attributes & ATTR_NO_SNOOP) !== 0) text += ' NS';
  if ((attributes & ATTR_RELAXED_ORDERING) !== 0) text += ' RO';
  if ((attributes & ATTR_ID_BASED_ORDERING) !== 0) text += ' IDO';
  if (tlp.addressType !== 0) text += ` AT${tlp.addressType}`;
  if (tlp.hints) text += ` PH${tlp.processingHint}`;
  if (tlp.poisoned) text += ' EP';
  if (tlp.digest) text += ' TD';
  return text;
}

/** With TH, posted requests carry a steering tag where others have their tag (2.2.7.1). */
function tagText(tlp: Tlp): string {
  const steered = tlp.hints && isMemoryWrite(tlp);
  return steered ? ` ST 0x${hex(tlp.tag & 0xff, 2)}` : ` tag ${tlp.tag}`;
}

function isMemoryWrite(tlp: Tlp): boolean {
  return tlp.kind === TlpKind.MWr32 || tlp.kind === TlpKind.MWr64;
}

/** Byte enables, or the steering tag that reads and AtomicOps have in their place (2.2.7.1). */
function memoryEnablesText(tlp: Tlp): string {
  if (isMemoryWrite(tlp)) return byteEnablesText(tlp);
  if (tlp.hints) return ` ST 0x${hex((tlp.lastBe << 4) | tlp.firstBe, 2)}`;
  // An AtomicOp is of all its bytes: it has no enables (2.2.5).
  return LAYOUTS[tlp.kind] === TlpLayout.ATOMIC ? '' : byteEnablesText(tlp);
}

/** Reserved values of the status are taken as UR (2.2.9); only the bytes still show them. */
function statusText(tlp: Tlp, encoded: Uint8Array | undefined): string {
  const name = STATUS_NAMES[tlp.status] ?? `status ${tlp.status}`;
  const status = encodedStatus(encoded);
  return status === undefined || status === tlp.status
    ? name
    : `${name} (reserved status ${status})`;
}

/** The completion status as the bytes of a completion have it. */
export function encodedStatus(encoded: Uint8Array | undefined): number | undefined {
  const byte = encoded?.[6];
  return byte === undefined ? undefined : byte >> 5;
}

function byteEnablesText(tlp: Tlp): string {
  const { firstBe, lastBe, lengthDw } = tlp;
  const full = firstBe === 15 && lastBe === (lengthDw === 1 ? 0 : 15);
  return full ? '' : ` BE ${hex(firstBe, 1)}/${hex(lastBe, 1)}`;
}

function dataText(tlp: Tlp): string {
  const { payload, payloadOffset, payloadBytes } = tlp;
  if (payloadBytes === 0) return '';
  const shown = Math.min(payloadBytes, SHOWN_DATA_BYTES);
  let text = ':';
  for (let i = 0; i < shown; i++) {
    text += `${i % 4 === 0 ? ' ' : ''}${hex(payload[payloadOffset + i] ?? 0, 2)}`;
  }
  return payloadBytes > shown ? `${text} …` : text;
}

/**
 * A valid TLP in one line: kind, who asks (for a completion: who answers whom), tag, where, how many
 * bytes, byte enables unless all are on, flags that are set, the first 16 bytes of data.
 *
 * With the bytes it was decoded from, a reserved completion status is shown for what it is.
 *
 *   MWr64 01:00.0 tag 0 0x12345000 64 bytes: 00010203 04050607 08090a0b 0c0d0e0f …
 *   CplD 00:00.0 to 01:00.0 tag 92 SC 64 bytes of 128 left, low 0x40: 00010203 …
 */
export function tlpToLine(tlp: Tlp, encoded?: Uint8Array): string {
  const requester = formatBdf(tlp.requesterId);
  const name = TLP_KIND_NAMES[tlp.kind] ?? `kind 0x${hex(tlp.kind, 2)}`;
  const tail = `${flagsText(tlp)}${dataText(tlp)}`;
  const bytes = tlp.lengthDw * 4;
  switch (LAYOUTS[tlp.kind]) {
    case TlpLayout.CONFIG: {
      const where = `${formatBdf(tlp.completerId)} register 0x${hex(tlp.register, 3)}`;
      return `${name} ${requester} tag ${tlp.tag} to ${where}${byteEnablesText(tlp)}${tail}`;
    }
    case TlpLayout.COMPLETION: {
      const status = statusText(tlp, encoded);
      const count = `${bytes} bytes of ${tlp.byteCount} left, low 0x${hex(tlp.lowerAddress, 2)}`;
      const bcm = tlp.byteCountModified ? ' BCM' : '';
      const who = `${formatBdf(tlp.completerId)} to ${requester}`;
      return `${name} ${who} tag ${tlp.tag} ${status} ${count}${bcm}${tail}`;
    }
    case TlpLayout.MESSAGE: {
      const code = MESSAGE_NAMES[tlp.messageCode] ?? `code 0x${hex(tlp.messageCode, 2)}`;
      const routing = ROUTING_NAMES[tlp.messageRouting] ?? '';
      const words = `${hex(tlp.messageDw2, 8)} ${hex(tlp.messageDw3, 8)}`;
      return `${name} ${requester} tag ${tlp.tag} ${code} ${routing} ${words}${tail}`;
    }
    default: {
      const be = memoryEnablesText(tlp);
      return `${name} ${requester}${tagText(tlp)} ${addressText(tlp)} ${bytes} bytes${be}${tail}`;
    }
  }
}
