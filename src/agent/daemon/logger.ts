/** What the daemons need of a log. A pino logger is one. */
interface LogMethod {
  (facts: object, message: string): void;
  (message: string): void;
}

export interface Logger {
  readonly debug: LogMethod;
  readonly info: LogMethod;
  readonly warn: LogMethod;
  readonly error: LogMethod;
}
