/** A few commands for a running QEMU by QMP, one connection a time; no events. */
import * as net from 'node:net';
import { DxpuError } from '#base/errors';

export interface MonitorCommand {
  readonly execute: string;
  readonly arguments?: Readonly<Record<string, unknown>>;
}

/**
 * What QEMU answers to `command`. Fails with `unavailable` where nobody listens at the socket or QEMU ends
 * before it has answered, with `deadline_exceeded` where it does not answer in time: another client holds the
 * socket, or QEMU is stuck.
 */
export function askMonitor(
  socketPath: string,
  command: MonitorCommand,
  withinMs: number,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(socketPath);
    const what = `QMP ${command.execute} at ${socketPath}`;
    let text = '';
    // The greeting, then an answer each.
    const sent: MonitorCommand[] = [{ execute: 'qmp_capabilities' }, command];
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
    };
    const fail = (code: 'unavailable' | 'deadline_exceeded' | 'internal', why: string): void => {
      finish();
      reject(new DxpuError(code, `${what}: ${why}`, { details: { socket: socketPath } }));
    };
    const timer = setTimeout(
      () => fail('deadline_exceeded', `no answer within ${withinMs / 1e3} s`),
      withinMs,
    );
    const take = (line: string): void => {
      const message = JSON.parse(line) as QmpMessage;
      if (message.event !== undefined) return;
      if (message.error !== undefined) return fail('internal', message.error.desc);
      const next = sent.shift();
      if (next !== undefined) {
        socket.write(`${JSON.stringify(next)}\n`);
        return;
      }
      finish();
      resolve(message.return);
    };
    socket.on('data', (chunk: Buffer) => {
      const lines = (text + chunk.toString()).split('\n');
      text = lines.pop() ?? '';
      try {
        for (const line of lines) if (line.trim() !== '') take(line);
      } catch (error) {
        fail('internal', `what answers is no QEMU: ${DxpuError.from(error).message}`);
      }
    });
    socket.on('error', (error) => fail('unavailable', error.message));
    socket.on('close', () => fail('unavailable', 'it has closed the connection'));
  });
}

interface QmpMessage {
  readonly event?: string;
  readonly error?: { readonly desc: string };
  readonly return?: unknown;
}
