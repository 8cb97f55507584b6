/** What `dxpu start` shows of a pool that works: a job on each binding, tables, paths, round trips. */
import { formatBdf } from '#base/units';
import { type Binding, BindingSchema, PathSchema } from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { RunResult } from './accel-jobs.ts';
import { callProcess, findProcess } from './control-client.ts';
import type { EchoPorts } from './echo-server.ts';
import { tableOf } from './list-printer.ts';
import { type OutputFormat, printData, printLine } from './output.ts';
import { BINDINGS, PATHS } from './pool-columns.ts';
import type { PoolConnection } from './pool-connection.ts';
import { all, pathPages } from './pool-lists.ts';
import { plainOf } from './pool-plain.ts';
import { formatDuration } from './quantity.ts';
import type { RoundTrips } from './round-trip.ts';
import type { KnownProcess } from './state-folder.ts';
import { allStatus } from './status-report.ts';
import { indent, tableText } from './status-text.ts';

const ROUND_TRIP_SAMPLES = 1000;

export interface ProofOptions {
  /** Rows and columns of the matrices. */
  readonly size: number;
  readonly output: OutputFormat;
}

export async function prove(
  options: ProofOptions,
  folder: string,
  pool: PoolConnection,
  bindings: readonly Binding[],
  say: (line: string) => void,
): Promise<void> {
  const runs: (RunResult & { readonly binding: string })[] = [];
  for (const binding of bindings) {
    const result = await multiply(folder, binding, options.size);
    runs.push({ ...result, binding: binding.id });
    const n = options.size;
    say(
      `sgemm ${n}x${n}x${n} on ${formatBdf(result.bdf)} of host ${binding.host}: all ` +
        `${result.elements} elements equal a plain computation, ` +
        `${formatDuration(result.timesNs[0] ?? 0)} with upload and download`,
    );
  }
  const [first] = bindings;
  const roundTrips = first === undefined ? undefined : await measure(folder, first);
  const paths = await all(pathPages(pool, {}));
  const { statuses } = await allStatus({ state: folder });
  if (options.output !== 'table') {
    const results = {
      folder,
      manager: pool.address,
      bindings: bindings.map((binding) => plainOf(BindingSchema, binding)),
      paths: paths.map((path) => plainOf(PathSchema, path)),
      runs: runs.map((run) => ({ ...run, bdf: formatBdf(run.bdf) })),
      roundTrips,
      processes: statuses,
    };
    await printData(results, options.output);
    return;
  }
  for (const status of statuses) {
    if (status.kind === 'manager') continue;
    printLine(`\nMapping table of ${status.kind} ${status.id}\n${indent(tableText(status))}`);
  }
  printLine(`\nBindings\n${indent(tableOf(BINDINGS.columns, bindings))}`);
  printLine(`\nPaths, as the hosts measure them\n${indent(tableOf(PATHS.columns, paths))}`);
  if (roundTrips !== undefined) printLine(`\n${roundTripText(roundTrips)}`);
}

async function multiply(folder: string, binding: Binding, n: number): Promise<RunResult> {
  const host = await findProcess(folder, `host-${binding.host}`, 'host');
  const { hostSlot: slot } = binding;
  const params = { kernel: 'sgemm', slot, m: n, n, k: n, seed: slot + 1, iterations: 1 };
  return (await callProcess(host, 'run', params)) as RunResult;
}

async function measure(folder: string, binding: Binding): Promise<RoundTrips> {
  const host = await findProcess(folder, `host-${binding.host}`, 'host');
  const box = await findProcess(folder, `box-${binding.box}`, 'box');
  return measureBetween(host, box, binding.hostSlot);
}

function measureBetween(host: KnownProcess, box: KnownProcess, slot: number): Promise<RoundTrips> {
  const done = new AbortController();
  return new Promise((resolve, reject) => {
    // The echo servers live as long as this call.
    callProcess(
      box,
      'echo',
      {},
      {
        signal: done.signal,
        onEvent: (event) => {
          const ports = event as EchoPorts;
          const params = { slot, samples: ROUND_TRIP_SAMPLES, ...ports };
          callProcess(host, 'round-trip', params)
            .then((result) => resolve(result as RoundTrips), reject)
            .finally(() => done.abort());
        },
      },
    ).catch(reject); // Rejects with the abort too, when everything is settled.
  });
}

function roundTripText(trips: RoundTrips): string {
  const line = (name: string, ns: number): string =>
    `  ${name.padEnd(46)} ${formatDuration(ns).padStart(8)}`;
  const { mmioReadNs, tcpEchoNs, tlsEchoNs, echoBytes } = trips;
  return [
    `Round trips, medians of ${trips.samples} taken in turns`,
    line('MMIO read through both proxies over mutual TLS', mmioReadNs),
    line(`raw TLS socket, ${echoBytes} bytes each way`, tlsEchoNs),
    line(`raw TCP socket, ${echoBytes} bytes each way`, tcpEchoNs),
    `  the read takes ${(mmioReadNs / tlsEchoNs).toFixed(2)} times the TLS echo`,
  ].join('\n');
}
