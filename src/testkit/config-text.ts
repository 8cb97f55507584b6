/** Configurations of a host and a box that fit each other, and what is said of others. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';

export const HOST_CONFIG = `host: h1
certificates: { ca: ca.pem, cert: h.pem, key: h-key.pem }
paths:
  - { name: p0, box: b1, address: "127.0.0.1:7001" }
slots:
  - slot: 0
    secondaryBus: 1
    nonPrefetchable: { base: 0xe0000000, size: 16MiB }
    prefetchable: { base: 0x4000000000, size: 64MiB }
  - slot: 1
    secondaryBus: 2
    nonPrefetchable: { base: 0xe1000000, size: 16MiB }
    prefetchable: { base: 0x4004000000, size: 64MiB }
memory:
  - { base: 0, size: 64MiB }
table:
  - { virtualSlot: 0, box: b1, slot: 3, path: p0, generation: 7 }
`;

export const BOX_CONFIG = `box: b1
certificates: { ca: ca.pem, cert: b.pem, key: b-key.pem }
listen: ["127.0.0.1:7001", "[::1]:7002"]
devices:
  - { slot: 3, kind: accel, memory: 64MiB, tags: 140 }
table:
  - { slot: 3, host: h1, path: p0, generation: 7 }
`;

export interface ConfigTexts {
  /** Where the file is. */
  readonly folder: string;
  /** A file that has `text` until it is asked for again. */
  readonly written: (text: string) => string;
  /** The message of the `DxpuError` about `text`, without the name of the file. */
  readonly complaint: (read: (file: string) => unknown, text: string) => string;
  /** Leaves nothing of it. */
  readonly remove: () => void;
}

export function configTexts(): ConfigTexts {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-config-'));
  const file = path.join(folder, 'config.yaml');
  const written = (text: string): string => {
    writeFileSync(file, text);
    return file;
  };
  return {
    folder,
    written,
    complaint: (read, text) => {
      written(text);
      try {
        read(file);
      } catch (error) {
        if (error instanceof DxpuError) return error.message.replaceAll(`${file}:`, '');
        throw error;
      }
      throw new Error('nothing was wrong');
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** `text` with `to` for `from`, which is in it. */
export function changed(text: string, from: string, to: string): string {
  if (!text.includes(from)) throw new Error(`${from} is not there`);
  return text.replace(from, to);
}
