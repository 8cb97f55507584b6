/** The `capture` method of the control socket: a stream of the TLPs of one slot. */
import { z } from 'zod';
import type { ControlCall } from './control-server.ts';
import { parseParams } from './proxy-process.ts';
import type { Taps } from './taps.ts';

const captureParams = z.strictObject({
  slot: z.int().min(0).max(65535),
  count: z.int().min(1).optional(),
  durationMs: z.number().min(0).optional(),
});

/** One event of the stream. `timeNs` is decimal, for JSON numbers do not hold it. */
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
  checkSlot: (slot: number) => void,
  params: unknown,
  call: ControlCall,
): Promise<CaptureResult> {
  const { slot, count, durationMs } = parseParams(captureParams, params);
  checkSlot(slot);
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
