/** A link profile in a file, YAML or JSON, as `dxpu predict --link FILE` takes it. */
import { z } from 'zod';
import { linkProfileNames } from '#pcie/link-profile';
import { ConfigFile, type ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';
import { complaint, type LinkInput, profileOf } from './link-input.ts';
import { parseRate } from './quantity.ts';

/** A rate, or `none` where no network limits. Gb/s. */
const network = z
  .string()
  .transform(schema.guarded((text) => (text === 'none' ? Infinity : parseRate(text) / 1e9)));

export const linkFileSchema = schema.fields({
  name: schema.name.optional(),
  extends: z.enum(linkProfileNames()).optional(),
  nativeRtt: schema.duration.optional(),
  addedRtt: schema.duration.optional(),
  rtt: schema.duration.optional(),
  tags: schema.whole(1, 1024).optional(),
  mrrs: schema.size.optional(),
  mps: schema.size.optional(),
  rcb: schema.size.optional(),
  generation: schema.whole(1, 6).optional(),
  lanes: schema.whole(1, 32).optional(),
  network: network.optional(),
  networkOverhead: schema.size.optional(),
});

type FileField = keyof z.infer<typeof linkFileSchema>;

/** The field of the profile behind each field of the file. */
const PROFILE_FIELDS: Readonly<Record<FileField, keyof LinkInput>> = {
  name: 'name',
  extends: 'extends',
  nativeRtt: 'nativeRttNs',
  addedRtt: 'addedRttNs',
  rtt: 'rttNs',
  tags: 'tags',
  mrrs: 'mrrsBytes',
  mps: 'mpsBytes',
  rcb: 'rcbBytes',
  generation: 'generation',
  lanes: 'lanes',
  network: 'networkGbps',
  networkOverhead: 'networkOverheadBytes',
};

/** What a file says. Fails with a `DxpuError` that names file, line and field of each mistake. */
export function readLinkFile(file: string): LinkInput {
  const config = new ConfigFile(file);
  const fields = config.parse(linkFileSchema);
  if (fields.rtt !== undefined && fields.addedRtt !== undefined) {
    const message = 'stands beside addedRtt: give one of them';
    throw config.error([{ path: ['rtt'], message, atKey: true }]);
  }
  const input: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(fields)) {
    if (value !== undefined) input[PROFILE_FIELDS[field as FileField]] = value;
  }
  try {
    profileOf(input as LinkInput);
  } catch (error) {
    throw config.error([problemOf(error)]);
  }
  return input as LinkInput;
}

function problemOf(error: unknown): ConfigProblem {
  const { field, text } = complaint(error);
  const names = Object.entries(PROFILE_FIELDS);
  const name = names.find(([, profileField]) => profileField === field)?.[0] ?? field;
  return { path: [name], message: text };
}
