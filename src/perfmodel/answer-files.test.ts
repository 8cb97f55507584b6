import { parseHTML } from 'linkedom';
import { describe, expect, it } from 'vitest';
import { madePrediction, madeWithoutReplay } from '#testkit/made-prediction';
import { AnswerCsv } from './answer-csv.ts';
import { answerPage } from './answer-page.ts';
import { answerPlot, overheadPicture } from './answer-plot.ts';

describe('the answer as CSV', () => {
  it('has a header once, and a row for each prediction', () => {
    const csv = new AnswerCsv();
    const first = csv.lines([madePrediction(), madeWithoutReplay()]);
    const [header = '', row = '', without = ''] = first;
    expect(first).toHaveLength(3);
    expect(csv.lines([madePrediction()])).toEqual([row]);
    const cells = (line: string): Record<string, string> =>
      Object.fromEntries(header.split(',').map((name, at) => [name, line.split(',')[at] ?? '']));
    expect(cells(row)).toMatchObject({
      file: 'traces/step.json.gz',
      rttNs: '6800',
      kernels: '1500',
      htodBytes: '63000000',
      additiveOverheadPct: '20',
      replayOverheadPct: '10',
      replayLowPct: '9',
      within: 'unsure',
      fetchNs: '6000000',
      helpsMost: 'graphs',
      replayMaxRttNs10: '6800',
      additiveMaxRttNs20: '6800',
    });
    // Budgets by place: the second of this one is unlimited.
    expect(cells(without)).toMatchObject({
      replayOverheadPct: '',
      confidence: '',
      additiveMaxRttNs1: '',
      additiveMaxRttNs5: 'inf',
    });
  });

  it('quotes what needs it (RFC 4180)', () => {
    const [, row = ''] = new AnswerCsv().lines([
      madePrediction({ trace: { file: 'a, "b".json' } }),
    ]);
    expect(row.startsWith('"a, ""b"".json",kineto,')).toBe(true);
  });

  // A spreadsheet ran what a name began with.
  it('has no formulas, and numbers stay numbers', () => {
    const csv = new AnswerCsv();
    const [header = '', row = ''] = csv.lines([
      madePrediction({
        trace: { file: '-x.json', gpus: ['=1+1'] },
        link: { name: '@a', addedRttNs: -5 },
      }),
    ]);
    expect(row.startsWith("'-x.json,kineto,'=1+1,'@a,")).toBe(true);
    expect(row.split(',')[header.split(',').indexOf('addedRttNs')]).toBe('-5');
    const [spaced = ''] = csv.lines([madePrediction({ trace: { file: ' +A1' } })]);
    expect(spaced.startsWith("' +A1,")).toBe(true);
  });

  // Names of GPUs, out of the trace, reached the terminal as they are.
  it('has nothing in it that could act on a terminal, and a row is a line', () => {
    const [, row = ''] = new AnswerCsv().lines([
      madePrediction({ trace: { file: 'a\nb\u202ec.json', gpus: ['\u001b[31mA100'] } }),
    ]);
    expect(row.startsWith('a\ufffdb\ufffdc.json,kineto,\ufffd[31mA100,')).toBe(true);
  });
});

describe('the answer as a picture', () => {
  const curve = [1200, 4000, 6800, 12_000].map((rttNs) => ({
    rttNs,
    additiveOverheadPct: (rttNs - 1200) / 280,
    replayOverheadPct: (rttNs - 1200) / 560,
  }));

  it('has both estimates, the budget, the link and the causes', () => {
    const svg = answerPlot([madePrediction({ rest: { curve } })]);
    for (const text of [
      'replay',
      'additive',
      'budget 10 %',
      'dxpu-6.8us',
      'command fetch',
      'HtoD copies',
    ]) {
      expect(svg).toContain(text);
    }
    expect(svg).not.toContain('peer copies');
    expect(svg).not.toMatch(/NaN|Infinity|undefined/);
  });

  it('describes itself for those who do not see it', () => {
    const svg = overheadPicture([madePrediction({ rest: { curve } })]);
    expect(svg).toContain('<desc>traces/step.json.gz over dxpu-6.8us: 10 % at 6.8 µs.</desc>');
  });

  it('draws the additive estimate alone where there is no replay, and nothing lost', () => {
    const none = { doorbellNs: 0, fetchNs: 0, htodNs: 0, dtohNs: 0, peerNs: 0, waitNs: 0 };
    const svg = answerPlot([
      madeWithoutReplay({
        rest: { additive: { addedNs: 0, overheadPct: 0, causes: none }, causes: none },
      }),
    ]);
    expect(svg).toContain('additive');
    expect(svg).not.toContain('>replay');
    expect(svg).not.toMatch(/NaN|Infinity/);
  });

  it('takes a native link, on which nothing is lost', () => {
    const link = { name: 'native', addedRttNs: 0, rttNs: 1200, networkGbps: null };
    expect(answerPlot([madePrediction({ link })])).not.toMatch(/NaN|Infinity/);
  });

  it('draws one curve for links that differ by their round trip alone', () => {
    const near = { name: 'near', addedRttNs: 2000, rttNs: 3200 };
    const svg = overheadPicture([madePrediction(), madePrediction({ link: near })]);
    expect(svg).not.toContain('replay, ');
    expect(svg).toContain('near');
    const tags = overheadPicture([
      madePrediction(),
      madePrediction({ link: { ...near, tags: 9 } }),
    ]);
    expect(tags).toContain('replay, near');
  });

  it('names files and links where there are several, and says which are made up', () => {
    const svg = answerPlot([
      madePrediction({ trace: { file: 'job/rank0.json.gz' } }),
      madePrediction({ trace: { file: 'job/rank1.json.gz', format: 'synthetic' } }),
    ]);
    expect(svg).toContain('replay, rank0');
    expect(svg).toContain('2 traces (SYNTHETIC)');
  });
});

describe('the answer as a page', () => {
  const textOf = (page: string): string =>
    parseHTML(page).document.body.textContent.replaceAll(/\s+/g, ' ');

  it('has verdict, budgets, pictures, workload, advice and how sure it is', () => {
    const page = answerPage([madePrediction()], 'Made by a test.');
    const { document } = parseHTML(page);
    expect(document.querySelector('h1')?.textContent).toBe('What traces/step.json.gz loses');
    expect(document.querySelector('.callout.unsure')?.textContent).toMatch(/^UNSURE: The replay/);
    expect(document.querySelectorAll('figure')).toHaveLength(2);
    const text = textOf(page);
    for (const part of [
      '6.8 µs*',
      'recalled of the DxPU paper, not confirmed',
      'Launch runs of short kernels as graphs',
      'confidence medium; 9 % to 12 %',
      'The trace was taken with shapes.',
      'Made by a test.',
    ]) {
      expect(text).toContain(part);
    }
  });

  it('is of any number of traces, and says which have no answer', () => {
    const ranks = Array.from({ length: 12 }, (_, n) =>
      madePrediction({ trace: { file: `rank${n}.json` } }),
    );
    const text = textOf(answerPage(ranks, '', ['rank12.json: broken']));
    expect(text).toContain('What 12 traces lose');
    expect(text).toContain('rank12.json: broken');
    expect(text).toContain('rank11.json');
  });

  it('takes names for what they are', () => {
    const page = answerPage([madePrediction({ trace: { file: '<script>x</script>' } })], '');
    expect(parseHTML(page).document.querySelectorAll('script')).toHaveLength(0);
  });
});
