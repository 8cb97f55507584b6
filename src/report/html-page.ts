/** One self-contained page: no script, nothing loaded from anywhere, light and dark, printable. */
import { escapeMarkup } from './markup.ts';
import { DARK, LIGHT } from './palette.ts';

/** Markup, as opposed to text: made by the functions below, or an SVG of this layer. */
export interface Markup {
  readonly markup: string;
}

export interface Section {
  readonly heading: string;
  readonly body: readonly Markup[];
}

export interface Page {
  readonly title: string;
  /** Below the title: what it is of. */
  readonly subtitle: string;
  readonly sections: readonly Section[];
  /** At the foot: how it was made. */
  readonly footer: string;
}

export function paragraph(text: string): Markup {
  return { markup: `<p>${escapeMarkup(text)}</p>` };
}

/** A figure with a caption. `svg` is a picture of this layer. */
export function figure(svg: string, caption: string): Markup {
  return { markup: `<figure>${svg}<figcaption>${escapeMarkup(caption)}</figcaption></figure>` };
}

/** A highlighted answer; `tone` colours its edge. */
export function callout(text: string, tone: 'good' | 'bad' | 'unsure'): Markup {
  return { markup: `<p class="callout ${tone}">${escapeMarkup(text)}</p>` };
}

/** How a column of a table stands: text that may wrap, a word that does not, or a number, to the right. */
export type ColumnKind = 'text' | 'word' | 'number';

/** A table; the last of `kinds` holds for all columns beyond. */
export function table(
  header: readonly string[],
  rows: readonly (readonly string[])[],
  kinds: readonly ColumnKind[],
): Markup {
  const kindOf = (column: number): ColumnKind => kinds[column] ?? kinds.at(-1) ?? 'text';
  const head = header.map(
    (cell, column) => `<th scope="col" class="${kindOf(column)}">${escapeMarkup(cell)}</th>`,
  );
  const body = rows.map((row) => {
    const cells = row.map(
      (cell, column) => `<td class="${kindOf(column)}">${escapeMarkup(cell)}</td>`,
    );
    return `<tr>${cells.join('')}</tr>`;
  });
  return {
    markup: `<div class="wide"><table><thead><tr>${head.join('')}</tr></thead><tbody>${body.join('')}</tbody></table></div>`,
  };
}

export function list(items: readonly string[]): Markup {
  return { markup: `<ul>${items.map((item) => `<li>${escapeMarkup(item)}</li>`).join('')}</ul>` };
}

export function htmlPage(page: Page): string {
  const sections = page.sections
    .map(
      ({ heading, body }) =>
        `<section><h2>${escapeMarkup(heading)}</h2>${body.map((part) => part.markup).join('\n')}</section>`,
    )
    .join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeMarkup(page.title)}</title>
<style>${STYLE}</style>
</head>
<body>
<header><h1>${escapeMarkup(page.title)}</h1><p class="faint">${escapeMarkup(page.subtitle)}</p></header>
<main>
${sections}
</main>
<footer class="faint">${escapeMarkup(page.footer)}</footer>
</body>
</html>
`;
}

const colours = (scheme: typeof LIGHT | typeof DARK): string =>
  `--ink:${scheme.ink};--faint:${scheme.faint};--paper:${scheme.paper};--edge:${scheme.edge}`;

const STYLE = `
:root{${colours(LIGHT)}}
@media (prefers-color-scheme:dark){:root{${colours(DARK)}}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:56rem;padding:1.5rem 1rem 3rem;background:var(--paper);color:var(--ink);font:16px/1.5 system-ui,'DejaVu Sans',Arial,sans-serif}
h1{font-size:1.5rem;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .5rem}
.faint{color:var(--faint);overflow-wrap:anywhere}
.callout{border-left:.35rem solid var(--edge);padding:.5rem .9rem;font-size:1.1rem}
.callout.good{border-color:#2a9d78}.callout.bad{border-color:#d1495b}.callout.unsure{border-color:#c2a000}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.5rem 0}
th,td{padding:.3rem 1.2rem .3rem 0;border-bottom:1px solid var(--edge);text-align:left;vertical-align:top}
.number{text-align:right;font-variant-numeric:tabular-nums}.number,.word{white-space:nowrap}
figure{margin:1rem 0}figure svg{max-width:100%;height:auto}figcaption{color:var(--faint);font-size:.9rem}
footer{margin-top:3rem;font-size:.85rem}
@media print{body{max-width:none}}
`;
