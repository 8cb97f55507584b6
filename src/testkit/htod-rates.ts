/**
 * The emergent HtoD rate against `min(payload limit, tags × MRRS ÷ RTT₁)`, where RTT₁ is the one-tag
 * round trip measured in the same virtual world, itself checked against arithmetic.
 */
import { measureCopyRate, readPayloadLimit, roundTripByHand } from './copy-rate.ts';

export const RTTS_US = [1.2, 2, 4.9, 6.8, 10, 20] as const;
const TAGS = [32, 140, 256, 768] as const;

/** Measures all tag limits at one round trip. Returns what is off by more than 1 %, in words. */
export function htodRateErrors(path: { rttUs: number; mrrs: number; mps: number }): string[] {
  const wrong: string[] = [];
  const one = { ...path, tags: 1 };
  const byHandNs = roundTripByHand(one);
  const rtt1Ns = path.mrrs / measureCopyRate(one, 'down', path.mrrs / byHandNs, byHandNs);
  if (!(Math.abs(rtt1Ns / byHandNs - 1) < 1e-3)) {
    wrong.push(`one tag takes ${rtt1Ns} ns, by hand ${byHandNs}`);
  }
  for (const tags of TAGS) {
    const setting = { ...path, tags };
    const expected = Math.min(readPayloadLimit(setting), (tags * path.mrrs) / rtt1Ns);
    const rate = measureCopyRate(setting, 'down', expected, rtt1Ns);
    if (!(Math.abs(rate / expected - 1) < 0.01)) {
      wrong.push(`${tags} tags: ${rate} B/ns, expected ${expected}`);
    }
  }
  return wrong;
}
