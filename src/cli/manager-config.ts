/** The configuration of `dxpu manager`. */
import { z } from 'zod';
import type { CredentialFiles } from '#identity/tls-identity';
import { DEFAULT_TIMEOUTS, type PoolTimeouts } from '#manager/domain/pool-options';
import { ConfigFile, type ConfigProblem } from './config-file.ts';
import * as schema from './config-schema.ts';

/** In ns. At least a step of the timers, and less than they can count. */
const span = schema.duration.refine(
  (ns) => ns >= 1e6 && ns <= 1e18,
  'must be from 1ms to 1000000000s',
);

/** As `PoolTimeouts` has them, without the unit. */
const timeouts = schema.fields({
  reserved: span.optional(),
  programming: span.optional(),
  attaching: span.optional(),
  draining: span.optional(),
  detaching: span.optional(),
  scrubbing: span.optional(),
  firstRetry: span.optional(),
  lastRetry: span.optional(),
  keepRequests: span.optional(),
});

export const managerSchema = schema.fields({
  manager: schema.name,
  certificates: schema.certificates,
  listen: z.array(schema.endpoint).min(1, 'needs at least one address to listen on'),
  store: z.string().min(1, 'must name a folder').default('store'),
  timeouts: timeouts.default({}),
});

export interface ManagerConfig {
  readonly id: string;
  readonly credentialFiles: CredentialFiles;
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  /** The folder of `pool.db`. */
  readonly store: string;
  readonly timeouts: Partial<PoolTimeouts>;
}

/** Reads and checks a whole file. Fails with a `DxpuError` that names every problem and its place. */
export function readManagerConfig(file: string): ManagerConfig {
  const source = new ConfigFile(file);
  const parsed = source.parse(managerSchema);
  const spans = timeoutsOf(parsed.timeouts);
  const problems: ConfigProblem[] = [];
  const { firstRetryMs, lastRetryMs } = { ...DEFAULT_TIMEOUTS, ...spans };
  if (firstRetryMs > lastRetryMs) {
    problems.push({
      path: ['timeouts', parsed.timeouts.firstRetry === undefined ? 'lastRetry' : 'firstRetry'],
      message: `firstRetry, ${firstRetryMs} ms, must not be above lastRetry, ${lastRetryMs} ms`,
    });
  }
  for (const [index, one] of parsed.listen.entries()) {
    const other = parsed.listen.findIndex(
      ({ host, port }) => port !== 0 && port === one.port && host === one.host,
    );
    if (other === -1 || other === index) continue;
    problems.push({ path: ['listen', index], message: `is the same as listen[${other}]` });
  }
  if (problems.length > 0) throw source.error(problems);
  return {
    id: parsed.manager,
    credentialFiles: source.credentialFiles(parsed.certificates),
    listen: parsed.listen,
    store: source.pathOf(parsed.store),
    timeouts: spans,
  };
}

function timeoutsOf(spans: z.infer<typeof timeouts>): Partial<PoolTimeouts> {
  return Object.fromEntries(
    Object.entries(spans).map(([name, ns]) => [`${name}Ms`, (ns ?? 0) / 1e6]),
  );
}
