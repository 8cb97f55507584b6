/** Bytes as a reader gets them from a file: piece by piece, each written over before the next comes. */
export async function* pieces(
  bytes: Uint8Array | string,
  pieceBytes = 1 << 20,
): AsyncGenerator<Uint8Array, void, undefined> {
  const all = typeof bytes === 'string' ? Buffer.from(bytes) : bytes;
  const buffer = new Uint8Array(Math.min(pieceBytes, all.length));
  for (let from = 0; from < all.length; from += pieceBytes) {
    const piece = all.subarray(from, from + pieceBytes);
    buffer.set(piece);
    yield buffer.subarray(0, piece.length);
    buffer.fill(0xaa);
  }
}
