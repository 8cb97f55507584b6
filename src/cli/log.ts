/**
 * Logs of the processes that stay: to stderr, a line each; JSON where nobody looks on. A log that cannot
 * be written, as on a full disk, is no reason to end what others depend on: a process that has called
 * `outliveStderr` goes on, and so does a log in a file once there is room.
 */
import { fstatSync, writeSync } from 'node:fs';
import { type Logger, pino } from 'pino';
import picocolors from 'picocolors';
import { DxpuError } from '#base/errors';

export type { Logger } from 'pino';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

const LEVEL_NAMES: Readonly<Record<number, string>> = {
  10: 'trace',
  20: 'debug',
  30: 'info',
  40: 'warn',
  50: 'error',
  60: 'fatal',
};

export interface LogOptions {
  /** `text` for people, `json` for machines; default by whether stderr is a terminal. */
  readonly format?: 'text' | 'json';
  readonly level?: string;
}

export function createLog(name: string, options: LogOptions = {}): Logger {
  const format = options.format ?? (process.stderr.isTTY ? 'text' : 'json');
  const level = options.level ?? levelOfEnvironment() ?? 'info';
  const base = { name };
  const write = format === 'json' ? writeLine : writeText;
  return pino({ level, base, timestamp: pino.stdTimeFunctions.isoTime }, { write });
}

/** The command's own rule, that it ends with its stderr, is not for a process that stays. */
export function outliveStderr(): void {
  process.stderr.removeAllListeners('error');
  process.stderr.on('error', () => {});
}

/** Of a file: a stream ends for good with its first failed write. */
const isFile = isStderrFile();

function isStderrFile(): boolean {
  try {
    return fstatSync(2).isFile();
  } catch {
    return false;
  }
}

/** Done on return: the last words before an end must not get lost. */
function writeLine(line: string): void {
  if (!isFile) {
    process.stderr.write(line);
    return;
  }
  try {
    writeSync(2, line);
  } catch {
    // The disk is full, or worse. The next line may find room.
  }
}

/** `$DXPU_LOG`, which unlike an option nobody has checked. */
function levelOfEnvironment(): string | undefined {
  const level = process.env.DXPU_LOG;
  if (level === undefined || level === '') return undefined;
  if (LOG_LEVELS.some((known) => known === level)) return level;
  throw new DxpuError(
    'invalid_argument',
    `DXPU_LOG is ${JSON.stringify(level.slice(0, 60))}: it must be one of ${LOG_LEVELS.join(', ')}`,
  );
}

// The library colours wherever CI is set; a log that is kept in a file must stay plain there too.
const colors = picocolors.createColors(
  process.stderr.isTTY === true && (process.env.NO_COLOR ?? '') === '',
);

interface LogRecord {
  readonly level: number;
  readonly time: string;
  readonly name: string;
  readonly msg?: string;
  readonly [fact: string]: unknown;
}

/** `12:00:00.123 info  host-h1 message key=value` */
function writeText(line: string): void {
  const { level, time, name, msg, ...rest } = JSON.parse(line) as LogRecord;
  const word = LEVEL_NAMES[level] ?? `${level}`;
  const paint = level >= 50 ? colors.red : level >= 40 ? colors.yellow : colors.dim;
  const facts = Object.entries(rest)
    .map(([key, value]) => ` ${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)
    .join('');
  const clock = time.slice(11, 23);
  writeLine(
    `${colors.dim(clock)} ${paint(word.padEnd(5))} ${name}  ${msg ?? ''}${colors.dim(facts)}\n`,
  );
}
