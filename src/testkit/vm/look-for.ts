const LOOK_MS = 20;

/** What `look` gives, once it gives something; fails with `what` when it does not in time. */
export async function lookFor<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: () => string,
  withinMs = 30_000,
  everyMs = LOOK_MS,
): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (Date.now() > deadline) throw new Error(`waited in vain for ${what()}`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
