/** The picture and the page that a command writes beside what it prints. */
import { printNote, UsageError } from './output.ts';
import { checkTarget, writeWhole } from './whole-file.ts';

export interface FileOptions {
  readonly plot?: string;
  readonly html?: string;
}

/** Before any work: fails with names that will not go. */
export function checkTargets({ plot, html }: FileOptions, inputs: readonly string[]): void {
  if (plot !== undefined) {
    if (!/\.(?:svg|png)$/i.test(plot)) {
      throw new UsageError(`--plot ${plot}: a name ending in .svg or .png says what to draw`);
    }
    checkTarget(plot, inputs);
  }
  if (html !== undefined) {
    if (!/\.html?$/i.test(html)) {
      throw new UsageError(`--html ${html}: the name of a page ends in .html`);
    }
    checkTarget(html, inputs);
  }
}

/** Fails where the picture would hold more than can be told apart; `what` says what it holds. */
export function checkPlotted(
  { plot }: FileOptions,
  count: number,
  most: number,
  what: string,
): void {
  if (plot === undefined || count <= most) return;
  throw new UsageError(
    `--plot draws at most ${most} ${what} together, not ${count}: --html takes any number`,
  );
}

/** Writes what was asked for, and says so. What makes it is slow to load: the rest is not called. */
export async function writeTargets(
  { plot, html }: FileOptions,
  make: { readonly svg: () => Promise<string>; readonly page: () => Promise<string> },
): Promise<void> {
  if (plot !== undefined) {
    writeWhole(plot, await drawnAs(plot, await make.svg()));
    printNote(`wrote ${plot}`);
  }
  if (html !== undefined) {
    writeWhole(html, await make.page());
    printNote(`wrote ${html}`);
  }
}

/** The content of a picture file of this name. */
async function drawnAs(file: string, svg: string): Promise<string | Uint8Array> {
  if (!/\.png$/i.test(file)) return svg;
  const { pngOf } = await import('#report/png');
  return pngOf(svg);
}
