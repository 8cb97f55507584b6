import { describe, expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import { decimal, Microseconds } from './decimal.ts';

const bytes = (text: string): Uint8Array => Buffer.from(`  ${text},`);
const end = (text: string): number => 2 + text.length;

describe('decimal', () => {
  it.each([
    ['0', 0],
    ['12', 12],
    ['-1', -1],
    ['"24"', 24],
    ['1.5', 1.5],
    ['1e3', 1000],
    ['9007199254740991', Number.MAX_SAFE_INTEGER],
    ['10159970886766084423', Number('10159970886766084423')],
  ])('reads %s', (text, value) => {
    expect(decimal(bytes(text), 2, end(text))).toBe(value);
  });

  it.each(['', '""', 'true', '"stream 7"', 'NaN'])('%j is no number', (text) => {
    expect(decimal(bytes(text), 2, end(text))).toBeNaN();
  });
});

describe('Microseconds', () => {
  const since = (origin: string, text: string): number => {
    const time = new Microseconds();
    time.setOrigin(bytes(origin), 2, end(origin));
    return time.sinceOrigin(bytes(text), 2, end(text));
  };

  it('keeps nanoseconds at 1.7e15, where a double has steps of 250 ns', () => {
    expect(Number('1712195512346013.219') - Number('1712195512346013.001')).not.toBeCloseTo(0.218);
    expect(since('1712195512346013.001', '1712195512346013.219')).toBe(219);
    expect(since('1712195512346013', '1712195512346014.007')).toBe(1007);
  });

  it.each([
    ['100', '100', 0],
    ['100', '"101.5"', 1500],
    ['100', '99.75', -250],
    ['0', '-1.5', -1500],
    ['0', '+2', 2000],
    ['0', '0.0005', 0.5],
    ['0', '1.5e2', 150_000],
    ['NaN', '7', 7000],
  ])('origin %s, time %s', (origin, text, ns) => {
    expect(since(origin, text)).toBeCloseTo(ns, 9);
  });

  it.each(['', '""', 'NaN', 'Infinity', '-Infinity', 'null', '"soon"', '1.2.3', '--1'])(
    '%j is no time',
    (text) => {
      expect(since('0', text)).toBeNaN();
    },
  );

  it('agrees with whole numbers of nanoseconds', () => {
    const micros = fc.bigInt({ min: 1_600_000_000_000_000n, max: 1_900_000_000_000_000n });
    const nanos = fc.integer({ min: 0, max: 999 });
    const apart = fc.integer({ min: -4_000_000_000_000, max: 4_000_000_000_000 });
    fc.assert(
      fc.property(micros, nanos, apart, nanos, (origin, originNanos, microsApart, timeNanos) => {
        const text = (us: bigint, ns: number): string => `${us}.${String(ns).padStart(3, '0')}`;
        const at = origin + BigInt(microsApart);
        expect(since(text(origin, originNanos), text(at, timeNanos))).toBe(
          microsApart * 1000 + timeNanos,
        );
      }),
    );
  });

  it('reads a length without an origin', () => {
    const time = new Microseconds();
    time.setOrigin(bytes('500'), 2, end('500'));
    expect(time.length(bytes('3.25'), 2, end('3.25'))).toBe(3250);
  });
});
