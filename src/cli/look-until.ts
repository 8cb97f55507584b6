/** Waiting for what nobody tells of. */
import { setTimeout as pause } from 'node:timers/promises';

/** Looks each `everyMs` until `look` gives something; `undefined` when it does not `withinMs`. */
export async function lookUntil<T>(
  withinMs: number,
  everyMs: number,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined || performance.now() > deadline) return found;
    await pause(everyMs);
  }
}
