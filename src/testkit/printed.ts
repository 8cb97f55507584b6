/** What a command prints, and what it throws. */

export interface Printed {
  readonly stdout: string;
  readonly stderr: string;
  readonly thrown: unknown;
}

/** Runs `command` with both streams caught, in `texts` as it prints. One at a time. */
export async function printed(
  command: () => Promise<unknown>,
  texts: { stdout: string; stderr: string } = { stdout: '', stderr: '' },
): Promise<Printed> {
  const streams = [process.stdout, process.stderr] as const;
  const originals = streams.map((stream) => stream.write.bind(stream));
  for (const [index, name] of (['stdout', 'stderr'] as const).entries()) {
    const stream = streams[index];
    if (stream === undefined) continue;
    stream.write = (chunk: unknown, ...rest: unknown[]) => {
      texts[name] += String(chunk);
      const done = rest.find((one) => typeof one === 'function') as (() => void) | undefined;
      done?.();
      return true;
    };
  }
  let thrown: unknown;
  try {
    await command();
  } catch (error) {
    thrown = error;
  } finally {
    for (const [index, stream] of streams.entries()) {
      const original = originals[index];
      if (original !== undefined) stream.write = original;
    }
  }
  return { ...texts, thrown };
}
