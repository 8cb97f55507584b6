/** The parameters of a link as answers have them: their schema, and from a profile. */
import { z } from 'zod';

const ns = z.number();
const count = z.int().min(0);

/** An answer extends it by what it alone knows of a link. */
export const linkSchema = z.object({
  name: z.string(),
  nativeRttNs: ns,
  addedRttNs: ns,
  rttNs: ns.describe('Native and added.'),
  tags: count,
  mrrsBytes: count,
  mpsBytes: count,
  generation: count,
  lanes: count,
  networkGbps: z.number().nullable().describe('Null: no network, or one that does not limit.'),
  sharing: count.describe('GPUs that share the path, and its rate among them.'),
  recalled: z.array(z.string()).describe('Fields whose value is recalled rather than confirmed.'),
});

export type LinkFigures = z.infer<typeof linkSchema>;

/** Of a `LinkProfile` what people are shown. */
type ShownProfile = Omit<LinkFigures, 'rttNs' | 'networkGbps' | 'sharing' | 'recalled'> & {
  /** Infinity: no network, or one that does not limit. */
  readonly networkGbps: number;
  readonly recalled: readonly string[];
};

/** `sharing`: GPUs that share the path. */
export function linkFigures(link: ShownProfile, sharing: number): LinkFigures {
  return {
    name: link.name,
    nativeRttNs: link.nativeRttNs,
    addedRttNs: link.addedRttNs,
    rttNs: link.nativeRttNs + link.addedRttNs,
    tags: link.tags,
    mrrsBytes: link.mrrsBytes,
    mpsBytes: link.mpsBytes,
    generation: link.generation,
    lanes: link.lanes,
    networkGbps: link.networkGbps === Infinity ? null : link.networkGbps,
    sharing,
    recalled: [...link.recalled],
  };
}
