/**
 * What happened in an emulation as a Chrome trace (JSON), which Perfetto and chrome://tracing open:
 * host threads with their calls, the rings of the device with their commands.
 */
import type { Nanos } from '#base/units';
import { Opcode } from '#host/accel-layout';
import type { AccelCommand } from '#devices/accel-command';
import type { Timeline } from '#trace/timeline';
import type { WorkloadRun } from './run-workload.ts';

interface Done {
  readonly channel: number;
  readonly startedNs: number;
  readonly endedNs: number;
  readonly opcode: number;
  readonly bytes: number;
}

const NAMES: Readonly<Record<number, string>> = {
  [Opcode.NOP]: 'kernel or pause',
  [Opcode.EVENT_SIGNAL]: 'event signal',
  [Opcode.EVENT_WAIT]: 'event wait',
  [Opcode.COPY_HTOD]: 'copy HtoD',
  [Opcode.COPY_DTOH]: 'copy DtoH',
};
const HOST_PID = 1;
const DEVICE_PID = 2;

/** Keeps the commands of a run as they are done. */
export class CommandLog {
  readonly #done: Done[] = [];

  /** For `SystemOptions.onCommand`. */
  readonly take = (
    now: Nanos,
    channel: number,
    startedNs: number,
    command: Readonly<AccelCommand>,
  ): void => {
    const { opcode } = command;
    const isCopy = opcode === Opcode.COPY_HTOD || opcode === Opcode.COPY_DTOH;
    const bytes = isCopy ? command.operand2 : 0;
    this.#done.push({ channel, startedNs, endedNs: now, opcode, bytes });
  };

  /** The trace, in pieces of whole lines. Times are µs since the run began. */
  *chromeTrace(timeline: Timeline, run: WorkloadRun): Generator<string> {
    yield '{"displayTimeUnit":"ns","traceEvents":[\n';
    yield meta(HOST_PID, 0, 'process_name', 'host');
    yield meta(DEVICE_PID, 0, 'process_name', 'accelerator');
    for (const [thread, { tid, name }] of timeline.threads.entries()) {
      yield meta(HOST_PID, thread, 'thread_name', name ?? `thread ${tid}`);
    }
    const channels = new Set(this.#done.map(({ channel }) => channel));
    for (const channel of channels)
      yield meta(DEVICE_PID, channel, 'thread_name', `ring ${channel}`);
    const { calls, names } = timeline;
    for (let call = 0; call < calls.count; call += 1) {
      const startNs = run.callStartNs[call] ?? 0;
      const lastsNs = (run.callEndNs[call] ?? 0) - startNs;
      const name = names[calls.name[call] ?? 0] ?? 'call';
      yield slice(HOST_PID, calls.thread[call] ?? 0, name, startNs, lastsNs, '');
    }
    for (const { channel, startedNs, endedNs, opcode, bytes } of this.#done) {
      const name = NAMES[opcode] ?? `opcode ${opcode}`;
      const args = bytes === 0 ? '' : `,"args":{"bytes":${bytes}}`;
      yield slice(DEVICE_PID, channel, name, startedNs - run.originNs, endedNs - startedNs, args);
    }
    yield '{"ph":"M","pid":1,"name":"process_sort_index","args":{"sort_index":0}}\n]}\n';
  }
}

function meta(pid: number, tid: number, kind: string, name: string): string {
  return `${JSON.stringify({ ph: 'M', pid, tid, name: kind, args: { name } })},\n`;
}

function slice(
  pid: number,
  tid: number,
  name: string,
  startNs: number,
  lastsNs: number,
  args: string,
): string {
  const ts = (startNs / 1e3).toFixed(3);
  const dur = (lastsNs / 1e3).toFixed(3);
  return `{"ph":"X","pid":${pid},"tid":${tid},"ts":${ts},"dur":${dur},"name":${JSON.stringify(name)}${args}},\n`;
}
