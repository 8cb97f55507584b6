/** Who is at the other end of a request: proved by the certificate of its connection, and by it alone. */
import type { Http2ServerRequest } from 'node:http2';
import type { TLSSocket } from 'node:tls';
import {
  type ContextKey,
  createContextKey,
  createContextValues,
  type ContextValues,
} from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import type { Identity } from '#identity/identity';
import { authenticatePeer } from '#identity/tls-identity';
import type { NodeServerRequest } from './node-handler.ts';

/** What goes to whoever runs the manager. Peers can cause the first as often as they like: limit it. */
export interface FaultReport {
  /** A connection, stream or report was refused. The details say whose. */
  refused(error: DxpuError): void;
  /** Something broke in here. */
  fault(thrown: unknown): void;
}

export interface Peer {
  /** `address:port` it came from. */
  readonly from: string;
  /** Or why it is nobody to us. */
  readonly identity: Identity | DxpuError;
}

const NOBODY: Peer = {
  from: '',
  identity: new DxpuError('unauthenticated', 'who is calling is not known'),
};
const PEER: ContextKey<Peer> = createContextKey(NOBODY);
const ABORT: ContextKey<() => void> = createContextKey(() => {});

/** Looks at the certificate of a finished handshake. */
export function identifyPeer(socket: TLSSocket): Peer {
  const address = socket.remoteAddress ?? 'a connection that is gone';
  const from = `${address.includes(':') ? `[${address}]` : address}:${socket.remotePort ?? 0}`;
  try {
    return { from, identity: authenticatePeer(socket) };
  } catch (error) {
    return { from, identity: DxpuError.from(error) };
  }
}

/** A refusal as it is logged: with where it came from. */
export function refusalOf(peer: Peer, error: DxpuError): DxpuError {
  return new DxpuError(error.code, `connection from ${peer.from} refused: ${error.message}`, {
    details: { ...error.details, from: peer.from },
    cause: error,
  });
}

export function contextOf(peer: Peer, request: NodeServerRequest): ContextValues {
  const abort = isHttp2(request)
    ? () => request.stream.close()
    : () => {
        request.socket.destroy();
      };
  return createContextValues().set(PEER, peer).set(ABORT, abort);
}

export function isHttp2(request: NodeServerRequest): request is Http2ServerRequest {
  return 'stream' in request;
}

interface WithValues {
  readonly values: ContextValues;
}

/** The peer of a request. Throws what it was refused with. */
export function peerOf({ values }: WithValues): Identity {
  const { identity } = values.get(PEER);
  if (identity instanceof DxpuError) throw identity;
  return identity;
}

export function refusalLine({ values }: WithValues, error: DxpuError): DxpuError {
  return refusalOf(values.get(PEER), error);
}

/** Ends the stream of a request whose peer does not even take an error any more. */
export function abortRequest({ values }: WithValues): void {
  values.get(ABORT)();
}
