/** 200 TLPs packed by an independent implementation. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { decodeTlp, encodedTlpBytes, encodeTlp, TlpDecode } from './tlp-codec.ts';
import { tlpFromJson, tlpToJson } from './tlp-text.ts';
import { Tlp } from './tlp.ts';

const here = dirname(fileURLToPath(import.meta.url));
const dataFolder = process.env['DXPU_DATA'] ?? join(here, '../../../shared/data');
const file = join(dataFolder, 'pcie/tlp-golden.jsonl');
const present = existsSync(file);

describe.skipIf(!present)(
  'golden TLPs (skipped where DXPU_DATA or ../shared/data has no pcie/tlp-golden.jsonl)',
  () => {
    const lines = present ? readFileSync(file, 'utf8').trim().split('\n') : [];
    const golden = lines.map((line) => JSON.parse(line) as Record<string, string | number>);

    it('are 200', () => {
      expect(golden).toHaveLength(200);
    });

    it('decode to their fields', () => {
      for (const { hex, ...fields } of golden) {
        const bytes = new Uint8Array(Buffer.from(String(hex), 'hex'));
        const tlp = new Tlp();
        expect(decodeTlp(bytes, 0, bytes.length, tlp), String(hex)).toBe(TlpDecode.OK);
        expect(tlpToJson(tlp)).toEqual(fields);
      }
    });

    it('encode to their bytes', () => {
      for (const { hex, ...fields } of golden) {
        const tlp = new Tlp();
        tlpFromJson(fields, tlp);
        const bytes = new Uint8Array(encodedTlpBytes(tlp));
        encodeTlp(tlp, bytes, 0);
        expect(Buffer.from(bytes).toString('hex')).toBe(hex);
      }
    });
  },
);
