import type { HotPlug } from './hot-plug.ts';
import type { SoftHost } from './root-complex.ts';

/** A text listing of the bus: a line per port and function, and with `verbose` its windows, BARs and capabilities. */
export function formatListing(
  _host: SoftHost,
  _hotPlug: HotPlug,
  _options?: { readonly verbose?: boolean },
): string {
  throw new Error('to be written');
}
