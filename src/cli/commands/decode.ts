import { DxpuError } from '#base/errors';
import { Tlp } from '#pcie/tlp';
import { decodeTlp, TLP_DECODE_NAMES, TlpDecode } from '#pcie/tlp-codec';
import { tlpToJson, tlpToLine } from '#pcie/tlp-text';
import { type OutputFormat, printJson, printLine, printNote } from '../output.ts';
import { type SourceItem, TlpSource } from '../tlp-source.ts';

/**
 * A line a TLP. What cannot be decoded is named on stderr with its place, and the rest goes on; the
 * exit status is then 1.
 */
export async function decode(
  file: string,
  options: { readonly output: OutputFormat },
): Promise<void> {
  const tlp = new Tlp();
  let firstTimeNs: bigint | undefined;
  let wrong = 0;
  for await (const item of new TlpSource(file).items()) {
    const problem = item.error ?? decodeItem(item, tlp);
    if (problem !== undefined) {
      wrong++;
      report(item, problem, options.output);
      continue;
    }
    firstTimeNs ??= item.timeNs;
    if (options.output === 'json') printJson(jsonOf(item, tlp));
    else printLine(`${prefixOf(item, firstTimeNs)}${tlpToLine(tlp)}`);
  }
  if (wrong > 0) process.exitCode = 1;
}

function decodeItem(item: SourceItem, into: Tlp): string | undefined {
  const bytes = item.tlp ?? new Uint8Array(0);
  const result = decodeTlp(bytes, 0, bytes.length, into);
  return result === TlpDecode.OK ? undefined : decodeProblem(result);
}

/** `MALFORMED_LENGTH` as `malformed TLP: length`. */
export function decodeProblem(result: TlpDecode): string {
  const words = (TLP_DECODE_NAMES[result] ?? 'UNKNOWN').toLowerCase().split('_');
  const [first = '', ...rest] = words;
  return `${first === 'bad' ? 'bad' : `${first} TLP:`} ${rest.join(' ')}`;
}

function report(item: SourceItem, problem: string, output: OutputFormat): void {
  const { place, number } = item;
  const error = new DxpuError('invalid_argument', `${place} ${number}: ${problem}`, {
    details: { [place]: number },
  });
  const { code, message, details } = error;
  printNote(
    output === 'json' ? JSON.stringify({ error: { code, message, details } }) : `dxpu: ${message}`,
  );
}

function jsonOf(item: SourceItem, tlp: Tlp): object {
  const fields = {
    ...tlpToJson(tlp),
    hex: Buffer.from(item.tlp ?? new Uint8Array(0)).toString('hex'),
  };
  if (item.timeNs === undefined) return fields;
  return { timeNs: item.timeNs.toString(), slot: item.slot, direction: item.direction, ...fields };
}

/** Time since the first packet, direction and slot; nothing for a text. */
function prefixOf(item: SourceItem, firstTimeNs: bigint | undefined): string {
  if (item.timeNs === undefined || firstTimeNs === undefined) return '';
  const us = Number(item.timeNs - firstTimeNs) / 1e3;
  return `${us.toFixed(3).padStart(14)} us  slot ${item.slot}  ${(item.direction ?? '').padEnd(4)}  `;
}
