/** Looks again and again until `look` gives something; seldom enough that looking costs little. */
export async function until<T>(
  look: () => T | undefined | Promise<T | undefined>,
  what: string | (() => string),
  withinMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) {
      throw new Error(`waited in vain for ${typeof what === 'string' ? what : what()}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 40));
  }
}
