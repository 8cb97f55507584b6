/** Why a trace cannot be opened or read, and the way out. */
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import { shortPath } from '#base/short-path';

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'reading it is not permitted',
  EPERM: 'reading it is not permitted',
  ENOTDIR: 'a part of its path is a file, not a folder. Check the path',
  ELOOP: 'its symbolic links lead in a circle. Name the file itself',
  ENAMETOOLONG: 'its name is longer than the file system takes. Check how the name was made',
  EIO: 'the device failed. Copy the file to another one and give the copy',
  EMFILE: 'too many files are open. Raise the limit: ulimit -n',
  ENFILE: 'too many files are open. Close other programs',
};

const CODES: Readonly<Record<string, DxpuErrorCode>> = {
  ENOTDIR: 'invalid_argument',
  ELOOP: 'invalid_argument',
  ENAMETOOLONG: 'invalid_argument',
};

/** The error for a failed call on `file`; a `DxpuError` is passed through. */
export function unreadable(file: string, thrown: unknown): DxpuError {
  if (thrown instanceof DxpuError) return thrown;
  const { code, message } = DxpuError.from(thrown);
  const { code: errno = '' } = thrown as NodeJS.ErrnoException;
  const why = REASONS[errno] ?? (errno === '' ? message : `reading it failed with ${errno}`);
  return new DxpuError(CODES[errno] ?? code, `Cannot read ${shortPath(file)}: ${why}.`, {
    details: { file },
    cause: thrown,
  });
}
