/** The box's end of `dxpu box screenshot`. */
import { z } from 'zod';
import type { BoxNode } from '#agent/daemon/box-node';
import { encodePng } from '#report/png-image';
import { parseParams } from './daemon-process.ts';

const paramsSchema = z.object({ slot: z.number().int().nonnegative() });

/** What a display showed, in pixels; `png` in base64. */
export interface ScreenshotResult {
  readonly width: number;
  readonly height: number;
  readonly png: string;
}

export async function takeScreenshot(
  node: Pick<BoxNode, 'screenshot'>,
  params: unknown,
): Promise<ScreenshotResult> {
  const { slot } = parseParams(paramsSchema, params);
  const { width, height, rgba } = node.screenshot(slot);
  const png = await encodePng(width, height, rgba);
  return { width, height, png: Buffer.from(png).toString('base64') };
}
