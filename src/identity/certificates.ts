/**
 * The pool's own certificate authority and the certificates it issues: ECDSA P-256, one identity
 * each. Slow to load (a whole ASN.1 library), so import it only where certificates are made.
 */
import 'reflect-metadata';
import type { webcrypto } from 'node:crypto';
import { createPrivateKey, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import * as x509 from '@peculiar/x509';
import { DxpuError } from '#base/errors';
import { errnoReason, makeFolder, removeFolders } from '#base/make-folder';
import { type Identity, identityUri, isIdentityName } from './identity.ts';
import { parseCertificate, parsePrivateKey } from './tls-identity.ts';
import type { CredentialFiles } from './tls-identity.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const DAY_MS = 86_400_000;
const CA_DAYS = 3650;
const DEFAULT_DAYS = 365;
/** Two machines' clocks may differ by this much without a fresh certificate being refused. */
const CLOCK_SKEW_MS = 300_000;
const CA_FILE = 'ca.pem';
const CA_KEY_FILE = 'ca-key.pem';

export interface KeyAndCertificate {
  readonly certPem: string;
  readonly keyPem: string;
}

/** A new CA of its own; it can sign certificates of identities, and no further CA. */
export async function createAuthority(name: string, nowMs: number): Promise<KeyAndCertificate> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=${escapeName(name)}`,
    notBefore: new Date(nowMs - CLOCK_SKEW_MS),
    notAfter: new Date(nowMs + CA_DAYS * DAY_MS),
    signingAlgorithm: ALGORITHM,
    keys,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(
        x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.cRLSign,
        true,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certPem: certificate.toString('pem'), keyPem: await exportKey(keys.privateKey) };
}

export interface IssueOptions {
  /** Validity in days from now, 365 by default. Negative makes one that has expired, for tests. */
  readonly days?: number;
  readonly nowMs: number;
}

/** A new key and a certificate of `authority` with the one URI name of `identity`. */
export async function issueCertificate(
  authority: KeyAndCertificate,
  identity: Identity,
  options: IssueOptions,
): Promise<KeyAndCertificate> {
  if (!isIdentityName(identity.id)) {
    throw new DxpuError(
      'invalid_argument',
      `${JSON.stringify(identity.id)} cannot name a ${identity.kind}: use 1 to 63 letters, digits, ` +
        'dots, dashes and underscores, beginning with a letter or digit',
    );
  }
  return issueWithNames(authority, [identityUri(identity)], identity.id, options);
}

/** As `issueCertificate`, with any URI names: what a careless or hostile issuer could make. */
export async function issueWithNames(
  authority: KeyAndCertificate,
  uris: readonly string[],
  commonName: string,
  options: IssueOptions,
): Promise<KeyAndCertificate> {
  const caCertificate = new x509.X509Certificate(authority.certPem);
  const caKey = await importKey(authority.keyPem);
  const keys = await generateKeys();
  const lifeMs = (options.days ?? DEFAULT_DAYS) * DAY_MS;
  const notAfterMs = options.nowMs + lifeMs;
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${escapeName(commonName)}`,
    issuer: caCertificate.subject,
    notBefore: new Date(Math.min(options.nowMs, notAfterMs) - CLOCK_SKEW_MS),
    notAfter: new Date(notAfterMs),
    signingAlgorithm: ALGORITHM,
    publicKey: keys.publicKey,
    signingKey: caKey,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
      // Either may open the connection: a box is a server to the hosts today, a client tomorrow.
      new x509.ExtendedKeyUsageExtension([
        x509.ExtendedKeyUsage.serverAuth,
        x509.ExtendedKeyUsage.clientAuth,
      ]),
      new x509.SubjectAlternativeNameExtension(
        uris.map((value) => ({ type: 'url' as const, value })),
        false,
      ),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      await x509.AuthorityKeyIdentifierExtension.create(await caCertificate.publicKey.export()),
    ],
  });
  return { certPem: certificate.toString('pem'), keyPem: await exportKey(keys.privateKey) };
}

export interface FileOptions {
  readonly nowMs: number;
  readonly days?: number;
  /** Replaces files that are there already; refused otherwise. */
  readonly force?: boolean;
}

/** Makes a CA in `folder`: ca.pem and ca-key.pem, readable by this user alone. */
export async function initAuthorityFiles(
  folder: string,
  name: string,
  options: FileOptions,
): Promise<{ cert: string; key: string }> {
  const cert = path.join(folder, CA_FILE);
  const key = path.join(folder, CA_KEY_FILE);
  refuseExisting([cert, key], options, 'Every certificate it issued stops working when it goes');
  const authority = await createAuthority(name, options.nowMs);
  writePair(cert, key, authority);
  return { cert, key };
}

/** Issues KIND-ID.pem and KIND-ID-key.pem into `folder`, which holds the CA. */
export async function issueFiles(
  folder: string,
  identity: Identity,
  options: FileOptions,
): Promise<CredentialFiles> {
  const authority = readAuthority(folder);
  const cert = path.join(folder, `${identity.kind}-${identity.id}.pem`);
  const key = path.join(folder, `${identity.kind}-${identity.id}-key.pem`);
  const pair = await issueCertificate(authority, identity, options);
  refuseExisting([cert, key], options, 'It is in use wherever a configuration names it');
  writePair(cert, key, pair);
  return { ca: path.join(folder, CA_FILE), cert, key };
}

function readAuthority(folder: string): KeyAndCertificate {
  const read = (name: string): string => {
    const file = path.join(folder, name);
    try {
      return readFileSync(file, 'utf8');
    } catch (error) {
      const missing = (error as NodeJS.ErrnoException).code === 'ENOENT';
      throw new DxpuError(
        missing ? 'not_found' : DxpuError.from(error).code,
        missing
          ? `${file}: there is no CA here; make one with: dxpu cert init --dir ${folder}`
          : `${file}: cannot read the CA: ${errnoReason(error)}`,
        { cause: error },
      );
    }
  };
  const authority = { certPem: read(CA_FILE), keyPem: read(CA_KEY_FILE) };
  const file = path.join(folder, CA_FILE);
  const keyFile = path.join(folder, CA_KEY_FILE);
  const key = parsePrivateKey(authority.keyPem, keyFile);
  if (!parseCertificate(authority.certPem, file).checkPrivateKey(key)) {
    throw new DxpuError(
      'invalid_argument',
      `${keyFile}: the key of another certificate than ${file}: bring both from one dxpu cert init`,
    );
  }
  return authority;
}

function refuseExisting(files: readonly string[], options: FileOptions, why: string): void {
  if (options.force === true) return;
  const existing = files.find((file) => existsSync(file));
  if (existing === undefined) return;
  throw new DxpuError(
    'already_exists',
    `${existing}: already there. ${why}; use --force to replace it`,
    { details: { file: existing } },
  );
}

/** Both or none, and no new folder for none. */
function writePair(cert: string, key: string, pair: KeyAndCertificate): void {
  const made = makeFolder(path.dirname(cert));
  try {
    const parts = [prepare(key, pair.keyPem), prepare(cert, `${pair.certPem.trimEnd()}\n`)];
    for (const { temporary, file } of parts) renameSync(temporary, file);
  } catch (error) {
    for (const file of [key, cert]) removeTemporary(file);
    removeFolders(made);
    if (error instanceof DxpuError) throw error;
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot write ${cert} and its key: ${errnoReason(error)}`,
      { cause: error },
    );
  }
}

/** Complete beside its place, and never readable by others, not even for a moment. */
function prepare(file: string, text: string): { temporary: string; file: string } {
  const temporary = temporaryName(file);
  try {
    writeFileSync(temporary, text, { mode: 0o600, flag: 'wx' });
  } catch (error) {
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot write ${file}: ${errnoReason(error)}; nothing was changed`,
      { details: { file }, cause: error },
    );
  }
  return { temporary, file };
}

/** Never fails: what there is to say is why it could not be written. */
function removeTemporary(file: string): void {
  try {
    rmSync(temporaryName(file), { force: true });
  } catch {
    // It was not there to begin with.
  }
}

function temporaryName(file: string): string {
  return `${file}.${process.pid}.tmp`;
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

async function exportKey(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await crypto.subtle.exportKey('pkcs8', key));
  const lines = der.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN PRIVATE KEY-----\n${lines.join('\n')}\n-----END PRIVATE KEY-----\n`;
}

async function importKey(pem: string): Promise<webcrypto.CryptoKey> {
  const der = createPrivateKey(pem).export({ format: 'der', type: 'pkcs8' });
  return crypto.subtle.importKey('pkcs8', der, ALGORITHM, false, ['sign']);
}

/** 16 random bytes, positive as a DER integer. */
function serialNumber(): string {
  const bytes = randomBytes(16);
  bytes[0] = ((bytes[0] ?? 0) & 0x7f) | 0x40;
  return bytes.toString('hex');
}

/** A common name as RFC 4514 wants it. */
function escapeName(name: string): string {
  return name.replace(/[\\,+"<>;=#]/g, (c) => `\\${c}`);
}
