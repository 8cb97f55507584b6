/**
 * The client's half of `tls-identity.ts` for libraries that open their connections themselves, HTTP/2
 * among them: TLS options under which Node refuses every peer but the one expected, and what its
 * refusals mean.
 */
import type { ConnectionOptions } from 'node:tls';
import { DxpuError } from '#base/errors';
import {
  certificateFault,
  type ExpectedPeer,
  expectIdentity,
  identityOfNames,
  secureOptions,
  type PemTexts,
} from './tls-identity.ts';

/**
 * Options of `tls.connect` for the one peer expected. The connection fails before a byte is sent or read
 * when it is another; `connectionFault` says why.
 */
export function secureClientOptions(
  credentials: PemTexts,
  expected: ExpectedPeer,
): ConnectionOptions {
  return {
    ...secureOptions(credentials),
    rejectUnauthorized: true,
    // The name of the machine means nothing here: who it is stands in its URI.
    checkServerIdentity: (_host, certificate) => {
      try {
        expectIdentity(identityOfNames(certificate.subjectaltname), expected);
        return undefined;
      } catch (error) {
        return DxpuError.from(error);
      }
    },
  };
}

/**
 * What an error of such a connection means, `undefined` when it is none: `unavailable` for a network's
 * fault, `unauthenticated` or `permission_denied` for a peer that is not the one expected.
 */
export function connectionFault(error: unknown): DxpuError | undefined {
  if (error instanceof DxpuError) return error;
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string') return undefined;
  const network = NETWORK_FAULTS[code];
  if (network !== undefined) return new DxpuError('unavailable', network, { cause: error });
  if (CERTIFICATE_FAULT.test(code)) {
    return new DxpuError('unauthenticated', certificateFault(code), {
      details: { code },
      cause: error,
    });
  }
  if (code.startsWith('ERR_SSL_')) {
    return new DxpuError('unavailable', `no TLS 1.3 there: ${error.message}`, { cause: error });
  }
  return undefined;
}

const CERTIFICATE_FAULT =
  /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_(?:CA|PURPOSE)|ERR_TLS_CERT)/;

const NETWORK_FAULTS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'nobody listens there',
  ECONNRESET: 'the connection was lost',
  EPIPE: 'the connection was lost',
  ETIMEDOUT: 'the connection was lost: no answer any more',
  EHOSTUNREACH: 'there is no way to that machine',
  ENETUNREACH: 'there is no way to that network',
  ENOTFOUND: 'there is no machine of that name',
  EAI_AGAIN: 'names of machines cannot be looked up now',
  EADDRNOTAVAIL: 'that address cannot be connected to from here',
  EMFILE: 'this process has no file descriptor left',
};
