import { expect, it } from 'vitest';
import { Outages } from './outages.ts';

it('counts more than 65535 overlapping failures of one thing (a count of 16 bits began again at 0)', () => {
  const outages = new Outages(1);
  const failures = 65_536;
  for (let k = 0; k < failures; k++) outages.change(0, true);
  expect(outages.isDown(0)).toBe(true);
  for (let k = 1; k < failures; k++) expect(outages.change(0, false)).toBe(false);
  expect(outages.change(0, false)).toBe(true);
  expect(outages.isDown(0)).toBe(false);
});
