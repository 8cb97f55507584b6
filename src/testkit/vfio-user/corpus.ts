/**
 * Recorded vfio-user messages as a text: what a real client and our server have said to each other, a message a
 * line, one of each shape. `qemu-corpus.txt` is written by `npm run soak -- record-vfio-user`.
 *
 *     @ accel                     a session with that device begins
 *     > 0 0000010032000000… # …   from the client, with so many descriptors
 *     < 0 0000010032000000… # …   the server's answer, or its own request
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Command, commandName, isReply, type Message, parseMessage } from '#vfio-user/message';

export interface RecordedMessage {
  readonly from: 'client' | 'server';
  readonly fds: number;
  readonly bytes: Uint8Array;
}

/** In the order in which they came. */
export interface RecordedSession {
  readonly device: string;
  readonly messages: readonly RecordedMessage[];
}

/** In the sources, whether this is built or not. */
export const CORPUS_FILE = fileURLToPath(
  new URL('../../../src/testkit/vfio-user/qemu-corpus.txt', import.meta.url),
);

export function readCorpus(): RecordedSession[] {
  const sessions: { device: string; messages: RecordedMessage[] }[] = [];
  for (const [index, line] of readFileSync(CORPUS_FILE, 'utf8').split('\n').entries()) {
    const text = line.replace(/#.*/, '').trim();
    const [mark, first = '', digits = ''] = text.split(' ');
    if (mark === '') continue;
    const session = sessions.at(-1);
    if (mark === '@') {
      sessions.push({ device: first, messages: [] });
    } else if (session !== undefined && (mark === '>' || mark === '<')) {
      const from = mark === '>' ? 'client' : 'server';
      const bytes = Uint8Array.from(Buffer.from(digits, 'hex'));
      session.messages.push({ from, fds: Number(first), bytes });
    } else {
      throw new Error(`${CORPUS_FILE}, line ${index + 1}: ${line}`);
    }
  }
  return sessions;
}

export function corpusText(title: string, sessions: readonly RecordedSession[]): string {
  const lines = title.split('\n').map((line) => `# ${line}`);
  for (const { device, messages } of sessions) {
    lines.push(`@ ${device}`);
    const seen = new Set<string>();
    for (const recorded of messages) {
      const message = parseMessage(recorded.bytes);
      const shape = `${recorded.from} ${recorded.fds} ${shapeOf(message)}`;
      if (seen.has(shape)) continue;
      seen.add(shape);
      const mark = recorded.from === 'client' ? '>' : '<';
      const digits = Buffer.from(recorded.bytes).toString('hex');
      lines.push(`${mark} ${recorded.fds} ${digits} # ${describe(message)}`);
    }
  }
  return `${lines.join('\n')}\n`;
}

/** Registers of a BAR are below it, memory begins there; so many bits of an offset are of one group of registers. */
const LAST_REGISTERS = 0x4000;
const REGISTERS_SHIFT = 5;

/** What distinguishes messages for whoever takes them apart: not their ids, addresses and data. */
function shapeOf(message: Message): string {
  const { command, flags, view, bytes } = message;
  const fields: number[] = [command, flags, bytes.length];
  const at = (offset: number): number =>
    offset + 4 <= bytes.length ? view.getUint32(offset, true) : -1;
  switch (command) {
    case Command.REGION_READ:
    case Command.REGION_WRITE: {
      const [offset, region, count] = [at(16), at(24), at(28)];
      fields.push(region, count);
      // Which registers a request is for counts, by and by; which byte of memory does not.
      if (!isReply(message)) fields.push(Math.min(offset, LAST_REGISTERS) >> REGISTERS_SHIFT);
      break;
    }
    case Command.DMA_MAP:
      // Its flags, and whether it is a page, or more.
      fields.push(at(20), Math.min(at(40), 0x2000));
      break;
    case Command.DEVICE_GET_REGION_INFO:
    case Command.DEVICE_GET_IRQ_INFO:
      fields.push(at(24));
      break;
    case Command.DEVICE_SET_IRQS:
      fields.push(at(20), at(24), at(28), at(32));
      break;
    default:
  }
  return fields.join(' ');
}

/** For people who read the corpus. */
function describe(message: Message): string {
  const { command, view, bytes } = message;
  const name = commandName(command);
  const kind = isReply(message) ? 'reply' : 'command';
  const at = (offset: number): number =>
    offset + 4 <= bytes.length ? view.getUint32(offset, true) : 0;
  switch (command) {
    case Command.REGION_READ:
    case Command.REGION_WRITE:
      if (bytes.length < 32) return `${name} ${kind}`;
      return `${name} ${kind}, ${at(28)} bytes at 0x${at(16).toString(16)} of region ${at(24)}`;
    case Command.DEVICE_GET_REGION_INFO:
    case Command.DEVICE_GET_IRQ_INFO:
      return `${name} ${kind}, index ${at(24)}`;
    case Command.DEVICE_SET_IRQS:
      return bytes.length < 36
        ? `${name} ${kind}`
        : `${name} ${kind}, index ${at(24)}, count ${at(32)}`;
    default:
      return `${name} ${kind}`;
  }
}
