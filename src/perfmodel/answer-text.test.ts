import { describe, expect, it } from 'vitest';
import { LEAST_WIDTH } from '#report/text-table';
import { displayWidth } from '#report/text-width';
import { madePrediction, madeWithoutReplay } from '#testkit/made-prediction';
import { fc } from '#testkit/properties';
import { comparisonText } from './answer-compare.ts';
import { summaryText } from './answer-summary.ts';
import { answerText } from './answer-text.ts';

const NEAR = madePrediction({
  link: { name: 'near', addedRttNs: 2000, rttNs: 3200, recalled: [] },
});

describe('the answer as text', () => {
  it('says the verdict, both overheads, largest round trips, causes and advice at 60 columns', () => {
    const lines = answerText(madePrediction(), 60);
    const text = lines.join('\n');
    expect(text).toMatch(/^UNSURE: The replay loses 10 %/m);
    expect(text).toMatch(/^ {2}replay +10 % +█+$/m);
    expect(text).toMatch(/^ {2}replay: 9 % to 12 %, confidence medium$/m);
    expect(text).toMatch(/^ {2}additive +20 % /m);
    expect(text).toMatch(/^ {2}replay +1\.76 µs +4 µs +6\.8 µs +12\.4 µs$/m);
    // 6 of 10 ms.
    expect(text).toMatch(/^ {2}command fetch +60 % +6 ms +█+$/m);
    // 600 of 1500 kernels; 1600 submissions in 4 iterations.
    expect(text).toContain('1,500, 40 % of them at most 10 µs');
    expect(text).toContain('400 an iteration');
    expect(text).toMatch(/^ {5,}4 % {2}Launch runs of short kernels/m);
    expect(text).toContain('- The trace was taken with shapes.');
  });

  it('draws bars to scale', () => {
    const lines = answerText(madePrediction(), 100);
    const bars = ['replay', 'additive'].map(
      (name) =>
        /█+/.exec(lines.find((line) => line.startsWith(`  ${name}`)) ?? '')?.[0].length ?? 0,
    );
    // 10 % is half of 20 %.
    expect((bars[0] ?? 0) * 2).toBe(bars[1]);
  });

  it('marks recalled figures, and says what the mark means', () => {
    const text = answerText(madePrediction(), 100).join('\n');
    expect(text).toContain(
      'round trip 6.8 µs* (native 1.2 µs* + added 5.6 µs*), 140* tags, MRRS 128 B*',
    );
    expect(text).toMatch(/MPS\s+128 B,/);
    expect(text.replaceAll(/\s+/g, ' ')).toContain('* recalled of the DxPU paper, not confirmed');
    expect(answerText(NEAR, 100).join('\n')).not.toMatch(/\*|recalled/);
  });

  it('says that a made-up trace is one', () => {
    const made = madePrediction({ trace: { format: 'synthetic', file: 'synthetic training' } });
    for (const lines of [answerText(made, 80), comparisonText([made, NEAR], 80)]) {
      expect(lines[1]).toMatch(/^SYNTHETIC: a made-up trace, not a measurement/);
    }
  });

  it('says why there is no replay, and words for budgets without a figure', () => {
    const text = answerText(madeWithoutReplay(), 80).join('\n');
    expect(text).toMatch(/^ {2}No replay: the trace has no calls of the host$/m);
    expect(text).toMatch(/^ {2}additive +none +any$/m);
    expect(text).toMatch(/^Where 20 ms are lost \(additive\)$/m);
  });

  it('has a row for each iteration asked for', () => {
    const one = {
      label: 'ProfilerStep#7',
      startNs: 0,
      endNs: 5e6,
      nativeSpanNs: 5e6,
      submissions: 12,
      hostWaits: 3,
      additive: { addedNs: 1e6, overheadPct: 20 },
      replay: { addedNs: 5e5, overheadPct: 10 },
    };
    const text = answerText(madePrediction({ rest: { perIteration: [one] } }), 80).join('\n');
    expect(text).toMatch(/^ {2}ProfilerStep#7 +5 ms +10 % +20 % +12 +3$/m);
    const none = answerText(madePrediction({ rest: { perIteration: [] } }), 80).join('\n');
    expect(none).toContain('The trace marks none.');
  });

  it('lets nothing of a trace act on the terminal', () => {
    const evil = '\u001b[2Jx';
    const text = answerText(
      madePrediction({
        trace: { file: evil, gpus: [evil] },
        link: { name: evil },
        rest: { warnings: [{ code: 'x', count: 1, message: evil }] },
      }),
      80,
    );
    expect(text.join('')).not.toContain('\u001b');
  });

  it('never runs over the edge, whatever the width (property)', () => {
    const predictions = [
      madePrediction({ trace: { file: 'a/very/long/way/to/the/trace/of/rank-000001.json.gz' } }),
      madeWithoutReplay(),
      NEAR,
    ];
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 140 }), (width) => {
        const texts = [
          ...predictions.map((one) => answerText(one, width)),
          comparisonText(predictions, width),
          summaryText(predictions, width),
        ];
        for (const line of texts.flat()) {
          expect(displayWidth(line), line).toBeLessThanOrEqual(Math.max(width, LEAST_WIDTH));
          expect(line).not.toMatch(/NaN|undefined|null|Infinity/);
        }
      }),
      { numRuns: 40 },
    );
  });
});

describe('several links', () => {
  it('stand side by side', () => {
    const text = comparisonText([madePrediction(), NEAR], 80).join('\n');
    expect(text).toMatch(/^ +dxpu-6\.8us +near$/m);
    expect(text).toMatch(/^round trip +6\.8 µs\* +3\.2 µs$/m);
    expect(text).toMatch(/^10 % up to +6\.8 µs +6\.8 µs$/m);
    expect(text).toMatch(/^lost most by +command fetch 60 % +command fetch 60 %$/m);
  });

  it('go on below where there is no room', () => {
    const many = [1, 2, 3, 4].map((n) => madePrediction({ link: { name: `link-${n}` } }));
    const lines = comparisonText(many, 60);
    // 12 columns of names, 18 a link and 2 between: two at once.
    expect(lines.filter((line) => /^ +link-\d +link-\d$/.test(line))).toHaveLength(2);
  });
});

describe('several traces', () => {
  const ranks = [
    madePrediction({ trace: { file: 'job/rank0.json.gz' } }),
    madePrediction({
      trace: { file: 'job/rank1.json.gz' },
      rest: { verdict: { budgetPct: 10, within: 'yes', text: '' } },
    }),
    madeWithoutReplay({ trace: { file: 'job/rank2.json.gz' } }),
  ];

  it('have a row each, and a sum', () => {
    const lines = summaryText(ranks, 100);
    expect(lines[0]).toBe('in job/');
    expect(lines[3]).toMatch(/^rank0 +10 % +20 % +unsure +6\.8 µs +command fetch 60 % +medium$/);
    expect(lines[5]).toMatch(/^rank2 +- +20 % +unsure +any +command fetch 50 % +no replay$/);
    expect(lines).toContain('1 of 3 fit a budget of 10 %; the worst is 20 %, rank2.');
  });

  it('keep their endings where they would be the same without', () => {
    const both = ['a/t.json', 'a/t.sqlite'].map((file) => madePrediction({ trace: { file } }));
    const text = summaryText(both, 100).join('\n');
    expect(text).toMatch(/^t\.json /m);
    expect(text).toMatch(/^t\.sqlite /m);
  });

  it('lose columns before they lose rows on a narrow terminal', () => {
    const lines = summaryText(ranks, 60);
    expect(lines[2]).toMatch(/^trace +replay +additive +verdict +10 % up to$/);
    expect(lines.filter((line) => line.startsWith('rank'))).toHaveLength(3);
  });
});
