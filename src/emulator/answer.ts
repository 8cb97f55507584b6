/**
 * What an emulation answers, as the schema that machines read (`dxpu.emulate/1`): one object for each
 * trace and link, or one for a microbenchmark; `kind` tells them apart. Times are nanoseconds, rates GB/s
 * (10^9), shares percent.
 *
 * Changes that only add fields keep the number; all others raise it.
 */
import { z } from 'zod';
import { linkSchema } from '#report/link-figures';
import { TRACE_FORMATS } from '#trace/timeline';

export const EMULATE_SCHEMA = 'dxpu.emulate/1';

const ns = z.number();
const count = z.int().min(0);
const percent = z.number();
const schema = z.literal(EMULATE_SCHEMA);

const linkFigures = linkSchema.extend({ rcbBytes: count });

const deviceFigures = z.object({
  prefetchCommands: count.describe('Commands it fetches ahead.'),
  fetchCommands: count.describe('Commands that one fetch brings at most.'),
  fetchesInFlight: count.describe('Fetches of a stream under way at once.'),
});

const directionCounts = z
  .object({
    tlps: z.record(z.string(), count).describe('By kind, as the specification names it.'),
    total: count,
    tlpBytes: count.describe('Of the TLPs, headers included, framing not.'),
    payloadBytes: count,
  })
  .describe('TLPs that passed one by one, without those of copies in bulk.');

const runAnswer = z.object({
  spanNs: ns.describe('From the beginning to the end of the last call or command.'),
  originNs: ns.describe('When it began, on the clock that a capture has its times from.'),
  down: directionCounts.describe('To the device.'),
  up: directionCounts.describe('From the device.'),
  downOccupancyPct: percent.describe("Of the device's link, copies in bulk included."),
  upOccupancyPct: percent,
  meanTags: z.number().describe('Reads outstanding, while TLPs pass one by one.'),
  mostTags: count,
  networkDownPct: percent
    .nullable()
    .describe('Of the network, without copies in bulk; null natively, or where nothing limits it.'),
  networkUpPct: percent.nullable(),
});

const estimate = percent.nullable().describe('Overhead; null where there is no such estimate.');

export const traceAnswer = z.object({
  schema,
  kind: z.literal('trace'),
  trace: z.string().describe('The file as the user named it.'),
  format: z.enum(TRACE_FORMATS),
  gpus: z.array(z.string()),
  link: linkFigures,
  device: deviceFigures,
  seed: count.describe('Of the virtual network.'),
  wholeCopies: z.boolean().describe('Whether long copies went TLP by TLP to their end.'),
  budgetPct: percent.describe('Overhead that is accepted.'),
  within: z
    .enum(['yes', 'no', 'unsure'])
    .describe('Whether the emulated overhead is at most that; unsure where the native run is off.'),
  recordedSpanNs: ns,
  nativeErrorPct: percent.describe('Native emulation against the record.'),
  estimates: z.object({
    additiveOverheadPct: estimate,
    replayOverheadPct: estimate,
    emulatedOverheadPct: percent.describe('Pooled against native span, both emulated.'),
  }),
  native: runAnswer,
  pooled: runAnswer,
  bulk: z
    .object({ htodBytes: count, dtohBytes: count })
    .describe('Bytes of copies that were advanced in bulk once they were steady.'),
  curve: z
    .array(z.object({ rttNs: ns, additiveOverheadPct: estimate, replayOverheadPct: estimate }))
    .optional()
    .describe('The two estimates at other whole round trips; there where something is drawn.'),
  warnings: z.array(z.string()),
});

const row = {
  rttNs: ns.describe('Whole round trip of a small DMA read.'),
  isNative: z.boolean().describe('The device on its own host: no proxies, no network.'),
};
const bench = { schema, link: linkFigures, device: deviceFigures };

const bandwidthAnswer = z.object({
  ...bench,
  kind: z.literal('bandwidth'),
  rows: z.array(
    z.object({
      ...row,
      bytes: count.describe('Of one blocking copy.'),
      htodGbytesPerS: z.number(),
      dtohGbytesPerS: z.number(),
    }),
  ),
});
const latencyAnswer = z.object({
  ...bench,
  kind: z.literal('latency'),
  rows: z.array(
    z.object({
      ...row,
      launchAndWaitNs: ns.describe('To launch an empty kernel and wait for it.'),
    }),
  ),
});
const launchRateAnswer = z.object({
  ...bench,
  kind: z.literal('launch-rate'),
  rows: z.array(
    z.object({
      ...row,
      launchesPerS: z.number().describe('Empty kernels from a queue that is never empty.'),
    }),
  ),
});

export const microbenchAnswer = z.discriminatedUnion('kind', [
  bandwidthAnswer,
  latencyAnswer,
  launchRateAnswer,
]);
export const emulateAnswer = z.discriminatedUnion('kind', [traceAnswer, microbenchAnswer]);

export type TraceAnswer = z.infer<typeof traceAnswer>;
export type RunAnswer = z.infer<typeof runAnswer>;
export type DeviceFigures = z.infer<typeof deviceFigures>;
export type MicrobenchAnswer = z.infer<typeof microbenchAnswer>;
export type BandwidthRow = z.infer<typeof bandwidthAnswer>['rows'][number];
