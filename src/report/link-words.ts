/** A link in words, recalled figures marked with a `*`: the same in every answer. */
import * as figures from './figures.ts';
import { list, type Markup, paragraph, type Section } from './html-page.ts';
import type { LinkFigures } from './link-figures.ts';

/** Stands behind a figure that is recalled, not confirmed. */
const MARK = '*';

/** What the mark means; empty where no link has one. */
export function recalledWords(links: readonly LinkFigures[]): string {
  if (links.every(({ recalled }) => recalled.length === 0)) return '';
  return (
    `${MARK} recalled of the DxPU paper, not confirmed by a source: ` +
    'give your own with --link or the options of the link'
  );
}

/** `text` with the mark where one of `fields` is recalled. */
export function marked(
  link: LinkFigures,
  fields: readonly (keyof LinkFigures)[],
  text: string,
): string {
  return fields.some((field) => link.recalled.includes(field)) ? text + MARK : text;
}

/** The whole round trip. */
export function rttWords(link: LinkFigures): string {
  return marked(link, ['addedRttNs'], figures.duration(link.rttNs));
}

function nativeWords(link: LinkFigures): string {
  return `native ${marked(link, ['nativeRttNs'], figures.duration(link.nativeRttNs))}`;
}

/** All parameters. */
export function linkWords(link: LinkFigures): string {
  const added = marked(link, ['addedRttNs'], figures.duration(link.addedRttNs));
  const trip = `round trip ${rttWords(link)} (${nativeWords(link)} + added ${added})`;
  return [trip, ...parameterWords(link)].join(', ');
}

/** All but the whole round trip, for rows that have one each. */
export function linkWordsWithoutRtt(link: LinkFigures): string {
  return [nativeWords(link), ...parameterWords(link)].join(', ');
}

function parameterWords(link: LinkFigures): string[] {
  const { tags, mrrsBytes, mpsBytes, generation, lanes, networkGbps, sharing } = link;
  const network = (gbps: number): string =>
    `network ${marked(link, ['networkGbps'], `${figures.threeDigits(gbps)} Gb/s`)}`;
  return [
    `${marked(link, ['tags'], figures.count(tags))} ${tags === 1 ? 'tag' : 'tags'}`,
    `MRRS ${marked(link, ['mrrsBytes'], `${mrrsBytes} B`)}`,
    `MPS ${marked(link, ['mpsBytes'], `${mpsBytes} B`)}`,
    marked(link, ['generation', 'lanes'], `gen ${generation} x${lanes}`),
    ...(networkGbps === null ? [] : [network(networkGbps)]),
    ...(sharing === 1 ? [] : [`shared by ${sharing} GPUs`]),
  ];
}

/** At the end of a page: each link in `words`, what else there is to say, and what the mark means. */
export function linksSection<Link extends LinkFigures>(
  links: readonly Link[],
  words: (link: Link) => string,
  more: readonly Markup[] = [],
): Section {
  const recalled = recalledWords(links);
  return {
    heading: links.length === 1 ? 'The link' : 'The links',
    body: [
      list(links.map((link) => `${link.name}: ${words(link)}`)),
      ...more,
      ...(recalled === '' ? [] : [paragraph(recalled)]),
    ],
  };
}
