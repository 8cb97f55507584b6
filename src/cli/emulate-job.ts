/** What a worker of `dxpu emulate` does: one trace over one link, or one round trip of a microbenchmark. */
import { DxpuError } from '#base/errors';
import type { TraceAnswer } from '#emulator/answer';
import type { AskedEmulation, ModelEstimates } from '#emulator/emulate-answer';
import type { EmulationWatch } from '#emulator/emulate';
import type { EmulatedDevice } from '#emulator/emulated-system';
import type { Microbench, MicrobenchRow } from '#emulator/microbench';
import { count } from '#report/figures';
import { type LinkProfile, roundTripNs } from '#pcie/link-profile';
import type { Timeline } from '#trace/timeline';
import type { EmulatedCapture } from './emulated-capture.ts';
import type { OnStep } from './job-worker.ts';
import { formatDuration } from './quantity.ts';
import { timelineOf, type TraceSource, traceName, withTraceName } from './trace-source.ts';
import { PendingFile } from './whole-file.ts';

/** Can be sent to a worker as it is. */
export type EmulateJob = TraceJob | MicrobenchJob;

export interface TraceJob {
  readonly kind: 'trace';
  readonly source: TraceSource;
  readonly asked: Omit<AskedEmulation, 'trace'>;
  /** Whether the estimates are worked out at other round trips, too. */
  readonly curve: boolean;
  /** Files for a Chrome trace and a capture; left as `PendingFile`. */
  readonly trace?: string;
  readonly capture?: string;
  /** Bursts of TLPs of each track of the Chrome trace. */
  readonly bursts: number;
}

export interface MicrobenchJob {
  readonly kind: Microbench;
  readonly profile: LinkProfile;
  readonly device: EmulatedDevice;
  /** Whole round trip. */
  readonly rttNs: number;
}

export type EmulateResult = TraceResult | { readonly rows: readonly MicrobenchRow[] };

export interface TraceResult {
  readonly answer: TraceAnswer;
  /** Files that are pending, and what there is to say of them. */
  readonly files: readonly { readonly file: string; readonly note: string }[];
}

export async function runEmulateJob(
  job: EmulateJob,
  onStep: OnStep = () => {},
): Promise<EmulateResult> {
  if (job.kind === 'trace') return runTraceJob(job, onStep);
  onStep('emulating', 0);
  const { microbench } = await import('#emulator/microbench');
  const { kind, profile, device, rttNs } = job;
  try {
    return { rows: microbench(kind, profile, [rttNs], device) };
  } catch (thrown) {
    const { code, message, details, cause } = DxpuError.from(thrown);
    const where = `${kind} at ${formatDuration(rttNs)}`;
    throw new DxpuError(code, `${where}: ${message}`, { details, cause });
  }
}

async function runTraceJob(job: TraceJob, onStep: OnStep): Promise<TraceResult> {
  const name = traceName(job.source);
  const timeline = await timelineOf(job.source, (share) => onStep('reading', share));
  try {
    return await emulated(name, timeline, job, onStep);
  } catch (thrown) {
    const error = DxpuError.from(thrown);
    // What is wrong with a file that is written is not of the trace.
    throw error.details['file'] === undefined ? withTraceName(name, error) : error;
  }
}

async function emulated(
  trace: string,
  timeline: Timeline,
  job: TraceJob,
  onStep: OnStep,
): Promise<TraceResult> {
  const { Emulator } = await import('#emulator/emulate');
  const { emulateAnswer, sharedProfile } = await import('#emulator/emulate-answer');
  const { RunLog } = await import('#emulator/run-log');
  const { chromeTrace, detailWords } = await import('#emulator/chrome-trace');
  const captures = await import('./emulated-capture.ts');
  const { link, sharing, seed, device, wholeCopies } = job.asked;
  const emulator = new Emulator(timeline);
  onStep('modelling', 0);
  const model = await estimatesOf(timeline, job);
  const profile = sharedProfile(link, sharing);
  const log = job.trace === undefined ? undefined : new RunLog(profile, job.bursts);
  const capture = job.capture === undefined ? undefined : new captures.EmulatedCapture(job.capture);
  const emulation = emulator.run(profile, {
    seed,
    device,
    wholeCopies,
    watch: watchOf(log?.watch, capture),
    progress: { tell: onStep, expectedPct: model.replayOverheadPct ?? 0 },
  });
  const { pooled } = emulation;
  const files: { file: string; note: string }[] = [];
  if (job.capture !== undefined && capture !== undefined) {
    capture.end();
    const { setUp } = capture;
    const note = `${count(capture.count - setUp)} TLPs of the run, after ${count(setUp)} of setting up`;
    files.push({ file: job.capture, note });
  }
  if (job.trace !== undefined && log !== undefined) {
    onStep('writing', 0);
    const file = new PendingFile(job.trace);
    file.addPieces(chromeTrace({ timeline, profile, run: pooled, log }));
    file.end();
    files.push({ file: job.trace, note: detailWords(log) });
  }
  const answer = emulateAnswer(timeline, { ...job.asked, trace }, emulation, model);
  return { answer, files };
}

function watchOf(
  logged: EmulationWatch | undefined,
  capture: EmulatedCapture | undefined,
): EmulationWatch {
  if (capture === undefined) return logged ?? {};
  return {
    ...logged,
    onTlp: (...tlp) => {
      logged?.onTlp?.(...tlp);
      capture.tap(...tlp);
    },
    begun: (now) => {
      logged?.begun?.(now);
      capture.begun();
    },
  };
}

async function estimatesOf(
  timeline: Timeline,
  { asked: { link, sharing }, curve: isDrawn }: TraceJob,
): Promise<ModelEstimates> {
  const { overheadCurve } = await import('#perfmodel/predict');
  const { curveRttsNs } = await import('#perfmodel/curve');
  const rttsNs = [roundTripNs(link), ...(isDrawn ? curveRttsNs(link) : [])];
  const [own, ...curve] = overheadCurve(timeline, link, rttsNs, { sharing });
  const { additiveOverheadPct = null, replayOverheadPct = null } = own ?? {};
  return { additiveOverheadPct, replayOverheadPct, ...(isDrawn ? { curve } : {}) };
}
