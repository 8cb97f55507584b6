/** A child process on one core, asked one question at a time. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Answer } from './protocol.ts';

export const canPin = spawnSync('taskset', ['--version']).status === 0;

/** Moves a process with all its threads to a core. */
export function pinProcess(pid: number, cpu: number): void {
  if (canPin) spawnSync('taskset', ['-a', '-c', '-p', String(cpu), String(pid)]);
}

export class PinnedProcess {
  readonly #child: ChildProcess;

  constructor(script: string, cpu: number) {
    const file = fileURLToPath(new URL(script, import.meta.url));
    const command = canPin ? ['taskset', '-c', String(cpu), process.execPath] : [process.execPath];
    this.#child = spawn(command[0] as string, [...command.slice(1), file], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
  }

  /** It moves to another core. */
  pin(cpu: number): void {
    pinProcess(this.#child.pid ?? 0, cpu);
  }

  ask<T extends Answer>(message: object): Promise<T> {
    const child = this.#child;
    return new Promise((resolve, reject) => {
      const onExit = (status: number | null): void => {
        reject(new Error(`a process of the benchmark ended with ${status}`));
      };
      child.once('exit', onExit);
      child.once('message', (answer: Answer) => {
        child.removeListener('exit', onExit);
        if ('error' in answer) reject(new Error(answer.error));
        else resolve(answer as T);
      });
      child.send(message);
    });
  }

  stop(): void {
    // It ends by itself when its parent lets go, however that happens.
    this.#child.disconnect();
  }
}
