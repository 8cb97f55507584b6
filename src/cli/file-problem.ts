/** Why a file could not be read or written, for people. */
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';

const REASONS: Readonly<Record<string, string>> = {
  EACCES: 'not permitted',
  EPERM: 'not permitted',
  EROFS: 'its file system is read-only',
  EISDIR: 'it is a folder',
  ENOTDIR: 'a part of its path is no folder',
  ELOOP: 'its symbolic links lead in a circle: name the place itself',
  ENAMETOOLONG: 'the name is longer than the file system takes: give a shorter one',
  ENOSPC: 'no space left',
  EDQUOT: 'no space left in the quota',
  EFBIG: 'it would be larger than this process may make files',
  EIO: 'the device failed',
  EPIPE: 'nobody reads it any more',
};

/** `what` is `read` or `write`. The code is that of the errno; `more` is added to the message. */
export function fileProblem(
  what: 'read' | 'write',
  name: string,
  error: unknown,
  more = '',
): DxpuError {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const missing = what === 'read' ? 'there is no such file' : 'there is no such folder';
  const reason = code === 'ENOENT' ? missing : (REASONS[code] ?? (error as Error).message);
  return new DxpuError(
    DxpuError.from(error).code,
    `cannot ${what} ${shortPath(name)}: ${reason}${more}`,
    {
      details: { file: name },
      cause: error,
    },
  );
}
