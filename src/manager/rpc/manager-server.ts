/**
 * The manager's server: HTTP/2 over TLS 1.3 (HTTP/1.1 too, so that curl will do), with `AgentService` for
 * hosts and boxes and `PoolService` for users. Connect, gRPC and gRPC-Web are spoken.
 *
 * Who is at the other end is looked at once a connection, before anything of it is read. A peer that is
 * refused is let in as far as to hear why: each of its calls is answered with the reason, and nothing
 * of what it sends is looked at.
 */
import * as http2 from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createConnectRouter } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import { errnoReason } from '#base/make-folder';
import { identityName } from '#identity/identity';
import { secureOptions, type TlsCredentials } from '#identity/tls-identity';
import { AgentService } from '#proto/generated/dxpu/agent/v1/agent_pb';
import { PoolService } from '#proto/generated/dxpu/pool/v1/pool_pb';
import type { Shell } from '../shell/shell.ts';
import { agentService } from './agent-service.ts';
import { DEFAULT_KEEP_ALIVE, KeepAlive, type KeepAliveOptions } from './keep-alive.ts';
import { type NodeHandler, nodeHandler, type NodeServerRequest } from './node-handler.ts';
import {
  contextOf,
  type FaultReport,
  identifyPeer,
  isHttp2,
  type Peer,
  refusalOf,
} from './peers.ts';
import { poolService } from './pool-service.ts';

/** A report of a large host in one message. */
const MAX_REPORT_BYTES = 32 << 20;
/** Enough that a request of too many items is told so, not that it is too long. */
const MAX_REQUEST_BYTES = 16 << 20;
const MAX_STREAMS_OF_CONNECTION = 128;
const MAX_CONNECTIONS_OF_IDENTITY = 256;
const HANDSHAKE_WITHIN_MS = 5000;
/** What a peer may send before it was read: a whole report of most hosts. */
const WINDOW_BYTES = 1 << 20;
/** How long one that is refused has to ask and hear why. */
const REFUSED_LIFE_MS = 5000;
/** For last words, when the server closes. */
const LINGER_MS = 200;

export interface ManagerServerOptions {
  readonly shell: Shell;
  /** Of kind `manager`. */
  readonly credentials: TlsCredentials;
  /** Port 0 takes a free one. */
  readonly listen: readonly { readonly host: string; readonly port: number }[];
  readonly report: FaultReport;
  readonly version: string;
  readonly keepAlive?: KeepAliveOptions;
}

export interface ManagerServer {
  /** Where it listens. */
  readonly addresses: readonly { readonly host: string; readonly port: number }[];
  /** Connections now, by what they proved to be: `host/h1` to how many. */
  connections(): ReadonlyMap<string, number>;
  /** Takes no more connections and ends those there are. */
  close(): void;
}

/** Listens at all addresses or at none. Fails with a `DxpuError` that names the address. */
export async function startManagerServer(options: ManagerServerOptions): Promise<ManagerServer> {
  const doors: Door[] = [];
  const guests = new Guests(options);
  try {
    for (const { host, port } of options.listen) {
      doors.push(await openDoor(options, guests, host, port));
    }
  } catch (error) {
    for (const door of doors) door.server.close();
    guests.close();
    throw error;
  }
  return {
    addresses: doors.map(({ host, port }) => ({ host, port })),
    connections: () => guests.counts,
    close: () => {
      for (const { server } of doors) {
        server.close();
        server.unref();
      }
      guests.close();
    },
  };
}

interface Door {
  readonly server: http2.Http2SecureServer;
  readonly host: string;
  readonly port: number;
}

function openDoor(
  options: ManagerServerOptions,
  guests: Guests,
  host: string,
  port: number,
): Promise<Door> {
  const server = http2.createSecureServer(
    {
      ...secureOptions(options.credentials),
      requestCert: true,
      // `identifyPeer` refuses, with a reason.
      rejectUnauthorized: false,
      handshakeTimeout: HANDSHAKE_WITHIN_MS,
      allowHTTP1: true,
      settings: {
        maxConcurrentStreams: MAX_STREAMS_OF_CONNECTION,
        initialWindowSize: WINDOW_BYTES,
      },
      maxSessionMemory: 64,
    },
    (request, response) => guests.handler(request, response),
  );
  server.on('connection', (socket: Socket) => guests.enter(socket));
  server.on('session', (session) => guests.greetHttp2(session));
  server.on('secureConnection', (socket: TLSSocket) => guests.greetHttp1(socket));
  server.on('tlsClientError', (error, socket) => {
    const reason = new DxpuError('unavailable', `the TLS handshake failed: ${error.message}`);
    options.report.refused(refusalOf(identifyPeer(socket), reason));
    socket.destroy();
  });
  // Of one session: its streams have their own handlers.
  server.on('sessionError', () => {});
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host, port }, () => {
      const { address, port: taken } = server.address() as AddressInfo;
      server.removeAllListeners('error');
      server.on('error', (error) => options.report.fault(error));
      resolve({ server, host: address, port: taken });
    });
  });
}

/** Who is connected, at whichever door they came in. */
class Guests {
  readonly handler: NodeHandler;
  readonly counts = new Map<string, number>();
  readonly #report: FaultReport;
  readonly #keepAlive: KeepAlive;
  readonly #peers = new WeakMap<http2.Http2Session | TLSSocket, Peer>();
  readonly #sessions = new Set<http2.ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  #isClosed = false;

  constructor(options: ManagerServerOptions) {
    const { shell, report, version } = options;
    this.#report = report;
    this.#keepAlive = new KeepAlive(options.keepAlive ?? DEFAULT_KEEP_ALIVE, (session) => {
      const peer = this.#peers.get(session);
      if (peer === undefined) return;
      const silent = new DxpuError('unavailable', 'it does not answer pings any more');
      report.refused(refusalOf(peer, silent));
    });
    this.handler = nodeHandler({
      admit: (request) => {
        const peer = this.#peerOf(request);
        return peer.identity instanceof DxpuError ? peer.identity : contextOf(peer, request);
      },
      onFault: (thrown) => report.fault(thrown),
      // A mistyped field asks for something else than was meant.
      router: createConnectRouter({ jsonOptions: { ignoreUnknownFields: false } })
        .service(AgentService, agentService({ shell, report }), { readMaxBytes: MAX_REPORT_BYTES })
        .service(PoolService, poolService({ shell, report, version }), {
          readMaxBytes: MAX_REQUEST_BYTES,
        }),
    });
  }

  /** A connection before its handshake. */
  enter(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    // It was waiting to be taken when the door was closed.
    if (this.#isClosed) socket.destroy();
  }

  /** A connection whose handshake is done, and which speaks HTTP/2. */
  greetHttp2(session: http2.ServerHttp2Session): void {
    if (this.#isClosed) {
      session.destroy();
      return;
    }
    const { identity } = this.#admit(session, session.socket as TLSSocket);
    this.#sessions.add(session);
    session.setLocalWindowSize(WINDOW_BYTES);
    session.once('close', () => this.#sessions.delete(session));
    session.on('error', () => {}); // Followed by 'close'.
    if (!(identity instanceof DxpuError)) this.#keepAlive.add(session);
  }

  /** Any connection whose handshake is done; those of HTTP/2 are greeted as such. */
  greetHttp1(socket: TLSSocket): void {
    if (socket.alpnProtocol !== 'h2') this.#admit(socket, socket);
  }

  close(): void {
    this.#isClosed = true;
    this.#keepAlive.stop();
    for (const session of this.#sessions) session.close();
    setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, LINGER_MS).unref();
  }

  #peerOf(request: NodeServerRequest): Peer {
    const connection = isHttp2(request) ? request.stream.session : (request.socket as TLSSocket);
    // A stream that is gone has no session any more.
    const peer = connection === undefined ? undefined : this.#peers.get(connection);
    const from = 'a connection that is gone';
    return peer ?? { from, identity: new DxpuError('unavailable', 'its connection is gone') };
  }

  /** Who is at the other end of `connection`. One that is refused stays to ask and hear why. */
  #admit(connection: http2.ServerHttp2Session | TLSSocket, socket: TLSSocket): Peer {
    const peer = this.#count(identifyPeer(socket), connection);
    this.#peers.set(connection, peer);
    if (peer.identity instanceof DxpuError) {
      this.#report.refused(refusalOf(peer, peer.identity));
      const timer = setTimeout(() => connection.destroy(), REFUSED_LIFE_MS).unref();
      connection.once('close', () => clearTimeout(timer));
    }
    return peer;
  }

  /** Counts a connection of an identity; one too many is refused. */
  #count(peer: Peer, connection: NodeJS.EventEmitter): Peer {
    const { identity } = peer;
    if (identity instanceof DxpuError) return peer;
    const name = identityName(identity);
    const count = this.counts.get(name) ?? 0;
    if (count >= MAX_CONNECTIONS_OF_IDENTITY) {
      const refusal = new DxpuError(
        'resource_exhausted',
        `${name} has ${count} connections already: close some`,
      );
      return { from: peer.from, identity: refusal };
    }
    this.counts.set(name, count + 1);
    connection.once('close', () => {
      const left = (this.counts.get(name) ?? 1) - 1;
      if (left === 0) this.counts.delete(name);
      else this.counts.set(name, left);
    });
    return peer;
  }
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): DxpuError {
  const where = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
  const reason =
    error.code === 'EADDRINUSE'
      ? 'another process listens there: stop it, or choose another port'
      : error.code === 'EADDRNOTAVAIL'
        ? 'this machine has no such address'
        : error.code === 'EACCES'
          ? 'this user may not: choose a port from 1024'
          : errnoReason(error);
  return new DxpuError(DxpuError.from(error).code, `cannot listen on ${where}: ${reason}`, {
    details: { address: where },
    cause: error,
  });
}
