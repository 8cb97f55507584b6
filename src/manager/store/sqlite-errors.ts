import Sqlite from 'better-sqlite3';
import { DxpuError, type DxpuErrorCode } from '#base/errors';

interface Meaning {
  readonly code: DxpuErrorCode;
  /** What happened and the way out, behind the name of the file. */
  readonly message: string;
}

const MEANINGS: readonly (readonly [prefix: string, meaning: Meaning])[] = [
  [
    'SQLITE_FULL',
    {
      code: 'resource_exhausted',
      message: 'could not be written: the disk is full. Make room; nothing is lost meanwhile',
    },
  ],
  ['SQLITE_CONSTRAINT', { code: 'aborted', message: 'refuses the batch' }],
  [
    'SQLITE_CORRUPT',
    { code: 'data_loss', message: 'is damaged. Stop the manager and restore its folder' },
  ],
  [
    'SQLITE_NOTADB',
    { code: 'data_loss', message: 'is damaged. Stop the manager and restore its folder' },
  ],
  [
    'SQLITE_READONLY',
    { code: 'permission_denied', message: 'cannot be written. Make it and its folder writable' },
  ],
  ['SQLITE_IOERR', { code: 'unavailable', message: 'could not be read or written' }],
];

/** What a failed call of SQLite on `file` means to whoever runs the manager; a bug stays as it is. */
export function storeError(file: string, error: unknown): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  const { code, message } = error;
  const meaning = MEANINGS.find(([prefix]) => code.startsWith(prefix))?.[1] ?? {
    code: 'unavailable',
    message: 'could not be used',
  };
  return new DxpuError(meaning.code, `${file} ${meaning.message} (${code}: ${message})`, {
    details: { file, sqlite: code },
    cause: error,
  });
}
