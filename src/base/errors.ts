/**
 * One error class for everything a caller may want to handle. The codes are those of gRPC, so that
 * they cross process boundaries unchanged.
 */
export const DXPU_ERROR_CODES = [
  'cancelled',
  'unknown',
  'invalid_argument',
  'deadline_exceeded',
  'not_found',
  'already_exists',
  'permission_denied',
  'resource_exhausted',
  'failed_precondition',
  'aborted',
  'out_of_range',
  'unimplemented',
  'internal',
  'unavailable',
  'data_loss',
  'unauthenticated',
] as const;

export type DxpuErrorCode = (typeof DXPU_ERROR_CODES)[number];

export interface DxpuErrorOptions {
  /** Machine-readable facts beside the message: names, sizes, line numbers. */
  readonly details?: Readonly<Record<string, unknown>>;
  readonly cause?: unknown;
}

/**
 * An error somebody can act on. The message names the input, the place in it, and the way out.
 */
export class DxpuError extends Error {
  override name = 'DxpuError';
  readonly code: DxpuErrorCode;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: DxpuErrorCode, message: string, options: DxpuErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }

  /** Wraps anything thrown; a `DxpuError` is returned as it is, errno errors get a fitting code. */
  static from(thrown: unknown): DxpuError {
    if (thrown instanceof DxpuError) return thrown;
    if (thrown instanceof Error) {
      const errno = (thrown as NodeJS.ErrnoException).code;
      const code = typeof errno === 'string' ? (ERRNO_CODES[errno] ?? 'unknown') : 'unknown';
      return new DxpuError(code, thrown.message, { cause: thrown });
    }
    return new DxpuError('unknown', String(thrown), { cause: thrown });
  }
}

const ERRNO_CODES: Readonly<Record<string, DxpuErrorCode>> = {
  ENOENT: 'not_found',
  EEXIST: 'already_exists',
  EACCES: 'permission_denied',
  EPERM: 'permission_denied',
  EADDRINUSE: 'already_exists',
  EADDRNOTAVAIL: 'invalid_argument',
  ECONNREFUSED: 'unavailable',
  ECONNRESET: 'unavailable',
  EPIPE: 'unavailable',
  ETIMEDOUT: 'deadline_exceeded',
  ENOSPC: 'resource_exhausted',
  EMFILE: 'resource_exhausted',
};
