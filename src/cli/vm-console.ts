/** The serial console of a VM on this terminal. */
import * as net from 'node:net';
import { DxpuError } from '#base/errors';
import { printNote, UsageError } from './output.ts';
import type { VmFiles } from './vm-folder.ts';

/** Ctrl-], as of telnet and virsh. */
const LEAVE = 0x1d;

/** Returns when the user leaves it or the VM ends. */
export async function showConsole(files: VmFiles): Promise<void> {
  const { stdin, stdout } = process;
  if (!stdin.isTTY) {
    throw new UsageError(
      `a console needs a terminal; what it has shown so far is in ${files.consoleLog}`,
    );
  }
  const socket = net.connect(files.console);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', (error) =>
      reject(
        new DxpuError('unavailable', `the VM of ${files.id} does not run: ${error.message}`, {
          details: { socket: files.console },
        }),
      ),
    );
  });
  printNote(`console of ${files.id}; Ctrl-] leaves it, the VM goes on. Enter shows a prompt.`);
  stdin.setRawMode(true);
  try {
    await new Promise<void>((resolve) => {
      socket.on('data', (chunk) => stdout.write(chunk));
      socket.once('close', () => resolve());
      stdin.on('data', (chunk: Buffer) => {
        const end = chunk.indexOf(LEAVE);
        socket.write(end < 0 ? chunk : chunk.subarray(0, end));
        if (end >= 0) resolve();
      });
    });
  } finally {
    stdin.setRawMode(false);
    stdin.pause();
    socket.destroy();
    stdout.write('\n');
  }
}
