/** Kineto traces written by hand, one event a line. Times are µs. */
export interface KinetoFields {
  readonly [key: string]: unknown;
}

/** A complete event. Times that a number cannot hold, or that are none, are given as they are written. */
export function kinetoEvent(
  cat: string,
  name: string,
  at: { readonly ts: number | string; readonly dur?: number | string },
  args: KinetoFields = {},
  more: KinetoFields = {},
): string {
  const { ts, dur = 1 } = at;
  const rest = JSON.stringify({ pid: 1, tid: 1, ...more, args }).slice(1);
  return `{"ph": "X", "cat": ${JSON.stringify(cat)}, "name": ${JSON.stringify(name)}, "ts": ${ts}, "dur": ${dur}, ${rest}`;
}

/** A kernel of device 0, stream 7. */
export function kernel(
  at: { readonly ts: number | string; readonly dur?: number | string },
  correlation = 0,
  name = 'kernel',
): string {
  return kinetoEvent('kernel', name, at, { device: 0, stream: 7, correlation }, { pid: 0, tid: 7 });
}

export function kinetoText(events: readonly string[], fields: KinetoFields = {}): string {
  const text = JSON.stringify({ schemaVersion: 1, ...fields }).slice(0, -1);
  return `${text}, "traceEvents": [\n${events.join(',\n')}\n]}`;
}
