/**
 * Whether a TLP that decodes as `UNSUPPORTED_KIND` is a request that expects an answer, by byte 0 of
 * its header: MRdLk (with either address), TCfgRd, DMWr (with either address). It gets UR (2.3.1).
 */
export function isUnsupportedRequest(byte0: number | undefined): boolean {
  return byte0 === 0x01 || byte0 === 0x21 || byte0 === 0x1b || byte0 === 0x5b || byte0 === 0x7b;
}
