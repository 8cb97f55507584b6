/** How a command finds the manager, and what it says when there is none. */
import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { type HostAndPort, formatEndpoint, parseEndpoint } from '#agent/daemon/endpoint';
import { DxpuError } from '#base/errors';
import {
  type CredentialFiles,
  identityOfNames,
  loadCredentials,
  type TlsCredentials,
} from '#identity/tls-identity';
import type { PoolClient } from '#manager/rpc/pool-client';
import { ConfigFile } from './config-file.ts';
import * as schema from './config-schema.ts';
import { withOptionNames } from './option-names.ts';
import { type OutputFormat, UsageError } from './output.ts';
import { clientFile } from './pool-folder.ts';
import { stateFolder } from './state-folder.ts';

/** What every command that asks the manager takes. */
export interface PoolOptions {
  readonly output: OutputFormat;
  readonly state?: string;
  /** `address:port`; with it, all three files are needed. */
  readonly manager?: string;
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface PoolConnection extends PoolClient {
  /** `address:port`, for messages. */
  readonly address: string;
}

interface Access {
  readonly endpoint: HostAndPort;
  readonly files: CredentialFiles;
}

const clientSchema = schema.fields({
  manager: schema.peerEndpoint,
  certificates: schema.certificates,
});

/** Whether these options, or the state folder, name a manager. */
export function hasManager(options: Omit<PoolOptions, 'output'>): boolean {
  return options.manager !== undefined || existsSync(clientFile(stateFolder(options.state)));
}

/** `address:port` of the manager of the pool that was made in a state folder. */
export function poolManager(state: string): string {
  return formatEndpoint(new ConfigFile(clientFile(state)).parse(clientSchema).manager);
}

/** A connection that `use` may work with; it is closed at the end. */
export async function withPool<T>(
  options: PoolOptions,
  use: (pool: PoolConnection) => Promise<T>,
): Promise<T> {
  const pool = await openPool(options);
  try {
    return await use(pool);
  } finally {
    pool.close();
  }
}

/** Checks what can be checked without the manager; it is not asked yet. */
export async function openPool(options: Omit<PoolOptions, 'output'>): Promise<PoolConnection> {
  const access = accessOf(options);
  const credentials = userCredentials(access.files);
  // Slow to load: help and mistakes come without.
  const { connectPool } = await import('#manager/rpc/pool-client');
  const { host, port } = access.endpoint;
  const client = connectPool({ host, port, credentials });
  return {
    pool: client.pool,
    address: formatEndpoint(access.endpoint),
    close: () => client.close(),
  };
}

function accessOf(options: Omit<PoolOptions, 'output'>): Access {
  const { manager, ca, cert, key } = options;
  if (manager !== undefined) {
    if (ca === undefined || cert === undefined || key === undefined) {
      throw new UsageError(
        '--manager needs --ca, --cert and --key: who you are is in your certificate',
      );
    }
    return { endpoint: endpointOf(manager), files: { ca, cert, key } };
  }
  if (ca !== undefined || cert !== undefined || key !== undefined) {
    throw new UsageError('--ca, --cert and --key belong to --manager ADDRESS');
  }
  const folder = stateFolder(options.state);
  const file = clientFile(folder);
  if (!existsSync(file)) {
    throw new DxpuError(
      'failed_precondition',
      `no manager is known in ${folder}: start a pool with dxpu up, name another folder with ` +
        '--state, or the manager with --manager ADDRESS --ca FILE --cert FILE --key FILE',
      { details: { folder } },
    );
  }
  const source = new ConfigFile(file);
  const { manager: endpoint, certificates } = source.parse(clientSchema);
  return { endpoint, files: source.credentialFiles(certificates) };
}

function endpointOf(text: string): HostAndPort {
  try {
    return parseEndpoint(text);
  } catch (error) {
    throw new UsageError(`--manager: ${DxpuError.from(error).message}`);
  }
}

/** The certificate itself says which user this is. */
function userCredentials(files: CredentialFiles): TlsCredentials {
  let id = '';
  try {
    const { subjectAltName } = new X509Certificate(readFileSync(files.cert, 'utf8'));
    const named = identityOfNames(subjectAltName);
    if (named.kind === 'user') id = named.id;
  } catch {
    // Loading says what is wrong with it.
  }
  return loadCredentials(files, { kind: 'user', id: id === '' ? 'NAME' : id }, Date.now());
}

/**
 * What a failed call is to be told as: when nobody answered, where, and the way out. Refusals of the
 * manager say all that by themselves.
 */
export function poolFailure(thrown: unknown, pool: Pick<PoolConnection, 'address'>): DxpuError {
  const error = withOptionNames(DxpuError.from(thrown));
  if (error.code !== 'unavailable') return error;
  return new DxpuError(
    'unavailable',
    `${lossText(error, pool)}; is it running? dxpu status shows what runs here, dxpu up starts ` +
      'what does not',
    { details: { ...error.details, manager: pool.address }, cause: error },
  );
}

/** Which manager does not answer, and why. */
export function lossText(
  { message }: DxpuError,
  { address }: Pick<PoolConnection, 'address'>,
): string {
  return message.includes(address)
    ? message
    : `no answer from the manager at ${address}: ${message}`;
}
