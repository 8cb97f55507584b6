/** Pictures of what decides whether a pool saves anything: waits by overhead, and money. */
import { appendTo } from '#base/append-to';
import { barPlot, linePlot, type LineSeries } from '#report/plot';
import { labelOf, type RunGroup, variedOf } from './answer-words.ts';
import { banded, S_PER_H } from './over-time.ts';
import type { FewestRow } from './result.ts';
import { spreadOf } from './statistics.ts';

/** The mean wait against the overhead, where it was swept. Dashed: servers, which have none. */
export function waitPicture(groups: readonly RunGroup[], title: string): string[] {
  const pools = new Map<string, RunGroup[]>();
  for (const group of groups.filter(({ design }) => design === 'pool')) {
    const { overheadPct: _, ...others } = group.setting;
    appendTo(pools, JSON.stringify([group.policy, others]), group);
  }
  const swept = groups.flatMap(({ setting: { overheadPct } }) =>
    overheadPct === undefined ? [] : [Number(overheadPct)],
  );
  const [least, most] = [Math.min(...swept), Math.max(...swept)];
  if (!(most > least)) return [];
  const varied = variedOf(groups).filter((name) => name !== 'overheadPct');
  const point = ({ runs }: RunGroup, x: number) =>
    banded(x, spreadOf(runs.map(({ timed }) => (timed?.waitMeanS ?? 0) / S_PER_H)));
  const series: LineSeries[] = [
    ...groups
      .filter(({ design }) => design === 'server')
      .map((group) => ({
        name: labelOf(group, varied),
        dashed: true,
        points: [point(group, least), point(group, most)],
      })),
    ...[...pools.values()].flatMap((own) => {
      const [first] = own;
      if (first === undefined) return [];
      const points = own.map((group) => point(group, Number(group.setting['overheadPct'])));
      return [{ name: labelOf(first, varied), points: points.toSorted((a, b) => a.x - b.x) }];
    }),
  ];
  return [
    linePlot({
      title,
      description: series
        .map(({ name, points }) => `${name}: ${(points.at(-1)?.y ?? 0).toFixed(1)} h at the end.`)
        .join(' '),
      x: { label: 'jobs take so many % longer in the pool' },
      y: { label: 'mean wait, hours; band: one standard deviation over seeds' },
      series,
    }),
  ];
}

/** What the fewest hardware costs, of rows with prices. */
export function costPicture(rows: readonly FewestRow[], title: string): string[] {
  const varied = variedOf(rows);
  const priced = rows.flatMap(({ cost, ...row }) => (cost === undefined ? [] : [{ row, cost }]));
  if (priced.length === 0) return [];
  return [
    barPlot({
      title,
      description: priced
        .map(({ row, cost }) => `${labelOf(row, varied)}: ${cost.total}.`)
        .join(' '),
      x: { label: 'money, in the currency of the prices' },
      bars: priced.map(({ row, cost }) => ({
        label: labelOf(row, varied),
        parts: [
          { name: 'GPUs', value: cost.gpus },
          { name: 'servers or hosts', value: cost.servers },
          { name: 'boxes', value: cost.boxes },
          { name: 'ports', value: cost.ports },
        ],
      })),
    }),
  ];
}
