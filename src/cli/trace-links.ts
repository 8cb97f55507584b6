/** The links of `dxpu predict` and `dxpu emulate`: named ones and files, with what options set over them. */
import { existsSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { shortPath } from '#base/short-path';
import { nearestName } from '#placement/nearest-name';
import {
  DEFAULT_LINK_PROFILE_NAME,
  type LinkProfile,
  linkProfileNames,
  namedLinkProfile,
} from '#pcie/link-profile';
import { complaint, type LinkInput, merged, profileOf } from './link-input.ts';
import { UsageError } from './output.ts';

/** Options that say what the link is; times in ns, sizes in bytes, the rate in bits a second. */
export interface LinkOptions {
  readonly link?: readonly string[];
  readonly rtt?: number;
  readonly addedRtt?: number;
  readonly nativeRtt?: number;
  readonly tags?: number;
  readonly mrrs?: number;
  readonly mps?: number;
  readonly gen?: number;
  readonly lanes?: number;
  readonly network?: number;
}

/** The option behind each field of a profile. */
const OPTIONS: Readonly<Record<string, string>> = {
  rttNs: '--rtt',
  addedRttNs: '--added-rtt',
  nativeRttNs: '--native-rtt',
  tags: '--tags',
  mrrsBytes: '--mrrs',
  mpsBytes: '--mps',
  generation: '--gen',
  lanes: '--lanes',
  networkGbps: '--network',
};

/**
 * A profile for each `--link`, in their order, or the usual one; names are unique. Throws `UsageError`
 * for an option that is wrong, `DxpuError` for a file or a name.
 */
export async function linksOf(options: LinkOptions): Promise<LinkProfile[]> {
  if (options.rtt !== undefined && options.addedRtt !== undefined) {
    throw new UsageError('--rtt and --added-rtt exclude each other: --rtt is the whole round trip');
  }
  const over = inputOf(options);
  const isChanged = Object.keys(over).length > 0;
  const named = options.link ?? [];
  if (named.length === 0) {
    const usual = { extends: DEFAULT_LINK_PROFILE_NAME };
    return [isChanged ? changed({ ...usual, name: 'custom' }, over) : profileOf(usual)];
  }
  const links: LinkProfile[] = [];
  for (const word of named) {
    const under = await inputNamed(word);
    const name = `${under.name} changed`;
    links.push(isChanged ? changed({ ...under, name }, over) : profileOf(under));
  }
  return withUniqueNames(links);
}

function inputOf(options: LinkOptions): LinkInput {
  const { rtt, addedRtt, nativeRtt, tags, mrrs, mps, gen, lanes, network } = options;
  return {
    ...(rtt === undefined ? {} : { rttNs: rtt }),
    ...(addedRtt === undefined ? {} : { addedRttNs: addedRtt }),
    ...(nativeRtt === undefined ? {} : { nativeRttNs: nativeRtt }),
    ...(tags === undefined ? {} : { tags }),
    ...(mrrs === undefined ? {} : { mrrsBytes: mrrs }),
    ...(mps === undefined ? {} : { mpsBytes: mps }),
    ...(gen === undefined ? {} : { generation: gen }),
    ...(lanes === undefined ? {} : { lanes }),
    ...(network === undefined ? {} : { networkGbps: network / 1e9 }),
  };
}

function changed(under: LinkInput, over: LinkInput): LinkProfile {
  try {
    return profileOf(merged(under, over));
  } catch (error) {
    const { field, text } = complaint(error);
    throw new UsageError(`${OPTIONS[field] ?? field} ${text}`);
  }
}

async function inputNamed(word: string): Promise<LinkInput & { readonly name: string }> {
  const names = linkProfileNames();
  if (names.includes(word)) return { extends: word, name: namedLinkProfile(word).name };
  if (existsSync(word)) {
    // With all that checks configurations; rarely asked for.
    const { readLinkFile } = await import('./link-file.ts');
    const { name = path.basename(word).replace(/\.(?:ya?ml|json)$/, ''), ...input } =
      readLinkFile(word);
    return { ...input, name };
  }
  const near = nearestName(word, names);
  const hint =
    near === undefined
      ? `choose one of ${names.join(', ')}, or name a file`
      : `did you mean ${near}?`;
  throw new DxpuError(
    'not_found',
    `--link ${shortPath(word)}: there is no link profile of that name, and no such file: ${hint}`,
    { details: { field: 'link', value: word, names } },
  );
}

function withUniqueNames(links: readonly LinkProfile[]): LinkProfile[] {
  const seen = new Map<string, number>();
  return links.map((link) => {
    const count = (seen.get(link.name) ?? 0) + 1;
    seen.set(link.name, count);
    return count === 1 ? link : { ...link, name: `${link.name} (${count})` };
  });
}
