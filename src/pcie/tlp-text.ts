/** TLPs as people and scripts read them: JSON objects, and one line a TLP. */
import type { Tlp } from './tlp.ts';

export type TlpJson = Readonly<Record<string, string | number>>;

export function tlpToJson(_tlp: Tlp): TlpJson {
  throw new Error('to be written');
}
export function tlpFromJson(_json: unknown, _into: Tlp): void {
  throw new Error('to be written');
}
export function tlpToLine(_tlp: Tlp): string {
  throw new Error('to be written');
}
