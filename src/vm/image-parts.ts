/**
 * A folder with what VMs are made of. Each part is a folder of its own, made beside its place and put there
 * in one step: a part that is there is whole. Several processes may ask for parts of one folder at once: one
 * makes, the others wait, and find it made.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as net from 'node:net';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { makeFolder } from '#base/make-folder';

/** Written last into a part: what it is. */
const LABEL = 'part.json';

/**
 * The label of part `name` of `folder`; where it is missing, `make` fills a new folder and says what to write
 * on the label. What `make` leaves behind when it fails, or is killed, never counts and is removed.
 */
export async function imagePart<Label extends object>(
  folder: string,
  name: string,
  make: (part: string) => Promise<Label>,
): Promise<{ readonly folder: string; readonly label: Label }> {
  const place = path.join(folder, name);
  const found = (): Label | undefined => readLabel<Label>(place);
  const known = found();
  if (known !== undefined) return { folder: place, label: known };
  makeFolder(folder);
  const lock = await lockFolder(folder);
  try {
    // Somebody else may have made it meanwhile.
    const made = found();
    if (made !== undefined) return { folder: place, label: made };
    removeUnfinished(folder);
    const unfinished = path.join(folder, `${UNFINISHED}${name}-${process.pid}`);
    mkdirSync(unfinished, { mode: 0o700 });
    try {
      const label = await make(unfinished);
      writeFileSync(path.join(unfinished, LABEL), `${JSON.stringify(label)}\n`);
      rmSync(place, { recursive: true, force: true });
      renameSync(unfinished, place);
      return { folder: place, label };
    } catch (error) {
      rmSync(unfinished, { recursive: true, force: true });
      throw error;
    }
  } finally {
    lock.close();
  }
}

const UNFINISHED = '.unfinished-';

function removeUnfinished(folder: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(UNFINISHED)) continue;
    rmSync(path.join(folder, name), { recursive: true, force: true });
  }
}

function readLabel<Label>(place: string): Label | undefined {
  const file = path.join(place, LABEL);
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    return JSON.parse(text) as Label;
  } catch (error) {
    throw new DxpuError(
      'data_loss',
      `${file} is damaged: remove the folder ${place}, and it is made again`,
      { cause: error },
    );
  }
}

/**
 * Held by one process at a time, and let go with it, however it ends: a socket without a file. Waiting is
 * being connected to the holder, until it closes.
 */
async function lockFolder(folder: string): Promise<{ close(): void }> {
  const hash = createHash('sha256').update(path.resolve(folder)).digest('hex').slice(0, 32);
  const address = `\0dxpu-images-${hash}`;
  for (;;) {
    const held = await listenAt(address);
    if (held !== undefined) return held;
    await untilClosed(address);
  }
}

function listenAt(address: string): Promise<{ close(): void } | undefined> {
  const waiting = new Set<net.Socket>();
  const server = net.createServer((socket) => {
    waiting.add(socket);
    socket.on('error', () => {});
  });
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(undefined);
      else reject(DxpuError.from(error));
    });
    server.listen(address, () =>
      resolve({
        close() {
          server.close();
          for (const socket of waiting) socket.destroy();
        },
      }),
    );
  });
}

function untilClosed(address: string): Promise<void> {
  return new Promise((resolve) => {
    const socket = net.connect(address);
    // Gone before it was reached: as good as closed.
    socket.on('error', () => {});
    socket.once('close', () => resolve());
  });
}
