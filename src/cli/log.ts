/** Logs of the long-running processes: to stderr, a line each; JSON where nobody looks on. */
import { type Logger, pino } from 'pino';
import colors from 'picocolors';

export type { Logger } from 'pino';

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
  const level = options.level ?? process.env.DXPU_LOG ?? 'info';
  const base = { name };
  const write = format === 'json' ? undefined : { write: (line: string) => writeText(line) };
  // Synchronous: the last words before an end must not get lost.
  return pino(
    { level, base, timestamp: pino.stdTimeFunctions.isoTime },
    write ?? pino.destination({ dest: 2, sync: true }),
  );
}

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
  process.stderr.write(
    `${colors.dim(clock)} ${paint(word.padEnd(5))} ${name}  ${msg ?? ''}${colors.dim(facts)}\n`,
  );
}
