import { type OutputFormat, printJson, printLine } from '../output.ts';
import { allStatus, type ProcessSelection } from '../status-report.ts';
import { statusText, tableText } from '../status-text.ts';

type StatusOptions = ProcessSelection & { readonly output: OutputFormat };

export async function status(options: StatusOptions): Promise<void> {
  const all = await allStatus(options);
  if (options.output === 'json') {
    printJson({ processes: all });
    return;
  }
  printLine(all.map((one) => statusText(one)).join('\n\n'));
}

export async function tables(options: StatusOptions): Promise<void> {
  const all = await allStatus(options);
  if (options.output === 'json') {
    printJson({ tables: all.map(({ kind, id, table }) => ({ kind, id, rows: table })) });
    return;
  }
  printLine(all.map((one) => `${one.kind} ${one.id}\n${tableText(one)}`).join('\n\n'));
}
