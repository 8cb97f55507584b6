import { expect, it } from 'vitest';
import { pieces } from '#testkit/pieces';
import { fc } from '#testkit/properties';
import { readKineto } from './kineto.ts';
import { WORK_KIND } from './timeline.ts';

const KINDS = ['kernel', 'gpu_memcpy', 'gpu_memset', 'cuda_runtime', 'cpu_op', 'python_function'];
const text = fc.string({ unit: 'binary', maxLength: 12 });
const event = fc.record({
  cat: fc.constantFrom(...KINDS),
  name: fc.constantFrom(
    'a"b',
    'c\\',
    'Memcpy HtoD (Pinned -> Device)',
    '{"x": [',
    'ä\n',
    'cudaLaunchKernel',
  ),
  pid: fc.nat(2),
  tid: fc.oneof(fc.nat(3), fc.constantFrom('stream 7', 'main')),
  ts: fc.integer({ min: 1_700_000_000_000_000, max: 1_700_000_000_100_000 }),
  dur: fc.nat(500),
  args: fc.dictionary(text, fc.jsonValue({ maxDepth: 2 }), { maxKeys: 3 }),
  correlation: fc.nat(20),
  bytes: fc.nat(1e6),
});
type Event = Omit<typeof event extends fc.Arbitrary<infer E> ? E : never, 'name'> & {
  readonly name: string;
};

const written = ({ correlation, bytes, args, ...event }: Event): object => ({
  ph: 'X',
  ...event,
  args: { ...args, correlation, bytes, device: 0 },
});

interface Parsed {
  readonly cat: string;
  readonly name: string;
  readonly ts: number;
  readonly dur: number;
  readonly args: { readonly bytes: number };
}

it('agrees with JSON.parse of the whole text, in any layout and pieces', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 30 }),
      fc.constantFrom(undefined, 1, 2, '\t'),
      fc.integer({ min: 1, max: 700 }),
      async (events, indent, pieceBytes) => {
        const kept: Event = { ...events[0]!, cat: 'kernel', name: 'first' };
        const json = JSON.stringify({ traceEvents: [kept, ...events].map(written) }, null, indent);
        const all = (JSON.parse(json) as { readonly traceEvents: readonly Parsed[] }).traceEvents;
        const timeline = await readKineto(pieces(json, pieceBytes), { file: 'x' });
        const work = all.filter(({ cat }) => KINDS.indexOf(cat) < 3);
        const calls = all.filter(({ cat }) => cat === 'cuda_runtime');
        const origin = Math.min(...[...work, ...calls].map(({ ts }) => ts));
        const rows = Array.from({ length: timeline.work.count }, (_, row) => [
          timeline.names[timeline.work.name[row]!],
          timeline.work.startNs[row],
          timeline.work.durationNs[row],
          timeline.work.kind[row] === WORK_KIND.kernel ? 0 : timeline.work.bytes[row],
        ]);
        const expected = work.map(({ cat, name, ts, dur, args }) => [
          name,
          (ts - origin) * 1000,
          dur * 1000,
          cat === 'kernel' ? 0 : args.bytes,
        ]);
        const sorted = (list: readonly unknown[]): string[] =>
          list.map((one) => JSON.stringify(one)).toSorted();
        expect(sorted(rows)).toEqual(sorted(expected));
        expect(timeline.warnings.filter(({ code }) => /damaged|truncated/.test(code))).toEqual([]);
        const isCall =
          timeline.calls.count <= calls.length &&
          (calls.length === 0) === (timeline.calls.count === 0);
        expect(isCall).toBe(true);
      },
    ),
    { numRuns: 150 },
  );
});

it('survives any change of some bytes: no NaN, and no span beyond two days', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(event, { minLength: 1, maxLength: 12 }),
      fc.array(fc.tuple(fc.nat(), fc.nat(255), fc.constantFrom('set', 'cut', 'insert')), {
        minLength: 1,
        maxLength: 4,
      }),
      fc.integer({ min: 1, max: 300 }),
      async (events, changes, pieceBytes) => {
        const bytes = [
          ...Buffer.from(JSON.stringify({ traceEvents: events.map(written) }, null, 1)),
        ];
        for (const [at, byte, what] of changes) {
          const place = at % bytes.length;
          if (what === 'insert') bytes.splice(place, 0, byte);
          else bytes.splice(place, what === 'set' ? 1 : byte, ...(what === 'set' ? [byte] : []));
        }
        const timeline = await readKineto(pieces(Uint8Array.from(bytes), pieceBytes), {
          file: 'x',
        }).catch((thrown: Error) => {
          expect(thrown.name).toBe('DxpuError');
          return undefined;
        });
        if (timeline === undefined) return;
        const numbers = [
          ...timeline.calls.startNs,
          ...timeline.calls.durationNs,
          ...timeline.work.startNs,
          ...timeline.work.durationNs,
          ...timeline.work.bytes,
        ];
        expect(numbers.every((value) => value >= 0 && Number.isFinite(value))).toBe(true);
        expect(timeline.spanNs).toBeLessThanOrEqual(2 * 86_400e9);
      },
    ),
    { numRuns: 200 },
  );
});
