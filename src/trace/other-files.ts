/** Files that people take for profiles: what they are, and what to give instead. */
import type { FileHead } from './file-head.ts';

const EXPORT_NSYS = 'Export it with nsys export --type sqlite FILE, and give the .sqlite file';
const RECORD_KINETO =
  'Record with torch.profiler.profile(activities=[CPU, CUDA]) and give the file of export_chrome_trace';

interface OtherFile {
  readonly isIt: (head: FileHead) => boolean;
  readonly message: string;
}

const startsWith =
  (magic: string) =>
  ({ text }: FileHead): boolean =>
    text.startsWith(magic);
const isJsonWith =
  (...keys: readonly RegExp[]) =>
  ({ text }: FileHead): boolean =>
    /^(?:\u00ef\u00bb\u00bf)?\s*[[{]/.test(text) && keys.every((key) => key.test(text));
const hasLine =
  (line: RegExp) =>
  ({ text }: FileHead): boolean =>
    line.test(text);

const OTHER_FILES: readonly OtherFile[] = [
  {
    isIt: startsWith('NVIDIA Tegra Profiler Report'),
    message: `this is a report of Nsight Systems (.nsys-rep or .qdrep), which only its own tools can read. ${EXPORT_NSYS}`,
  },
  {
    isIt: startsWith('NVR\0'),
    message:
      'this is a report of Nsight Compute (.ncu-rep): it measures single kernels, not how they follow ' +
      'each other. Record the program with nsys profile --trace=cuda, then nsys export --type sqlite REPORT.nsys-rep',
  },
  {
    isIt: isJsonWith(/"schema"\s*:\s*"/, /"nodes"\s*:\s*\[/, /^(?![^]*"traceEvents")/),
    message: `this is an execution trace of PyTorch (ExecutionTraceObserver): it holds operators and their inputs, but no times of GPU work. ${RECORD_KINETO}`,
  },
  {
    isIt: isJsonWith(/"(?:CudaEvent|TraceProcessEvent|NvtxEvent)"\s*:/),
    message: `this is an export of Nsight Systems as JSON. Export the report with nsys export --type sqlite REPORT.nsys-rep, and give the .sqlite file`,
  },
  {
    isIt: isJsonWith(/"process_name"/, /"\/(?:device:(?:GPU|TPU):\d+|host:CPU)"/),
    message:
      'this is a trace of the TensorFlow 2 or JAX profiler, which is not read. Record the program with ' +
      'nsys profile --trace=cuda, then nsys export --type sqlite REPORT.nsys-rep',
  },
  {
    isIt: hasLine(/^"?Time \(%\)"?,"?Total Time \(ns\)"?/m),
    message:
      'this is a summary of nsys stats, without single events. Export the report with nsys export ' +
      '--type sqlite REPORT.nsys-rep, and give the .sqlite file',
  },
  {
    isIt: hasLine(/^(?:"[^"\n]*",|[\w-]*,)*"?(?:BeginNs|Start_Timestamp)"?,/m),
    message: `this is a table of AMD's rocprof, which is not read. ${RECORD_KINETO}`,
  },
  {
    isIt: ({ text }) => text.startsWith('\u00ff\u00fe') || text.startsWith('\u00fe\u00ff'),
    message:
      'this is text in UTF-16, as PowerShell writes it. Convert it first: iconv -f UTF-16 -t UTF-8 FILE > OUT',
  },
  {
    isIt: startsWith('PK\u0003\u0004'),
    message: 'this is a zip archive. Unpack it first: unzip FILE',
  },
  {
    isIt: startsWith('\u0028\u00b5\u002f\u00fd'),
    message: 'this is packed with Zstandard. Unpack it first: zstd -d FILE',
  },
  {
    isIt: startsWith('\u00fd7zXZ\0'),
    message: 'this is packed with xz. Unpack it first: unxz FILE',
  },
  {
    isIt: startsWith('BZh'),
    message: 'this is packed with bzip2. Unpack it first: bunzip2 FILE',
  },
  {
    isIt: startsWith('\u001f\u008b'),
    message: 'this is packed with gzip twice. Unpack it once: gunzip FILE',
  },
  {
    isIt: ({ text }) => text.slice(257, 262) === 'ustar',
    message: 'this is a tar archive. Unpack it first: tar xf FILE',
  },
  {
    isIt: ({ bytes, text }) =>
      text.startsWith('PAR1') ||
      text.startsWith('\u0089HDF') ||
      (bytes[0] === 0x80 && (bytes[1] ?? 0) <= 5),
    message: `this is a Parquet, HDF5 or pickle file, such as a memory snapshot. ${RECORD_KINETO}`,
  },
  {
    isIt: hasLine(/^\s*<(?:!doctype html|html|\?xml)/i),
    message: 'this is a web page, not a trace: was the download of a trace refused or redirected?',
  },
  {
    isIt: hasLine(/^version https:\/\/git-lfs/),
    message: 'this is a pointer of Git LFS, not the file itself. Fetch it: git lfs pull',
  },
];

/** What the file is and what to do, where it is known to be no profile that is read. */
export function otherFile(head: FileHead): string | undefined {
  return OTHER_FILES.find(({ isIt }) => isIt(head))?.message;
}
