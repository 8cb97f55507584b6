/**
 * Tokens that say where a list goes on. To callers they are opaque: a hash of the list and its filter,
 * and the last key. A token of another list, or one that was made up, is refused rather than misread.
 */
import { createHash } from 'node:crypto';
import { DxpuError } from '#base/errors';

const HASH_BYTES = 8;
/** A key is a few ids. */
const MAX_TOKEN_CHARS = 4096;

/** `list` names the list with everything it is selected by. */
export function pageToken(list: string, after: string | undefined): string {
  if (after === undefined) return '';
  return Buffer.concat([hash(list, after), Buffer.from(after)]).toString('base64url');
}

/** The key to go on behind; '' for the empty token, which begins. */
export function keyOfToken(list: string, token: string): string {
  if (token === '') return '';
  if (token.length <= MAX_TOKEN_CHARS) {
    const bytes = Buffer.from(token, 'base64url');
    const after = bytes.subarray(HASH_BYTES).toString();
    if (after !== '' && bytes.subarray(0, HASH_BYTES).equals(hash(list, after))) return after;
  }
  throw new DxpuError(
    'invalid_argument',
    'page_token: not one of this list: take next_page_token of an answer to the same request',
    { details: { field: 'page_token' } },
  );
}

function hash(list: string, after: string): Buffer {
  return createHash('sha256')
    .update(JSON.stringify([list, after]))
    .digest()
    .subarray(0, HASH_BYTES);
}
