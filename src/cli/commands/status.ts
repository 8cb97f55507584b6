import type { DxpuError } from '#base/errors';
import { combined } from '../control-client.ts';
import { type OutputFormat, printData, printLine } from '../output.ts';
import { allStatus, type ProcessSelection } from '../status-report.ts';
import { statusText, tableText } from '../status-text.ts';

type StatusOptions = ProcessSelection & { readonly output: OutputFormat };

export async function status(options: StatusOptions): Promise<void> {
  const { statuses, problems } = await allStatus(options);
  if (options.output !== 'table') await printData({ processes: statuses }, options.output);
  else if (statuses.length > 0) printLine(statuses.map((one) => statusText(one)).join('\n\n'));
  failFor(problems);
}

export async function tables(options: StatusOptions): Promise<void> {
  const { statuses, problems } = await allStatus(options);
  if (options.output !== 'table') {
    await printData(
      { tables: statuses.map(({ kind, id, table }) => ({ kind, id, rows: table })) },
      options.output,
    );
  } else if (statuses.length > 0) {
    const texts = statuses.map((one) => `${one.kind} ${one.id}\n${tableText(one)}`);
    printLine(texts.join('\n\n'));
  }
  failFor(problems);
}

/** What could be had has been printed; the rest is an error. */
function failFor(problems: readonly DxpuError[]): void {
  const error = combined(problems);
  if (error !== undefined) throw error;
}
