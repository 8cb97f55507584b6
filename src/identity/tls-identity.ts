/**
 * Who is at the other end of a TLS connection. Both sides show a certificate of the pool's own CA
 * whose one URI name says what they are: `spiffe://pool/KIND/ID`.
 *
 * Neither side lets Node refuse the peer by itself, for it does so without a reason that could be
 * shown; `verifyPeer` makes every check and names the one that failed. No byte of a peer is looked
 * at before it returned.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { SecureContextOptions, TLSSocket } from 'node:tls';
import { createSecureContext } from 'node:tls';
import { DxpuError } from '#base/errors';
import { errnoReason } from '#base/make-folder';
import {
  IDENTITY_FORM,
  type Identity,
  type IdentityKind,
  identityUri,
  parseIdentityUri,
  sameIdentity,
} from './identity.ts';

/**
 * The identity in a certificate's subject alternative names, as Node prints them. Throws
 * `unauthenticated` unless there is exactly one URI name and it is an identity.
 */
export function identityOfNames(subjectAltName: string | undefined): Identity {
  const uris = (subjectAltName ?? '').split(', ').filter((name) => name.startsWith('URI:'));
  const [uri] = uris;
  if (uri === undefined || uris.length > 1) {
    throw unauthenticated(
      `its certificate has ${uris.length} URI names, it must have exactly one of the form ${IDENTITY_FORM}`,
    );
  }
  const identity = parseIdentityUri(uri.slice('URI:'.length));
  if (identity === undefined) {
    throw unauthenticated(
      `the name ${uri.slice('URI:'.length)} in its certificate is not of the form ${IDENTITY_FORM}`,
    );
  }
  return identity;
}

export interface ExpectedPeer<K extends IdentityKind = IdentityKind> {
  readonly kind: K;
  /** Where given, the peer must be this one and no other. */
  readonly id?: string;
}

/**
 * Checks the peer of a finished handshake: TLS 1.3, a certificate of our CA, in its time, with the
 * one identity expected. Returns the identity; throws `unauthenticated` or, for a valid peer that is
 * not the expected one, `permission_denied`.
 */
export function verifyPeer<K extends IdentityKind>(
  socket: TLSSocket,
  expected: ExpectedPeer<K>,
): Identity<K> {
  return expectIdentity(authenticatePeer(socket), expected);
}

/** `identity` where it is the one expected; throws `permission_denied` otherwise. */
export function expectIdentity<K extends IdentityKind>(
  identity: Identity,
  expected: ExpectedPeer<K>,
): Identity<K> {
  const { kind } = expected;
  if (identity.kind !== kind) {
    throw new DxpuError(
      'permission_denied',
      `it is ${identityUri(identity)}, a ${kind} is expected here`,
      { details: { reason: 'wrong-kind', peer: identityUri(identity) } },
    );
  }
  if (expected.id !== undefined && identity.id !== expected.id) {
    throw new DxpuError(
      'permission_denied',
      `it is ${identityUri(identity)}, but ${kind} ${expected.id} is expected here`,
      { details: { reason: 'wrong-identity', peer: identityUri(identity) } },
    );
  }
  return { kind, id: identity.id };
}

/** As `verifyPeer`, for whoever takes peers of several kinds: the caller checks which it is. */
export function authenticatePeer(socket: TLSSocket): Identity {
  if (socket.getProtocol() !== 'TLSv1.3') {
    throw unauthenticated(`it speaks ${socket.getProtocol()}, TLS 1.3 is needed`);
  }
  const certificate = socket.getPeerX509Certificate();
  if (certificate === undefined) throw unauthenticated('it showed no certificate');
  if (!socket.authorized) {
    // A code such as CERT_HAS_EXPIRED, though its type says Error.
    const code = String(socket.authorizationError);
    throw unauthenticated(certificateFault(code, certificate), { code });
  }
  return identityOfNames(certificate.subjectAltName);
}

function unauthenticated(message: string, details: Record<string, unknown> = {}): DxpuError {
  return new DxpuError('unauthenticated', message, { details });
}

/** What a code of OpenSSL says of a peer's certificate, for people. */
export function certificateFault(
  code: string,
  certificate?: Pick<X509Certificate, 'validFrom' | 'validTo'>,
): string {
  switch (code) {
    case 'CERT_HAS_EXPIRED': {
      const when = certificate === undefined ? 'has expired' : `expired on ${certificate.validTo}`;
      return `its certificate ${when}: issue a new one with dxpu cert issue`;
    }
    case 'CERT_NOT_YET_VALID': {
      const when = certificate === undefined ? 'yet' : `before ${certificate.validFrom}`;
      return `its certificate is not valid ${when}: compare the clocks`;
    }
    case 'UNABLE_TO_GET_ISSUER_CERT':
    case 'UNABLE_TO_GET_ISSUER_CERT_LOCALLY':
    case 'UNABLE_TO_VERIFY_LEAF_SIGNATURE':
    case 'DEPTH_ZERO_SELF_SIGNED_CERT':
    case 'SELF_SIGNED_CERT_IN_CHAIN':
    case 'CERT_SIGNATURE_FAILURE':
      return 'its certificate is of another CA: both sides need certificates of the same dxpu cert init';
    case 'INVALID_PURPOSE':
      return 'its certificate is not made for this use: issue it with dxpu cert issue';
    default:
      return `its certificate was refused: ${code}`;
  }
}

/** PEM texts of one process: its CA, its certificate, its key, and who it is. */
export interface TlsCredentials extends PemTexts {
  readonly identity: Identity;
}

/** A CA, a certificate of it, and its private key. */
export interface PemTexts {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export interface CredentialFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads and checks a process's own credentials, so that a mistake shows at its start and not at its
 * peer: each file is there and readable, the key belongs to the certificate, the CA signed it, it is
 * in its time and names `identity`. Throws `DxpuError` naming the file.
 */
export function loadCredentials(
  files: CredentialFiles,
  identity: Identity,
  nowMs: number,
): TlsCredentials {
  const ca = readPem(files.ca, 'CA certificate');
  const cert = readPem(files.cert, 'certificate');
  const key = readPem(files.key, 'private key');
  const hint = issueHint(identity);
  const { caCertificate, certificate } = checkPemTexts({ ca, cert, key }, files, hint);
  if (!certificate.verify(caCertificate.publicKey)) {
    throw new DxpuError(
      'invalid_argument',
      `${files.cert}: not issued by the CA in ${files.ca}; issue it with: ${hint} --force`,
    );
  }
  checkTime(certificate, files.cert, identity, nowMs);
  let named: Identity;
  try {
    named = identityOfNames(certificate.subjectAltName);
  } catch (error) {
    throw new DxpuError(
      'invalid_argument',
      `${files.cert}: ${DxpuError.from(error).message}; issue it with: ${hint} --force`,
      { cause: error },
    );
  }
  if (!sameIdentity(named, identity)) {
    throw new DxpuError(
      'invalid_argument',
      `${files.cert}: names ${identityUri(named)}, this process is ${identityUri(identity)}; ` +
        `issue its own with: ${hint}`,
    );
  }
  return { identity, ca, cert, key };
}

/**
 * Checks that TLS can use them. Throws `invalid_argument`: names as `names` has them, and with `hint`,
 * the command that issues them.
 */
export function checkPemTexts(
  { ca, cert, key }: PemTexts,
  names: CredentialFiles,
  hint: string,
): { caCertificate: X509Certificate; certificate: X509Certificate } {
  const caCertificate = parseCertificate(ca, names.ca);
  const certificate = parseCertificate(cert, names.cert);
  if (!certificate.checkPrivateKey(parsePrivateKey(key, names.key))) {
    throw new DxpuError(
      'invalid_argument',
      `${names.key}: not the private key of ${names.cert}; issue both anew with: ${hint} --force`,
    );
  }
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new DxpuError(
      'invalid_argument',
      `${names.cert} and ${names.key} cannot be used for TLS 1.3; issue them with: ${hint} --force`,
      { cause: error },
    );
  }
  return { caCertificate, certificate };
}

function checkTime(
  certificate: X509Certificate,
  file: string,
  identity: Identity,
  nowMs: number,
): void {
  if (nowMs > Date.parse(certificate.validTo)) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: expired on ${certificate.validTo}; issue a new one with: ` +
        `${issueHint(identity)} --force`,
    );
  }
  if (nowMs < Date.parse(certificate.validFrom)) {
    throw new DxpuError(
      'invalid_argument',
      `${file}: not valid before ${certificate.validFrom}; check this machine's clock`,
    );
  }
}

function issueHint(identity: Identity): string {
  return `dxpu cert issue ${identity.kind} ${identity.id}`;
}

function readPem(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    const reason =
      code === 'ENOENT'
        ? 'there is no such file; make it with dxpu cert init and dxpu cert issue'
        : code === 'EACCES'
          ? 'this user may not read it'
          : errnoReason(error);
    throw new DxpuError(DxpuError.from(error).code, `${file}: cannot read the ${what}: ${reason}`, {
      cause: error,
    });
  }
}

export function parseCertificate(pem: string, file: string): X509Certificate {
  try {
    return new X509Certificate(pem);
  } catch (error) {
    throw new DxpuError('invalid_argument', `${file}: not a certificate in PEM form`, {
      cause: error,
    });
  }
}

/** A private key of a PEM file, or an error that says what is there instead. */
export function parsePrivateKey(pem: string, file: string): KeyObject {
  try {
    return createPrivateKey(pem);
  } catch (error) {
    const isEncrypted = /-----BEGIN ENCRYPTED|^Proc-Type: 4,ENCRYPTED/m.test(pem);
    throw new DxpuError(
      'invalid_argument',
      isEncrypted
        ? `${file}: the private key is encrypted, and nobody is there to type a passphrase: ` +
            'store it without one, readable by this user alone'
        : `${file}: not a private key in PEM form`,
      { cause: error },
    );
  }
}

/** What both sides put into their TLS options: own CA alone, TLS 1.3 alone. */
export function secureOptions(credentials: PemTexts): SecureContextOptions {
  return {
    ca: credentials.ca,
    cert: credentials.cert,
    key: credentials.key,
    minVersion: 'TLSv1.3',
    maxVersion: 'TLSv1.3',
  };
}
