/**
 * VERSION: the first message each way, a version and what the sender can take, as JSON text
 * (specification, "VFIO_USER_VERSION"). QEMU and Cloud Hypervisor propose 0.0, others 0.1; a reply has
 * the same major and no higher minor.
 */
import {
  Command,
  HEADER_BYTES,
  type Message,
  newMessage,
  payloadBytes,
  refuseShort,
  TYPE_COMMAND,
  TYPE_REPLY,
  viewOf,
} from './message.ts';
import { Errno, Refusal } from './refusal.ts';

export const MAJOR = 0;
export const MINOR = 1;
/** A VERSION message longer than this is nobody's. */
export const MAX_VERSION_BYTES = 8192;

const FIXED_BYTES = 4;
const PAGE_BYTES = 4096;

export interface Capabilities {
  /** File descriptors the sender takes in one message. */
  readonly maxMsgFds: number;
  /** The largest `count` of a REGION or DMA read or write that the sender takes. */
  readonly maxDataXferBytes: number;
  /** DMA regions that may be mapped at once. */
  readonly maxDmaMaps: number;
  /** Page sizes of DMA regions, or'ed together. */
  readonly pageSizes: number;
  /** The sender takes REGION_WRITE_MULTI. */
  readonly writeMultiple: boolean;
}

/** What a peer that does not say otherwise can take (specification, "VFIO_USER_VERSION"). */
export const DEFAULT_CAPABILITIES: Capabilities = {
  maxMsgFds: 1,
  maxDataXferBytes: 1_048_576,
  maxDmaMaps: 65_535,
  pageSizes: PAGE_BYTES,
  writeMultiple: false,
};

export interface Version {
  readonly major: number;
  readonly minor: number;
  readonly capabilities: Capabilities;
  /** The sender speaks of migration; nothing here does it. */
  readonly migration: boolean;
}

/** The version of a request or reply. Capabilities it does not know are ignored. */
export function decodeVersion(message: Message): Version | Refusal {
  const short = refuseShort(message, FIXED_BYTES);
  if (short !== undefined) return short;
  const { view, bytes } = message;
  const major = view.getUint16(HEADER_BYTES, true);
  const minor = view.getUint16(HEADER_BYTES + 2, true);
  const defaults = { major, minor, capabilities: DEFAULT_CAPABILITIES, migration: false };
  if (payloadBytes(message) === FIXED_BYTES) return defaults;
  let end = bytes.length;
  // Terminated by a NUL; text without one is taken too.
  while (end > HEADER_BYTES + FIXED_BYTES && bytes[end - 1] === 0) end--;
  if (end === HEADER_BYTES + FIXED_BYTES) return defaults;
  let parsed: unknown;
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(
      bytes.subarray(HEADER_BYTES + FIXED_BYTES, end),
    );
    parsed = JSON.parse(text);
  } catch {
    return new Refusal(Errno.EINVAL, 'the version data is not JSON');
  }
  if (!isObject(parsed)) return new Refusal(Errno.EINVAL, 'the version data is not an object');
  const given = parsed.capabilities;
  if (given === undefined) return defaults;
  if (!isObject(given)) return new Refusal(Errno.EINVAL, 'the capabilities are not an object');
  const capabilities = decodeCapabilities(given);
  if (capabilities instanceof Refusal) return capabilities;
  return { major, minor, capabilities, migration: given.migration !== undefined };
}

/**
 * `isReply` false: a proposal; true: an answer, which repeats `writeMultiple` only if it is so. Limits
 * are always stated; `migration` never is, which is how it is declined.
 */
export function encodeVersion(
  id: number,
  isReply: boolean,
  minor: number,
  capabilities: Capabilities,
): Uint8Array {
  const text = new TextEncoder().encode(
    JSON.stringify({
      capabilities: {
        max_msg_fds: capabilities.maxMsgFds,
        max_data_xfer_size: capabilities.maxDataXferBytes,
        max_dma_maps: capabilities.maxDmaMaps,
        pgsizes: capabilities.pageSizes,
        ...(capabilities.writeMultiple ? { write_multiple: true } : {}),
      },
    }),
  );
  const message = newMessage(
    id,
    Command.VERSION,
    isReply ? TYPE_REPLY : TYPE_COMMAND,
    FIXED_BYTES + text.length + 1,
  );
  const view = viewOf(message);
  view.setUint16(HEADER_BYTES, MAJOR, true);
  view.setUint16(HEADER_BYTES + 2, minor, true);
  message.set(text, HEADER_BYTES + FIXED_BYTES);
  return message;
}

function decodeCapabilities(given: Record<string, unknown>): Capabilities | Refusal {
  const maxMsgFds = count(given, 'max_msg_fds', DEFAULT_CAPABILITIES.maxMsgFds);
  const maxDataXferBytes = count(
    given,
    'max_data_xfer_size',
    DEFAULT_CAPABILITIES.maxDataXferBytes,
  );
  const maxDmaMaps = count(given, 'max_dma_maps', DEFAULT_CAPABILITIES.maxDmaMaps);
  const pageSizes = count(given, 'pgsizes', DEFAULT_CAPABILITIES.pageSizes);
  for (const value of [maxMsgFds, maxDataXferBytes, maxDmaMaps, pageSizes]) {
    if (value instanceof Refusal) return value;
  }
  const writeMultiple = given.write_multiple ?? false;
  if (typeof writeMultiple !== 'boolean') {
    return new Refusal(Errno.EINVAL, 'write_multiple is neither true nor false');
  }
  return { maxMsgFds, maxDataXferBytes, maxDmaMaps, pageSizes, writeMultiple } as Capabilities;
}

function count(given: Record<string, unknown>, name: string, otherwise: number): number | Refusal {
  const value = given[name];
  if (value === undefined) return otherwise;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  return new Refusal(Errno.EINVAL, `${name} is not a whole number`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
