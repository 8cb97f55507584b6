/** The bytes of a request that its byte enables name, as runs of bytes side by side. */
import { byteEnablesAt } from './completion.ts';
import type { Tlp } from './tlp.ts';

/** From the first byte of the run up to, not including, `to`; offsets from the request's double word. */
export interface ByteRun {
  readonly from: number;
  readonly to: number;
}

/** In order; none for a request of no bytes. */
export function enabledRuns(tlp: Tlp): ByteRun[] {
  const { lengthDw } = tlp;
  const bytes = 4 * lengthDw;
  const isOn = (at: number): boolean =>
    at < bytes && (byteEnablesAt(tlp, at >> 2) & (1 << (at & 3))) !== 0;
  const runs: ByteRun[] = [];
  for (let at = 0; at < bytes; ) {
    if (!isOn(at)) {
      at++;
      continue;
    }
    let to = at + 1;
    // Between the first and the last double word all bytes count.
    while (isOn(to)) to = to === 4 && lengthDw > 2 ? bytes - 4 : to + 1;
    runs.push({ from: at, to });
    at = to;
  }
  return runs;
}
