/**
 * Assertions are for bugs in this program only: what a peer or an operator did wrong is answered
 * with a completion, an errno or a `DxpuError`, never with an assertion.
 */

export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** Throws `AssertionError` when `condition` is false; narrows its type otherwise. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}

/** Returns `value`, which must not be `undefined` or `null`. */
export function assertDefined<T>(value: T | undefined | null, message: string): T {
  if (value === undefined || value === null) throw new AssertionError(message);
  return value;
}
