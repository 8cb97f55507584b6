/**
 * nvprof's list of GPU work as text (`nvprof --print-gpu-trace --csv`): lines of nvprof and of the
 * program, a header, a row of units, a row for each piece of work; more than one such table where several
 * processes were profiled. It has no host side, so that nothing is known of calls and waits.
 */
import { DxpuError } from '#base/errors';
import { lossAtEnd } from './bytes-of-file.ts';
import { copyKind } from './copy-kind.ts';
import { csvFields } from './csv-line.ts';
import { countManagedCopies, countPageFaults } from './managed-memory.ts';
import { nvprofHead, nvprofUnits } from './nvprof-header.ts';
import type { NvprofColumns, NvprofUnits } from './nvprof-header.ts';
import { fileChunks } from './read-options.ts';
import type { ReadOptions } from './read-options.ts';
import { textLines } from './text-lines.ts';
import type { TextLine } from './text-lines.ts';
import { TimelineBuilder } from './timeline-builder.ts';
import { WORK_FLAG, WORK_KIND } from './timeline.ts';
import type { Timeline, WorkKind } from './timeline.ts';
import type { WarningCounts } from './warning-counts.ts';

const RECORD =
  'Record with nvprof --print-gpu-trace --csv --log-file OUT.csv COMMAND, and give OUT.csv';
/** Correlation ids count up in each process on its own. */
const CORRELATIONS = 0x1_0000_0000;
/** nvprof prints six decimals. */
const DECIMAL = 1e-6;

const MEMORY_FLAGS = new Map<string, number>([
  ['Pageable', WORK_FLAG.pageable],
  ['Pinned', WORK_FLAG.pinned],
]);

/** Throws a `DxpuError` for a file without such a table, or with figures but no units. */
export async function readNvprof(file: string, options: ReadOptions = {}): Promise<Timeline> {
  const reader = new NvprofReader(file);
  try {
    for await (const line of textLines(fileChunks(file, options))) reader.take(line);
  } catch (error) {
    const loss = lossAtEnd(error, reader.warnings);
    if (loss !== undefined) reader.cutShort(loss.message);
  }
  return reader.finish();
}

class NvprofReader {
  readonly #file: string;
  readonly #builder = new TimelineBuilder('nvprof');
  #columns: NvprofColumns | undefined;
  #units: NvprofUnits | undefined;
  /** Tables begun, less one. */
  #table = -1;
  #lines = 0;
  readonly #contexts = new Map<number, string>();

  constructor(file: string) {
    this.#file = file;
  }

  take({ text, line, isEnded }: TextLine): void {
    this.#lines = line;
    if (text === '' || text.startsWith('==')) return;
    const fields = csvFields(text);
    const head = fields === undefined ? undefined : nvprofHead(fields);
    if (head?.is === 'gpu-trace') {
      this.#columns = head.columns;
      this.#units = undefined;
      this.#table += 1;
      return;
    }
    if (this.#columns === undefined) {
      if (head?.is === 'api-trace') {
        throw this.#refusal(
          line,
          `this is nvprof's list of API calls, without GPU work. ${RECORD}`,
        );
      }
      if (head?.is === 'summary') {
        throw this.#refusal(line, `this is nvprof's summary, without single events. ${RECORD}`);
      }
      return;
    }
    if (fields?.length !== this.#columns.count) {
      const code = isEnded ? 'malformed-rows' : 'truncated';
      const message = isEnded
        ? 'lines that are no rows of the table were dropped'
        : 'row at the end is cut short and was dropped';
      this.#builder.warnings.count(code, message, { place: `line ${line}` });
      return;
    }
    if (this.#units === undefined) this.#takeUnits(this.#columns, fields, line);
    else this.#takeRow(this.#columns, this.#units, fields);
  }

  get warnings(): WarningCounts {
    return this.#builder.warnings;
  }

  cutShort(message: string): void {
    this.#builder.warnings.count('truncated', `end of the file is missing: ${message}`);
  }

  finish(): Timeline {
    if (this.#units === undefined) {
      const missing = this.#columns === undefined ? 'header' : 'row of units below the header';
      throw this.#refusal(
        Math.max(1, this.#lines),
        `the file ends without the ${missing} of nvprof's list of GPU work. ${RECORD}`,
      );
    }
    return this.#builder.finish();
  }

  #takeUnits(columns: NvprofColumns, fields: readonly string[], line: number): void {
    this.#units = nvprofUnits(columns, fields);
    if (this.#units === undefined) {
      throw this.#refusal(
        line,
        `the row of units (s, ms, us or ns) is missing below nvprof's header, so that no figure has a meaning. ${RECORD}`,
      );
    }
    const stepNs = Math.round(this.#units.startNs * DECIMAL);
    if (stepNs > 1) {
      this.#builder.warnings.count(
        'coarse-times',
        `table gives start times only to the next ${stepNs} ns: work may seem to overlap`,
      );
    }
  }

  #takeRow(columns: NvprofColumns, units: NvprofUnits, fields: readonly string[]): void {
    const { warnings } = this.#builder;
    const field = (column: number): string => fields[column] ?? '';
    const label = field(columns.name);
    const isManaged = label.startsWith('[Unified Memory');
    if (isManaged && !label.includes('Memcpy')) {
      countPageFaults(warnings, 1);
      return;
    }
    if (field(columns.device) === '') {
      warnings.count(
        'host-calls-left-out',
        'API calls were left out: nvprof does not tell which thread made them',
      );
      return;
    }
    const { kind, name, correlation } = workOf(label);
    if (isManaged) countManagedCopies(warnings, 1);
    const memory = kind === WORK_KIND.htod ? columns.sourceMemory : columns.targetMemory;
    const isHostCopy = kind === WORK_KIND.htod || kind === WORK_KIND.dtoh;
    const size = field(columns.size);
    this.#builder.addWork(
      this.#stream(columns, field),
      kind,
      this.#builder.name(name),
      Math.round(figure(field(columns.start)) * units.startNs),
      Math.round(figure(field(columns.duration)) * units.durationNs),
      correlation === 0 ? 0 : correlation + this.#table * CORRELATIONS,
      size === '' ? 0 : Math.round(figure(size) * units.sizeBytes),
      isHostCopy ? (MEMORY_FLAGS.get(field(memory)) ?? 0) : 0,
    );
  }

  #stream(columns: NvprofColumns, field: (column: number) => string): number {
    // "GeForce GTX 950 (0)"
    const [name, digits] = numberAtEnd(field(columns.device), '(', ')');
    const device = Number(digits ?? 0);
    this.#builder.gpu(device, name);
    const context = field(columns.context);
    const first = this.#contexts.get(device) ?? context;
    this.#contexts.set(device, first);
    const others: string[] = [];
    if (this.#table > 0) others.push(`table ${this.#table + 1}`);
    if (context !== first) others.push(`context ${context}`);
    const suffix = others.length === 0 ? '' : ` (${others.join(', ')})`;
    return this.#builder.stream(device, `${field(columns.stream) || '-'}${suffix}`);
  }

  #refusal(line: number, what: string): DxpuError {
    return new DxpuError('invalid_argument', `${this.#file}: line ${line}: ${what}`, {
      details: { file: this.#file, line },
    });
  }
}

/** NaN for anything but a plain number. */
function figure(text: string): number {
  return /^-?\d+(?:\.\d*)?(?:e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
}

/** "[CUDA memcpy HtoD]", "[CUDA memset]", or a kernel's name with the correlation id behind it: "saxpy(float) [17]". */
function workOf(label: string): {
  readonly kind: WorkKind;
  readonly name: string;
  readonly correlation: number;
} {
  const copy = /^\[.*memcpy (\w+)\]$/i.exec(label);
  if (copy !== null) {
    const word = copy[1] ?? '';
    const kind = copyKind(word);
    return kind === undefined
      ? { kind: WORK_KIND.copy, name: 'Memcpy', correlation: 0 }
      : { kind, name: `Memcpy ${word}`, correlation: 0 };
  }
  if (/^\[.*memset\]$/i.test(label))
    return { kind: WORK_KIND.memset, name: 'Memset', correlation: 0 };
  const [name, digits] = numberAtEnd(label, '[', ']');
  return { kind: WORK_KIND.kernel, name, correlation: Number(digits ?? 0) };
}

/** The text before, and the number, where the text ends in a number in brackets. */
function numberAtEnd(text: string, open: string, close: string): [string, string?] {
  const at = text.lastIndexOf(open);
  const digits = text.slice(at + 1, -1);
  return at >= 0 && text.endsWith(close) && /^\d{1,10}$/.test(digits)
    ? [text.slice(0, at).trimEnd(), digits]
    : [text];
}
