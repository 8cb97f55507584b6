/**
 * Makes `SocketTransport`s: a listener takes connections, `connectTransport` opens one. Over TLS the
 * peer has been verified before anybody sees the transport. Plain TCP believes what its options say
 * about the peer: it exists for measuring what TLS costs, and for nothing else.
 */
import * as net from 'node:net';
import * as tls from 'node:tls';
import type { Clock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { DirectInput, readDirectly } from './direct-input.ts';
import { SocketTransport } from './socket-transport.ts';
import { secureOptions, verifyPeer } from '#identity/tls-identity';
import type { ExpectedPeer, TlsCredentials } from '#identity/tls-identity';
import type { PeerIdentity } from './transport.ts';

/** How the bytes are protected. */
export type Protection =
  | {
      readonly kind: 'tls';
      readonly credentials: TlsCredentials;
      readonly expected: ExpectedPeer<PeerIdentity['kind']>;
    }
  | { readonly kind: 'insecure-plain-tcp'; readonly peer: PeerIdentity };

const DEFAULT_HANDSHAKE_TIMEOUT_MS = 5000;
/** How the error of a connection ends that found nobody: the peer may not have been started yet. */
export const NOBODY_LISTENS = 'nobody listens there';
/** Probes that notice a peer whose machine vanished, where the link itself is idle. */
const KEEP_ALIVE_MS = 10_000;

export interface ListenOptions {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly protection: Protection;
  readonly clock: Clock;
  readonly handshakeTimeoutMs?: number;
  /** A verified connection from an address; call `start` on it within the call or close it. */
  readonly onTransport: (transport: SocketTransport, from: string) => void;
  /** A connection was refused: the error says who and why. */
  readonly onRefused: (error: DxpuError) => void;
}

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Takes no more connections. Those there are stay. */
  close(): void;
}

/** Listens. Fails with a `DxpuError` that names address and port. */
export function listenTransports(options: ListenOptions): Promise<Listener> {
  const server =
    options.protection.kind === 'tls'
      ? tlsServer(options, options.protection)
      : plainServer(options, options.protection.peer);
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(listenError(error, options.host, options.port));
    });
    server.listen({ host: options.host, port: options.port }, () => {
      const address = server.address() as net.AddressInfo;
      resolve({
        host: address.address,
        port: address.port,
        close: () => {
          server.close();
          server.unref();
        },
      });
    });
  });
}

function plainServer(options: ListenOptions, peer: PeerIdentity): net.Server {
  return net.createServer({ noDelay: true }, (socket) => {
    options.onTransport(takenIn(socket, peer, options.clock), addressOf(socket));
  });
}

function tlsServer(
  options: ListenOptions,
  protection: Extract<Protection, { kind: 'tls' }>,
): net.Server {
  const timeoutMs = options.handshakeTimeoutMs ?? DEFAULT_HANDSHAKE_TIMEOUT_MS;
  const refused = (socket: tls.TLSSocket, from: string, error: DxpuError): void => {
    socket.destroy();
    options.onRefused(
      new DxpuError(error.code, `connection from ${from} refused: ${error.message}`, {
        details: { ...error.details, from },
        cause: error,
      }),
    );
  };
  const server = tls.createServer({
    ...secureOptions(protection.credentials),
    noDelay: true,
    handshakeTimeout: timeoutMs,
    requestCert: true,
    // `verifyPeer` refuses, with a reason; see there.
    rejectUnauthorized: false,
  });
  // A socket that is gone does not know any more who was at its other end.
  const cameFrom = new WeakMap<net.Socket, string>();
  server.on('connection', (raw: net.Socket) => cameFrom.set(raw, addressOf(raw)));
  server.on('secureConnection', (socket) => {
    const from = addressOf(socket);
    let peer: PeerIdentity;
    try {
      peer = verifyPeer(socket, protection.expected);
    } catch (error) {
      socket.on('error', () => {}); // It is refused already.
      refused(socket, from, DxpuError.from(error));
      return;
    }
    socket.setKeepAlive(true, KEEP_ALIVE_MS);
    options.onTransport(takenIn(socket, peer, options.clock), from);
  });
  server.on('tlsClientError', (error, socket) => {
    const from = cameFrom.get(rawOf(socket)) ?? addressOf(socket);
    refused(socket, from, handshakeError(error, timeoutMs));
  });
  return server;
}

function takenIn(socket: net.Socket, peer: PeerIdentity, clock: Clock): SocketTransport {
  const transport = new SocketTransport(socket, peer, clock, readDirectly(socket));
  transport.expectHello();
  return transport;
}

export interface ConnectOptions {
  readonly host: string;
  readonly port: number;
  readonly protection: Protection;
  readonly clock: Clock;
  readonly handshakeTimeoutMs?: number;
  /** Gives up; the promise rejects with `cancelled`. */
  readonly signal?: AbortSignal;
}

/** Opens one connection. Fails with a `DxpuError` that names the address and what is wrong. */
export function connectTransport(options: ConnectOptions): Promise<SocketTransport> {
  const { protection, clock, host, port } = options;
  const timeoutMs = options.handshakeTimeoutMs ?? DEFAULT_HANDSHAKE_TIMEOUT_MS;
  const where = `${host}:${port}`;
  return new Promise((resolve, reject) => {
    const secure = protection.kind === 'tls';
    const direct = new DirectInput();
    const { onread } = direct;
    const tlsOptions = {
      ...(secure ? secureOptions(protection.credentials) : {}),
      host,
      port,
      onread,
      // `verifyPeer` refuses, with a reason; names of hosts mean nothing here.
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    };
    const socket = secure
      ? tls.connect(tlsOptions)
      : net.connect({ host, port, noDelay: true, onread });

    const finish = (): void => {
      clearTimeout(timer);
      options.signal?.removeEventListener('abort', onAbort);
      socket.removeListener('error', onError);
      socket.removeListener('close', onClose);
    };
    const fail = (error: DxpuError): void => {
      finish();
      socket.on('error', () => {}); // It has failed already.
      socket.destroy();
      reject(
        new DxpuError(error.code, `cannot connect to ${where}: ${error.message}`, {
          details: { ...error.details, address: where },
          cause: error,
        }),
      );
    };
    const onError = (error: Error): void => fail(handshakeError(error, timeoutMs));
    const onClose = (): void =>
      fail(new DxpuError('unavailable', 'the peer closed the connection'));
    const onAbort = (): void => fail(new DxpuError('cancelled', 'given up'));
    const timer = setTimeout(() => {
      fail(new DxpuError('deadline_exceeded', `no answer within ${timeoutMs} ms`));
    }, timeoutMs);
    socket.on('error', onError);
    socket.on('close', onClose);
    if (options.signal?.aborted === true) {
      onAbort();
      return;
    }
    options.signal?.addEventListener('abort', onAbort);

    socket.once(secure ? 'secureConnect' : 'connect', () => {
      let peer: PeerIdentity;
      try {
        peer = secure ? verifyPeer(socket as tls.TLSSocket, protection.expected) : protection.peer;
      } catch (error) {
        fail(DxpuError.from(error));
        return;
      }
      finish();
      socket.setKeepAlive(true, KEEP_ALIVE_MS);
      resolve(new SocketTransport(socket, peer, clock, direct));
    });
  });
}

/** The TCP socket below a TLS socket; Node has no documented way to it. */
function rawOf(socket: tls.TLSSocket): net.Socket {
  return (socket as { readonly _parent?: net.Socket })._parent ?? socket;
}

function addressOf(socket: net.Socket): string {
  const { remoteAddress, remotePort } = socket;
  // Closed before it could be taken: the system does not tell any more.
  if (remoteAddress === undefined) return 'an address that was gone at once';
  return `${remoteAddress}:${remotePort ?? 0}`;
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): DxpuError {
  const where = `${host}:${port}`;
  switch (error.code) {
    case 'EADDRINUSE':
      return new DxpuError(
        'already_exists',
        `cannot listen on ${where}: the port is in use; choose another, or end the process that has it`,
        { cause: error, details: { address: where } },
      );
    case 'EADDRNOTAVAIL':
      return new DxpuError(
        'invalid_argument',
        `cannot listen on ${where}: ${host} is not an address of this machine`,
        { cause: error, details: { address: where } },
      );
    case 'EACCES':
      return new DxpuError(
        'permission_denied',
        `cannot listen on ${where}: ports below 1024 need privileges; choose a higher one`,
        { cause: error, details: { address: where } },
      );
    default:
      return new DxpuError(
        DxpuError.from(error).code,
        `cannot listen on ${where}: ${error.message}`,
        { cause: error, details: { address: where } },
      );
  }
}

function handshakeError(error: Error, timeoutMs: number): DxpuError {
  const code = (error as NodeJS.ErrnoException).code ?? '';
  const details = { code };
  switch (code) {
    case 'ECONNREFUSED':
      return new DxpuError('unavailable', NOBODY_LISTENS, { cause: error, details });
    case 'ERR_TLS_HANDSHAKE_TIMEOUT':
      return new DxpuError('deadline_exceeded', `no TLS handshake within ${timeoutMs} ms`, {
        cause: error,
        details,
      });
    case 'ERR_SSL_UNSUPPORTED_PROTOCOL':
    case 'ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION':
      return new DxpuError('unauthenticated', 'the peer does not speak TLS 1.3', {
        cause: error,
        details,
      });
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
    case 'ERR_SSL_HTTP_REQUEST':
      return new DxpuError('unauthenticated', 'the peer does not speak TLS', {
        cause: error,
        details,
      });
    case 'ECONNRESET':
      return new DxpuError('unavailable', 'the peer went away during the handshake', {
        cause: error,
        details,
      });
    default:
      return new DxpuError(DxpuError.from(error).code, error.message, { cause: error, details });
  }
}
