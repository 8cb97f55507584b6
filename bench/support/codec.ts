/** TLP encode and decode against copying the same bytes. */
import { decodeTlp, encodedTlpBytes, encodeTlp } from '#pcie/tlp-codec';
import { completeWithData } from '#pcie/completion';
import { setMemoryRead, setMemoryWrite } from '#pcie/split';
import { Tlp } from '#pcie/tlp';
import { type Figure, figure } from './figures.ts';

const ROUNDS = 400_000;
/** So many packets lie side by side that neither loop lives in one cache line. */
const SLOTS = 64;
const STRIDE = 128;

/** Kept, so that no loop can be optimised away. */
let sink = 0;

function memoryWrite(): Tlp {
  const tlp = new Tlp();
  setMemoryWrite(tlp, 0x12_3456_7000, 64, 0x0100);
  tlp.payload = Uint8Array.from({ length: 64 }, (_, index) => index);
  tlp.payloadBytes = 64;
  return tlp;
}

function mixed(): Tlp[] {
  const read = new Tlp();
  setMemoryRead(read, 0x12_3456_7000, 256, 0x0100, 17);
  const read32 = new Tlp();
  setMemoryRead(read32, 0xe000_0040, 4, 0, 3);
  const completion = new Tlp();
  completeWithData(completion, read, 0, 0x12_3456_7000, 256, 64, new Uint8Array(64), 0);
  return [memoryWrite(), read, completion, read32];
}

function perSecond(rounds: number, run: () => void): number {
  const start = process.hrtime.bigint();
  run();
  return (rounds * 1e9) / Number(process.hrtime.bigint() - start);
}

function codecRate(tlps: readonly Tlp[], bytes: Uint8Array, into: Tlp): number {
  const count = tlps.length;
  return perSecond(ROUNDS, () => {
    for (let round = 0; round < ROUNDS; round++) {
      const offset = (round & (SLOTS - 1)) * STRIDE;
      const size = encodeTlp(tlps[round % count] as Tlp, bytes, offset);
      const fault = decodeTlp(bytes, offset, size, into);
      if (fault !== 0) throw new Error(`decode says ${fault}`);
      sink += into.payloadBytes;
    }
  });
}

function copyRate(sizes: readonly number[], source: Uint8Array, target: Uint8Array): number {
  const count = sizes.length;
  const sources = sizes.map((size) => source.subarray(0, size));
  return perSecond(ROUNDS, () => {
    for (let round = 0; round < ROUNDS; round++) {
      target.set(sources[round % count] as Uint8Array, (round & (SLOTS - 1)) * STRIDE);
      sink += target[0] as number;
    }
  });
}

export function codecFigures(blocks: number): Figure[] {
  const bytes = new Uint8Array(SLOTS * STRIDE);
  const source = Uint8Array.from({ length: STRIDE }, (_, index) => index);
  const into = new Tlp();
  const cases = [
    { name: 'codec, 64 B MWr', tlps: [memoryWrite()], goal: '≥ 1e7/s and ratio ≥ 0.1' },
    { name: 'codec, mixed kinds', tlps: mixed(), goal: '' },
  ];
  return cases.map(({ name, tlps, goal }) => {
    const sizes = tlps.map(encodedTlpBytes);
    for (let warm = 0; warm < 3; warm++) {
      codecRate(tlps, bytes, into);
      copyRate(sizes, source, bytes);
    }
    const pairs = Array.from({ length: blocks }, () => ({
      value: codecRate(tlps, bytes, into),
      baseline: copyRate(sizes, source, bytes),
    }));
    if (sink < 0) console.log(sink);
    return figure(name, 'TLP/s', pairs, goal === '' ? undefined : goal);
  });
}
