/** What the configurations have in common: fields, with messages that say the way out. */
import { z } from 'zod';
import { parseEndpoint } from '#agent/daemon/endpoint';
import { DxpuError } from '#base/errors';
import { isIdentityName } from '#identity/identity';
import { changesBetween } from '#placement/nearest-name';
import { shortened } from './config-file.ts';
import { parseDuration, parseSize } from './quantity.ts';

const MIB = 2 ** 20;

/** A group of fields in which a mistyped name is an error that names the likely one. */
export function fields<S extends z.ZodRawShape>(shape: S): z.ZodObject<S, z.core.$strict> {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: (issue) => {
      if (issue.code !== 'unrecognized_keys') return undefined;
      const [key = ''] = issue.keys as string[];
      const near = nearest(key, known);
      return near === undefined
        ? `unknown field; known here: ${known.join(', ')}`
        : `unknown field; did you mean ${near}?`;
    },
  });
}

/** The word of `known` at most two changes of a letter away from `word`, if any. */
function nearest(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let bestChanges = 3;
  for (const candidate of known) {
    const changes = changesBetween(word.toLowerCase(), candidate.toLowerCase());
    if (changes < bestChanges) {
      best = candidate;
      bestChanges = changes;
    }
  }
  return best;
}

/** The id of a host or box, or the name of a path. */
export const name = z
  .string()
  .refine((id) => isIdentityName(id), 'must be 1 to 63 letters, digits, dots, dashes, underscores');

export function whole(low: number, high: number): z.ZodType<number> {
  return z
    .number()
    .refine(
      (value) => Number.isSafeInteger(value) && value >= low && value <= high,
      `must be a whole number from ${low} to ${high}`,
    );
}

/** A power of two in [low, high]. */
export function powerOfTwo(low: number, high: number): z.ZodType<number> {
  return z
    .number()
    .refine(
      (value) => value >= low && value <= high && Number.isInteger(Math.log2(value)),
      `must be a power of two from ${low} to ${high}`,
    );
}

/** Bytes: a number, or a text such as 64MiB. */
export const size = quantity(parseSize);

/** Nanoseconds of a text such as 50us. */
export const duration = z.string().transform(guarded(parseDuration));

function quantity(parse: (text: string) => number): z.ZodType<number> {
  return z
    .union([z.number(), z.string()], { error: 'must be a size such as 64MiB' })
    .transform(guarded((value: number | string) => parse(String(value))));
}

/** A bus address: 0 to 2^53 − 1. */
export const address = whole(0, Number.MAX_SAFE_INTEGER);

export const generation = whole(1, Number.MAX_SAFE_INTEGER);

const window = fields({ base: address, size }).superRefine((value, context) => {
  for (const part of ['base', 'size'] as const) {
    if (value[part] % MIB !== 0) {
      context.addIssue({
        code: 'custom',
        path: [part],
        message: `must be 1 MiB aligned; the next is 0x${(Math.ceil(value[part] / MIB) * MIB).toString(16)}`,
      });
    }
  }
  if (value.size === 0) {
    context.addIssue({ code: 'custom', path: ['size'], message: 'must be at least 1 MiB' });
  }
  if (!Number.isSafeInteger(value.base + value.size)) {
    context.addIssue({ code: 'custom', path: ['size'], message: 'the window ends above 2^53' });
  }
});

/** A window of a virtual port, anywhere in the address space. */
export const window64 = window;

/** A window of a virtual port below 4 GiB. */
export const window32 = window.superRefine((value, context) => {
  if (value.base + value.size > 2 ** 32) {
    context.addIssue({
      code: 'custom',
      path: ['size'],
      message: 'the non-prefetchable window must end below 4 GiB',
    });
  }
});

/** Paths of PEM files, from the folder of the configuration. */
export const certificates = fields({ ca: z.string(), cert: z.string(), key: z.string() });

/** `address:port`, IPv6 addresses in brackets; port 0 takes a free one. */
export const endpoint = z.string().transform(guarded(parseEndpoint));

/** As `endpoint`, of somebody to connect to. */
export const peerEndpoint = endpoint.refine(
  ({ port }) => port !== 0,
  'port 0 leads nowhere: write the port the box listens on',
);

/** Turns a parser's error into the message of the field. */
export function guarded<I, O>(parse: (value: I) => O): (value: I, context: z.RefinementCtx) => O {
  return (value, context) => {
    try {
      return parse(value);
    } catch (error) {
      const { message } = DxpuError.from(error);
      const quoted = JSON.stringify(value);
      context.addIssue({ code: 'custom', message: message.replace(quoted, shortened(quoted)) });
      return z.NEVER;
    }
  };
}
