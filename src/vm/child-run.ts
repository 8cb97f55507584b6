/** Runs a program to its end, with a deadline, and says in one error what became of it. */
import { spawn } from 'node:child_process';
import { DxpuError } from '#base/errors';

export interface ChildRunOptions {
  readonly folder?: string;
  /** It is killed then. */
  readonly deadlineMs: number;
}

const SHOWN_LINES = 6;

/**
 * What the program wrote to stdout, once it has ended with status 0. Fails with `not_found` where there is no
 * such program, `deadline_exceeded` where it took too long, and `unavailable`, with its last words, where it
 * ended otherwise.
 */
export function runChild(
  program: string,
  args: readonly string[],
  options: ChildRunOptions,
): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      ...(options.folder === undefined ? {} : { cwd: options.folder }),
      // Messages are shown, and figures in them read.
      env: { ...process.env, LC_ALL: 'C', DEBIAN_FRONTEND: 'noninteractive' },
    });
    const out: Buffer[] = [];
    let words = '';
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill('SIGKILL');
    }, options.deadlineMs);
    child.stdout.on('data', (chunk: Buffer) => out.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => {
      words = (words + chunk.toString()).slice(-4000);
    });
    child.once('error', (error) => {
      clearTimeout(timer);
      const { code } = DxpuError.from(error);
      reject(new DxpuError(code, `cannot run ${program}: ${error.message}`, { cause: error }));
    });
    child.once('close', (status, signal) => {
      clearTimeout(timer);
      if (status === 0) return resolve(Buffer.concat(out));
      const said = words.trimEnd().split('\n').slice(-SHOWN_LINES).join('\n');
      const how = isLate
        ? `took longer than ${options.deadlineMs / 1e3} s and was ended`
        : signal === null
          ? `ended with status ${status}`
          : `was ended by ${signal}`;
      const tail = said === '' ? '' : `; its last words:\n${said}`;
      const code = isLate ? 'deadline_exceeded' : 'unavailable';
      reject(
        new DxpuError(code, `${program} ${how}${tail}`, { details: { program, args, status } }),
      );
    });
  });
}
