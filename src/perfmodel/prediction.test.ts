/** `docs/schemas/predict-1.schema.json` is made of the schema: `npx vitest run FILE --update` writes it anew. */
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { namedLinkProfile } from '#pcie/link-profile';
import { madePrediction, madeWithoutReplay } from '#testkit/made-prediction';
import { SYNTHETIC_NAMES, syntheticTrace } from '#trace/synthetic';
import { predict } from './predict.ts';
import { prediction } from './prediction.ts';

const FILE = fileURLToPath(new URL('../../docs/schemas/predict-1.schema.json', import.meta.url));

describe('the schema of a prediction', () => {
  it('is what docs/schemas has', async () => {
    // As input: fields that a later version adds are no mistake.
    const { $schema, ...schema } = z.toJSONSchema(prediction, { io: 'input' });
    const document = {
      $schema,
      title: 'dxpu.predict/1',
      ...schema,
    };
    await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot(FILE);
  });

  it.each(SYNTHETIC_NAMES)('holds of all answers: %s', (name) => {
    const [one] = predict(syntheticTrace(name, 1), [namedLinkProfile('dxpu-6.8us')], {
      file: name,
      perIteration: name === 'inference',
      curve: name === 'copy-loader',
    });
    expect(() => prediction.parse(JSON.parse(JSON.stringify(one)))).not.toThrow();
  });

  it('holds of the predictions that tests make', () => {
    expect(prediction.parse(madePrediction())).toEqual(madePrediction());
    expect(prediction.parse(madeWithoutReplay())).toEqual(madeWithoutReplay());
  });
});

describe('the curve of a prediction', () => {
  it('meets the overheads of the link, and rises', () => {
    const [one] = predict(syntheticTrace('copy-loader', 1), [namedLinkProfile('dxpu-6.8us')], {
      file: 'copy-loader',
      curve: true,
    });
    const curve = one?.curve ?? [];
    expect(curve[0]?.rttNs).toBe(1200);
    expect(curve[0]?.replayOverheadPct).toBeCloseTo(0, 9);
    const own = one?.link.rttNs ?? 0;
    const [before, after] = [
      curve.findLast((p) => p.rttNs <= own),
      curve.find((p) => p.rttNs >= own),
    ];
    for (const estimate of ['additive', 'replay'] as const) {
      const at = one?.[estimate]?.overheadPct ?? Number.NaN;
      expect(before?.[`${estimate}OverheadPct`]).toBeLessThanOrEqual(at);
      expect(after?.[`${estimate}OverheadPct`]).toBeGreaterThanOrEqual(at);
      const values = curve.map((point) => point[`${estimate}OverheadPct`] ?? Number.NaN);
      expect(values).toEqual([...values].toSorted((a, b) => a - b));
    }
  });
});
