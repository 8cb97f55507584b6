/**
 * One HTTP/2 connection to the manager, for agents and for users. It opens when it is first needed and
 * again after it was lost; the manager at its other end is verified before anything is sent.
 *
 * Pings keep it honest: while a call is under way and nothing comes in, one goes out every
 * `PING_INTERVAL_MS`; without an answer within `PING_TIMEOUT_MS` the connection and its calls end with
 * `unavailable`. The manager does the same from its side.
 */
import type { Http2Session } from 'node:http2';
import type { Interceptor, Transport } from '@connectrpc/connect';
import { createConnectTransport, Http2SessionManager } from '@connectrpc/connect-node';
import { DxpuError } from '#base/errors';
import { secureClientOptions } from '#identity/secure-client';
import { checkPemTexts, type PemTexts } from '#identity/tls-identity';
import { fromRpcError } from './rpc-error.ts';

const PING_INTERVAL_MS = 2000;
const PING_TIMEOUT_MS = 6000;
const OPEN_WITHIN_MS = 5000;
/** A whole order or a page of a list. */
const READ_MAX_BYTES = 64 << 20;
const CREDENTIAL_NAMES = { ca: 'credentials.ca', cert: 'credentials.cert', key: 'credentials.key' };

export interface ManagerConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly credentials: PemTexts;
  /** Where given, the manager must be this one and no other. */
  readonly manager?: string;
  /** How long a connection may take to open; 5 s by default. */
  readonly openWithinMs?: number;
  /** In place of `PING_INTERVAL_MS` and `PING_TIMEOUT_MS`. */
  readonly pings?: { readonly intervalMs: number; readonly timeoutMs: number };
}

export interface ManagerConnection {
  /** For `createClient`. Its calls fail with `ConnectError`s: `fromRpcError` turns them back. */
  readonly transport: Transport;
  /**
   * Opens it unless it is open. Rejects with a `DxpuError` that names the address and what is wrong:
   * `invalid_argument` where the credentials are of no use.
   */
  open(): Promise<void>;
  /** Ends it, and every call under way with `cancelled`. */
  close(): void;
}

export function connectManager(options: ManagerConnectionOptions): ManagerConnection {
  const { host, port, credentials, manager } = options;
  const where = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const baseUrl = `https://${where}`;
  const session = new Http2SessionManager(
    baseUrl,
    {
      pingIntervalMs: options.pings?.intervalMs ?? PING_INTERVAL_MS,
      pingTimeoutMs: options.pings?.timeoutMs ?? PING_TIMEOUT_MS,
    },
    secureClientOptions(credentials, {
      kind: 'manager',
      ...(manager === undefined ? {} : { id: manager }),
    }),
  );
  const withinMs = options.openWithinMs ?? OPEN_WITHIN_MS;

  const failure = (reason: unknown): DxpuError => {
    const { code, message, details } = fromRpcError(reason);
    return new DxpuError(code, `cannot connect to the manager at ${where}: ${message}`, {
      details: { ...details, address: where },
      cause: reason,
    });
  };
  let checked = false;
  const open = async (): Promise<void> => {
    if (!checked) {
      // The library tells nothing of an error before there is a connection.
      checkPemTexts(credentials, CREDENTIAL_NAMES, 'dxpu cert issue KIND ID');
      checked = true;
    }
    const timer = setTimeout(() => {
      if (session.state() !== 'connecting') return;
      session.abort(new DxpuError('unavailable', `no answer within ${withinMs} ms`));
    }, withinMs);
    const state = await session.connect();
    clearTimeout(timer);
    if (state === 'error') {
      throw failure(session.error() ?? new DxpuError('unavailable', 'the connection was closed'));
    }
  };
  const opened: Interceptor = (next) => async (request) => {
    await open();
    return next(request);
  };
  return {
    transport: createConnectTransport({
      httpVersion: '2',
      baseUrl,
      sessionManager: withoutLateErrors(session),
      interceptors: [opened],
      readMaxBytes: READ_MAX_BYTES,
      // Everybody is near enough; what compresses well is small.
      acceptCompression: [],
    }),
    open,
    close: () => session.abort(new DxpuError('cancelled', 'the connection was closed')),
  };
}

type SessionManager = NonNullable<
  Extract<Parameters<typeof createConnectTransport>[0], { httpVersion: '2' }>['sessionManager']
>;

/**
 * A connection that a ping has found dead tells its error some turns later. Closed in between, the
 * library listens no more, and the error would end the process.
 */
function withoutLateErrors(session: Http2SessionManager): SessionManager {
  const heard = new WeakSet<Http2Session>();
  return {
    authority: session.authority,
    request: async (...call) => {
      const stream = await session.request(...call);
      const connection = stream.session;
      if (connection !== undefined && !heard.has(connection)) {
        heard.add(connection);
        connection.on('error', () => {});
      }
      return stream;
    },
    notifyResponseByteRead: (stream) => session.notifyResponseByteRead(stream),
  };
}
