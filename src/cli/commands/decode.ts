import { DxpuError } from '#base/errors';
import { Tlp, TlpKind } from '#pcie/tlp';
import { decodeTlp, TlpDecode } from '#pcie/tlp-codec';
import { encodedStatus, faultText, tlpToJson, tlpToLine } from '#pcie/tlp-text';
import { LineWriter, type OutputFormat, printNote } from '../output.ts';
import { type SourceItem, TlpSource } from '../tlp-source.ts';

/** What comes after them is counted, not shown. */
const MAX_SHOWN_PROBLEMS = 100;
const NO_BYTES = new Uint8Array(0);

/**
 * A line a TLP. What cannot be decoded is named on stderr with its place, and the rest goes on; the
 * exit status is then 1.
 */
export async function decode(
  file: string,
  options: { readonly output: OutputFormat },
): Promise<void> {
  const json = options.output !== 'table';
  // JSON lines; as YAML the items of one list.
  const mark = options.output === 'yaml' ? '- ' : '';
  const tlp = new Tlp();
  const out = new LineWriter(process.stdout);
  const source = new TlpSource(file);
  let firstTimeNs: bigint | undefined;
  let right = 0;
  let wrong = 0;
  for await (const items of source.batches()) {
    for (const item of items) {
      const problem = item.error ?? decodeItem(item, tlp);
      if (problem !== undefined) {
        wrong++;
        if (wrong <= MAX_SHOWN_PROBLEMS) report(item, problem, json);
        continue;
      }
      right++;
      firstTimeNs ??= item.timeNs;
      out.line(
        json
          ? `${mark}${JSON.stringify(jsonOf(item, tlp))}`
          : `${prefixOf(item, firstTimeNs)}${tlpToLine(tlp, item.tlp)}`,
      );
      if (out.isFull) await out.flush();
    }
    // A pipe that is slow to come in is shown as it does.
    await out.flush();
  }
  if (wrong > MAX_SHOWN_PROBLEMS) {
    const more = wrong - MAX_SHOWN_PROBLEMS;
    note('data_loss', `… and ${more} more that cannot be decoded`, { more }, json);
  }
  if (source.lost > 0) {
    const text = `${source.name} lacks ${source.lost} TLPs that the capture lost`;
    note('data_loss', text, { lost: source.lost }, json);
  }
  if (wrong > 0) process.exitCode = 1;
  if (right + wrong === 0) {
    throw new DxpuError('invalid_argument', `${source.name} holds no TLP`);
  }
}

function decodeItem(item: SourceItem, into: Tlp): string | undefined {
  const bytes = item.tlp ?? NO_BYTES;
  const result = decodeTlp(bytes, 0, bytes.length, into);
  return result === TlpDecode.OK ? undefined : faultText(result, into);
}

function report({ place, number }: SourceItem, problem: string, json: boolean): void {
  note('invalid_argument', `${place} ${number}: ${problem}`, { [place]: number }, json);
}

function note(code: string, message: string, details: object, json: boolean): void {
  printNote(json ? JSON.stringify({ error: { code, message, details } }) : `dxpu: ${message}`);
}

function jsonOf(item: SourceItem, tlp: Tlp): object {
  const status =
    tlp.kind === TlpKind.Cpl || tlp.kind === TlpKind.CplD ? encodedStatus(item.tlp) : undefined;
  const fields = {
    ...tlpToJson(tlp),
    // Taken as UR, as the standard asks for what it reserves.
    ...(status === undefined || status === tlp.status ? {} : { reservedStatus: status }),
    hex: Buffer.from(item.tlp ?? NO_BYTES).toString('hex'),
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
