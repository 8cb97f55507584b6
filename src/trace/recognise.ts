/**
 * What a file is, by its content, never by its name: one of the formats that are read, or one of the
 * many that people take for them, each with the way out.
 */
import { DxpuError } from '#base/errors';
import { headOf } from './file-head.ts';
import type { FileHead } from './file-head.ts';
import { otherFile } from './other-files.ts';

const SQLITE_MAGIC = 'SQLite format 3\0';
const FORMATS_READ =
  'Give a trace of the PyTorch profiler (export_chrome_trace), a report of Nsight Systems exported ' +
  'with nsys export --type sqlite, or the output of nvprof --print-gpu-trace --csv';

export type RecognisedFormat = 'kineto' | 'nsys' | 'nvprof' | 'tensorflow';

/**
 * The format, as far as the head tells: whether the rest keeps the promise shows in reading it.
 * Throws a `DxpuError` that says what the file is instead and what to do.
 */
export async function recognise(file: string): Promise<RecognisedFormat> {
  const head = await headOf(file);
  const refuse = (what: string): DxpuError =>
    new DxpuError('invalid_argument', `${file}: ${what}`, { details: { file, byte: 0 } });
  if (head.bytes.length === 0) throw refuse(`the file is empty. ${FORMATS_READ}`);
  if (head.text.startsWith(SQLITE_MAGIC)) {
    if (!head.isGzip) return 'nsys';
    throw refuse('this is an SQLite database packed with gzip. Unpack it first: gunzip FILE');
  }
  const other = otherFile(head);
  if (other !== undefined) throw refuse(other);
  const start = head.text.replace(/^\u00ef\u00bb\u00bf/, '').trimStart();
  if (start.startsWith('{') || start.startsWith('[')) {
    return isTensorflow(start) ? 'tensorflow' : 'kineto';
  }
  if (isNvprof(start)) return 'nvprof';
  throw refuse(
    `this is no profile that is known, its first bytes are ${firstBytes(head)}. ${FORMATS_READ}`,
  );
}

/** `tf.client.timeline` names its processes after devices, before any event. */
function isTensorflow(json: string): boolean {
  return (
    json.includes('process_name') &&
    /"(?:\/device:|\/)gpu:\d+\/(?:stream:|memcpy)|"\/job:[^"]* Compute"/i.test(json)
  );
}

function isNvprof(text: string): boolean {
  return (
    /^==\d+== (?:NVPROF|Profiling)/m.test(text) ||
    /^"?(?:Start|Type)"?,"?(?:Duration|Time\(%\))"?,/m.test(text)
  );
}

function firstBytes({ bytes }: FileHead): string {
  return Array.from(bytes.subarray(0, 8), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
