/** Sizes that both ends of a link, and the transports below, rely on. */

/** What a receiver needs to see of a frame to know its length; no frame is shorter. */
export const FRAME_HEADER_BYTES = 8;
/** No frame is longer, whatever two ends agree on. */
export const MAX_FRAME_BYTES = 1 << 20;
/** The longest of HELLO, HELLO-ACK, REFUSE and BYE: HELLO with an id of 255 bytes, see hello.ts. */
export const MAX_HANDSHAKE_FRAME_BYTES = 320;
/** Every end takes frames of this size; the largest TLP fits. */
export const MIN_MAX_FRAME_BYTES = 8192;
