/** The `capture` method of the control socket: a stream of the TLPs of one slot. */
import { z } from 'zod';
import type { ControlCall } from './control-server.ts';
import { parseParams } from './proxy-process.ts';
import type { Taps } from './taps.ts';

export const captureParams = z.strictObject({
  slot: z.int().min(0).max(65535),
  count: z.int().min(1).optional(),
  durationMs: z.number().min(0).optional(),
});

/** The first event of the stream. */
export interface CaptureBegin {
  /** The function that is captured, where there is one: its config space in hexadecimal. */
  readonly function?: { readonly bdf: number; readonly configSpace: string };
}

/** Every further event. `timeNs` is decimal, for JSON numbers do not hold it. */
export interface CaptureEvent {
  readonly timeNs: string;
  readonly slot: number;
  readonly direction: 'down' | 'up';
  readonly hex: string;
}

export interface CaptureResult {
  readonly captured: number;
  /** Lost because the reader was too slow. */
  readonly dropped: number;
}

export function captureStream(
  taps: Taps,
  params: unknown,
  call: ControlCall,
): Promise<CaptureResult> {
  const { slot, count, durationMs } = parseParams(captureParams, params);
  return new Promise((resolve) => {
    let captured = 0;
    let dropped = 0;
    let timer: NodeJS.Timeout | undefined;
    let ended = false;
    const end = (): void => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      call.signal.removeEventListener('abort', end);
      remove();
      resolve({ captured, dropped });
    };
    const remove = taps.add(slot, ({ timeNs, direction, tlp }) => {
      if (ended) return;
      const event: CaptureEvent = {
        timeNs: timeNs.toString(),
        slot,
        direction,
        hex: Buffer.from(tlp).toString('hex'),
      };
      if (call.emit(event)) captured++;
      else dropped++;
      // Not from within the tap: ending takes the tap away.
      if (captured === count) setImmediate(end);
    });
    call.signal.addEventListener('abort', end);
    if (durationMs !== undefined) timer = setTimeout(end, durationMs);
  });
}
