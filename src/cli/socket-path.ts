/** sun_path has 108 bytes with its end mark on Linux (unix(7)), 104 elsewhere. */
const MAX_SOCKET_PATH_BYTES = process.platform === 'linux' ? 107 : 103;

/** What is wrong with the path of a UNIX socket, if anything. */
export function socketPathProblem(file: string): string | undefined {
  const bytes = Buffer.byteLength(file);
  return bytes > MAX_SOCKET_PATH_BYTES
    ? `${file} has ${bytes} bytes, the system allows ${MAX_SOCKET_PATH_BYTES}`
    : undefined;
}
