/** Who is at the other end of a request: proved by the certificate of its connection, and by it alone. */
import * as http2 from 'node:http2';
import type { TLSSocket } from 'node:tls';
import {
  type ContextKey,
  createContextKey,
  createContextValues,
  type ContextValues,
} from '@connectrpc/connect';
import { assert, assertDefined } from '#base/assert';
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

interface Admitted {
  readonly from: string;
  readonly identity: Identity;
  /** Ends the request though its peer does not even take an error any more. */
  readonly abort: () => void;
}

const ADMITTED: ContextKey<Admitted | undefined> = createContextKey(undefined);

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

/** What handlers are to know of a request of a peer that was not refused. */
export function contextOf({ from, identity }: Peer, request: NodeServerRequest): ContextValues {
  assert(!(identity instanceof DxpuError), 'who is refused gets no context');
  const abort = isHttp2(request)
    ? () => request.stream.close(http2.constants.NGHTTP2_CANCEL)
    : () => {
        request.socket.destroy();
      };
  return createContextValues().set(ADMITTED, { from, identity, abort });
}

export function isHttp2(request: NodeServerRequest): request is http2.Http2ServerRequest {
  return 'stream' in request;
}

interface WithValues {
  readonly values: ContextValues;
}

export function peerOf({ values }: WithValues): Identity {
  return admitted(values).identity;
}

export function refusalLine({ values }: WithValues, error: DxpuError): DxpuError {
  const { from, identity } = admitted(values);
  return refusalOf({ from, identity }, error);
}

export function abortRequest({ values }: WithValues): void {
  admitted(values).abort();
}

function admitted(values: ContextValues): Admitted {
  return assertDefined(values.get(ADMITTED), 'each request has its peer');
}
