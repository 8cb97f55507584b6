import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import {
  DEFAULT_PCIE_LINK,
  type PcieLink,
  ackLimitSymbols,
  checkPcieLink,
  completionOverheadBytes,
  encodedGbps,
  isApproximate,
  limitedReadGbytesPerS,
  networkReadGbytesPerS,
  networkWriteGbytesPerS,
  outstandingReadGbytesPerS,
  rawGbps,
  readGbytesPerS,
  readRequestWireBytes,
  tlpLayerGbps,
  writeGbytesPerS,
  writeOverheadBytes,
} from './bandwidth.ts';

const here = dirname(fileURLToPath(import.meta.url));
const dataFolder = process.env['DXPU_DATA'] ?? join(here, '../../../shared/data');
const modelFile = join(dataFolder, 'pcie/pcie-bandwidth-model.csv');

const GEN3_X8_128: PcieLink = {
  ...DEFAULT_PCIE_LINK,
  generation: 3,
  lanes: 8,
  mpsBytes: 128,
  mrrsBytes: 128,
  rcbBytes: 64,
};

function within(actual: number, expected: number, share: number): void {
  expect(Math.abs(actual - expected) / expected).toBeLessThanOrEqual(share);
}

describe('figures worked by hand', () => {
  it('generation 3, x8, MPS 128', () => {
    // 8 GT/s × 8 lanes = 64 Gb/s; × 128/130 = 63.0154.
    expect(rawGbps(GEN3_X8_128)).toBe(64);
    within(encodedGbps(GEN3_X8_128), 63.0154, 1e-5);
    // ⌊(128 + 28) × 2.5 ÷ 8 + 115⌋ = ⌊163.75⌋.
    expect(ackLimitSymbols(GEN3_X8_128)).toBe(163);
    // 63.0154 × (1 − 16/163 − 4/1538) = 63.0154 × 0.899240 = 56.666.
    within(tlpLayerGbps(GEN3_X8_128), 56.666, 1e-4);
    // 7.08325 GB/s × 64 ÷ (64 + 24) = 5.1515; × 128 ÷ 152 = 5.9648.
    within(writeGbytesPerS(GEN3_X8_128, 64), 5.1515, 1e-4);
    within(writeGbytesPerS(GEN3_X8_128, 65536), 5.9648, 1e-4);
    // 7.08325 × 64 ÷ (64 + 20) = 5.3968; × 128 ÷ 148 = 6.1261.
    within(readGbytesPerS(GEN3_X8_128, 64), 5.3968, 1e-4);
    within(readGbytesPerS(GEN3_X8_128, 65536), 6.1261, 1e-4);
    // Completions of 64: every one 84 bytes for 64.
    within(readGbytesPerS({ ...GEN3_X8_128, completionsSplitAtRcb: true }, 65536), 5.3968, 1e-4);
  });

  it.each([
    // ⌊(MPS + 28) × AF ÷ lanes + D⌋, AF and D as the specification's tables have them.
    [3, 8, 256, 203],
    [3, 8, 512, 182],
    [3, 16, 128, 144],
    [3, 16, 256, 168],
    [3, 16, 512, 182],
    [1, 1, 128, 237],
    [1, 4, 128, 73],
    [1, 16, 128, 48],
    [1, 1, 4096, 4143],
    [1, 32, 512, 52],
    [2, 4, 128, 124],
  ])(
    'generation %i, x%i, MPS %i: acknowledged within %i symbols',
    (generation, lanes, mps, limit) => {
      expect(ackLimitSymbols({ ...GEN3_X8_128, generation, lanes, mpsBytes: mps })).toBe(limit);
    },
  );

  it('each generation doubles, and says how it is coded', () => {
    const rates = [1, 2, 3, 4, 5, 6].map((generation) => {
      const link = { ...GEN3_X8_128, generation, lanes: 1 };
      return [rawGbps(link), encodedGbps(link) / rawGbps(link), isApproximate(link)];
    });
    expect(rates).toEqual([
      [2.5, 8 / 10, false],
      [5, 8 / 10, false],
      [8, 128 / 130, false],
      [16, 128 / 130, false],
      [32, 128 / 130, false],
      [64, 242 / 256, true],
    ]);
  });

  it('headers: 4 bytes less at 32 bits, 4 more with ECRC', () => {
    const sizes = (link: PcieLink): number[] => [
      writeOverheadBytes(link),
      readRequestWireBytes(link),
      completionOverheadBytes(link),
    ];
    expect(sizes(GEN3_X8_128)).toEqual([24, 24, 20]);
    expect(sizes({ ...GEN3_X8_128, addressBits: 32 })).toEqual([20, 20, 20]);
    expect(sizes({ ...GEN3_X8_128, ecrc: true })).toEqual([28, 28, 24]);
  });

  it('the requests of small reads may be what limits', () => {
    // 4-byte reads: 24 bytes up against 24 bytes down; 1 byte: 24 up, 21 down.
    within(readGbytesPerS(GEN3_X8_128, 1), tlpLayerGbps(GEN3_X8_128) / 8 / 24, 1e-9);
  });

  it('tags × MRRS ÷ round trip', () => {
    // 140 × 128 = 17,920 bytes in 6.8, 4.9 and 1.2 µs.
    within(outstandingReadGbytesPerS(140, 128, 6800), 2.635, 1e-3);
    within(outstandingReadGbytesPerS(140, 128, 4900), 3.657, 1e-3);
    within(outstandingReadGbytesPerS(140, 128, 1200), 14.93, 1e-3);
    within(limitedReadGbytesPerS(GEN3_X8_128, 65536, 140, 6800), 2.635, 1e-3);
    within(limitedReadGbytesPerS(GEN3_X8_128, 65536, 140, 1200), 6.1261, 1e-4);
    // Reads of 64 bytes fill half a request each.
    within(limitedReadGbytesPerS(GEN3_X8_128, 64, 140, 6800), 1.3176, 1e-3);
  });
});

describe("Microchip's PCIe subsystem, MPS 128, x4, traffic one way", () => {
  // Payload rates in GB/s: reads with 4 and with 8 outstanding, writes.
  it.each([
    [2, 0.665, 1.181, 1.646],
    [1, 0.483, 0.811, 0.831],
  ])('generation %i', (generation, read4, read8, write) => {
    const link: PcieLink = { ...GEN3_X8_128, generation, lanes: 4, duplex: false };
    const rttNs = (4 * link.mrrsBytes) / read4;
    within(limitedReadGbytesPerS(link, 65536, 4, rttNs), read4, 1e-9);
    within(limitedReadGbytesPerS(link, 65536, 8, rttNs), read8, 0.15);
    within(writeGbytesPerS(link, 65536), write, 0.05);
  });
});

describe('checkPcieLink', () => {
  it.each([
    ['generation', 7],
    ['generation', 0],
    ['lanes', 3],
    ['mpsBytes', 100],
    ['mrrsBytes', 8192],
    ['rcbBytes', 256],
    ['addressBits', 48],
  ])('names %s when it is %i', (field, value) => {
    const link = { ...DEFAULT_PCIE_LINK, [field]: value };
    expect(() => checkPcieLink(link)).toThrow(DxpuError);
    expect(() => checkPcieLink(link)).toThrow(new RegExp(`^${field} is ${value}: must be`));
  });

  it('takes the default', () => checkPcieLink(DEFAULT_PCIE_LINK));
});

describe.skipIf(!existsSync(modelFile))(
  `the published model's own output (skipped where DXPU_DATA or ../shared/data has no pcie/pcie-bandwidth-model.csv)`,
  () => {
    const [header, ...lines] = existsSync(modelFile)
      ? readFileSync(modelFile, 'utf8').trim().split(/\r?\n/)
      : [''];
    const columns = (header ?? '').split(',');
    const rows = lines.map((line) => {
      const cells = line.split(',');
      return Object.fromEntries(columns.map((column, index) => [column, cells[index] ?? '']));
    });

    it('is reproduced to 0.5 %, every row and rate', () => {
      expect(rows.length).toBe(192);
      for (const row of rows) {
        const link: PcieLink = {
          generation: Number(row['gen']?.slice(3)),
          lanes: Number(row['lanes']?.slice(1)),
          addressBits: Number(row['address_bits']) as 32 | 64,
          ecrc: row['ecrc'] === '1',
          mpsBytes: Number(row['mps_bytes']),
          mrrsBytes: Number(row['mrrs_bytes']),
          rcbBytes: Number(row['rcb_bytes']),
          completionsSplitAtRcb: row['completions_split_at_rcb'] === '1',
          duplex: true,
        };
        checkPcieLink(link);
        const bytes = Number(row['transfer_bytes']);
        const pairs: [number, string][] = [
          [encodedGbps(link), 'raw_gbps'],
          [tlpLayerGbps(link), 'tlp_layer_gbps'],
          [readGbytesPerS(link, bytes), 'dma_read_gbytes_per_s'],
          [writeGbytesPerS(link, bytes), 'dma_write_gbytes_per_s'],
        ];
        for (const [computed, column] of pairs) {
          const published = Number(row[column]);
          const difference = Math.abs(computed - published) / published;
          expect(difference, `${column} of ${JSON.stringify(row)}`).toBeLessThanOrEqual(0.005);
        }
      }
    });
  },
);

describe('a network between', () => {
  const link: PcieLink = { ...DEFAULT_PCIE_LINK, mrrsBytes: 128 };
  const network = { gbps: 10, envelopeBytes: 52 };

  it('takes its share for each TLP (regression: 64-byte writes reached the bit rate)', () => {
    // Header of a 64-bit write 16: 1.25 GB/s × 64 ÷ (64 + 52 + 16).
    expect(networkWriteGbytesPerS(link, network, 64)).toBeCloseTo((1.25 * 64) / 132, 12);
    // 4096 bytes are 16 writes of MPS 256: 1.25 × 4096 ÷ (4096 + 16 × 68).
    expect(networkWriteGbytesPerS(link, network, 4096)).toBeCloseTo((1.25 * 4096) / 5184, 12);
  });

  it('carries completions one way and requests the other', () => {
    // MRRS 128 makes 32 completions, header 12, of 4096 bytes: 1.25 × 4096 ÷ (4096 + 32 × 64).
    expect(networkReadGbytesPerS(link, network, 4096)).toBeCloseTo((1.25 * 4096) / 6144, 12);
    // A request of 68 bytes is more than a completion of 64 + 3: the other direction is the limit.
    expect(networkReadGbytesPerS(link, network, 3)).toBeCloseTo((1.25 * 3) / 68, 12);
  });
});
