/** Addresses of this pool: `address:port`, IPv6 addresses in brackets. */
import { DxpuError } from '#base/errors';

export interface HostAndPort {
  readonly host: string;
  readonly port: number;
}

/** Fails with `invalid_argument`, naming the text and showing what would be right. */
export function parseEndpoint(text: string): HostAndPort {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(text)} is not an address and port, as in 127.0.0.1:7001 or [::1]:7001`,
    );
  }
  return { host: match[1] ?? match[2] ?? '', port };
}

export function formatEndpoint({ host, port }: HostAndPort): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}
