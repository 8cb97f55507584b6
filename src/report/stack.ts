/** Several pictures of this layer as one, below each other. */
import { escapeMarkup } from './markup.ts';

/** `pictures` are SVGs of `plot.ts`, at least one. */
export function stacked(title: string, pictures: readonly string[]): string {
  let height = 0;
  let width = 0;
  const placed = pictures.map((picture) => {
    const size = /^<svg [^>]*? width="([\d.]+)" height="([\d.]+)"/.exec(picture);
    const at = height;
    width = Math.max(width, Number(size?.[1]));
    height += Number(size?.[2]);
    return picture.replace('<svg ', `<svg y="${at}" `).trimEnd();
  });
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" ` +
    `height="${height}"><title>${escapeMarkup(title)}</title>${placed.join('')}</svg>\n`
  );
}
