/** The picture and the page that a command writes beside what it prints. */
import { UsageError } from './output.ts';
import { checkTarget } from './whole-file.ts';

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

/** The content of a picture file of this name. */
export async function drawnAs(file: string, svg: string): Promise<string | Uint8Array> {
  if (!/\.png$/i.test(file)) return svg;
  const { pngOf } = await import('#report/png');
  return pngOf(svg);
}
