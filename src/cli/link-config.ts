/** The `link` part of a configuration: the few options of a link that are worth setting. */
import type { z } from 'zod';
import type { LinkOptions } from '#fabric/link-options';
import * as schema from './config-schema.ts';

export const linkFields = schema
  .fields({
    resumeWindow: schema.duration.optional(),
    maxFrame: schema.powerOfTwo(8192, 2 ** 20).optional(),
    replayBuffer: schema.size.optional(),
  })
  .superRefine((link, context) => {
    const frame = link.maxFrame ?? 32 * 1024;
    if (link.replayBuffer !== undefined && link.replayBuffer < 4 * frame) {
      context.addIssue({
        code: 'custom',
        path: ['replayBuffer'],
        message: `must hold four frames of maxFrame, ${4 * frame} bytes`,
      });
    }
    if (link.resumeWindow !== undefined && link.resumeWindow >= 4e9) {
      context.addIssue({
        code: 'custom',
        path: ['resumeWindow'],
        message: 'must be below 4 s, the completion timeout of the functions',
      });
    }
  })
  .default({});

/**
 * While frames go both ways each carries the acknowledgement of those before. The timer is for when they do not;
 * a shorter one would fire a thousand times a second for nothing, between a request and its answer.
 */
const ACK_DELAY_NS = 5e6;

export function linkOptionsOf(link: z.infer<typeof linkFields>): Partial<LinkOptions> {
  return {
    ackDelayNs: ACK_DELAY_NS,
    ...(link.resumeWindow === undefined ? {} : { resumeWindowNs: link.resumeWindow }),
    ...(link.maxFrame === undefined ? {} : { maxFrameBytes: link.maxFrame }),
    ...(link.replayBuffer === undefined ? {} : { replayBytes: link.replayBuffer }),
  };
}
