/** A note beside the file, for people: which process has it open. The lock itself is SQLite's. */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';

const noteOf = (file: string): string => `${file}.pid`;

export function noteOwner(file: string): void {
  try {
    writeFileSync(noteOf(file), `${process.pid}\n`, { mode: 0o600 });
  } catch {
    // A full disk: the lock holds without it.
  }
}

export function forgetOwner(file: string): void {
  rmSync(noteOf(file), { force: true });
}

/** The process that left a note and still runs; `undefined` where none is known. */
export function ownerOf(file: string): number | undefined {
  let owner: number;
  try {
    owner = Number(readFileSync(noteOf(file), 'utf8'));
  } catch {
    return undefined;
  }
  return Number.isSafeInteger(owner) && owner > 0 && isRunning(owner) ? owner : undefined;
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there and another user's.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
