/** A command for a running QEMU by QMP, over a connection of its own. */
import * as net from 'node:net';
import { DxpuError, type DxpuErrorCode } from '#base/errors';
import type { Nanos } from '#base/units';
import { QmpSession } from './qmp-session.ts';

/** One deadline is over all of it: those of the session are not looked at. */
const NOW = 0 as Nanos;

/**
 * What QEMU answers to `command`. Fails with `unavailable` where nobody listens at the socket or QEMU ends
 * before it has answered, with `deadline_exceeded` where it does not answer in time: another client holds the
 * socket, or QEMU is stuck.
 */
export function askMonitor(
  socketPath: string,
  command: string,
  withinMs: number,
): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(socketPath);
    const finish = (): void => {
      clearTimeout(timer);
      socket.destroy();
    };
    const fail = (code: DxpuErrorCode, why: string): void => {
      finish();
      reject(new DxpuError(code, `${socketPath}: ${why}`, { details: { socket: socketPath } }));
    };
    const timer = setTimeout(
      () => fail('deadline_exceeded', `QMP ${command}: no answer within ${withinMs / 1e3} s`),
      withinMs,
    );
    const session = new QmpSession(NOW, {
      send: (text) => socket.write(text),
      user: {
        ready: (now) =>
          session.execute(now, command, {}, (_now, answer) => {
            if (!answer.ok) return fail('internal', answer.message);
            finish();
            resolve(answer.value);
          }),
        event: () => {},
        broken: (_now, reason) => fail('internal', reason),
      },
    });
    socket.setEncoding('utf8');
    socket.on('data', (text: string) => session.receive(NOW, text));
    socket.on('error', (error) => fail('unavailable', error.message));
    socket.on('close', () => fail('unavailable', 'QEMU has closed its QMP socket'));
  });
}
