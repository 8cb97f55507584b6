/**
 * Between Node's server and the RPC library's handlers. Two things differ from the library's own adapter:
 * a request that is no request at all is answered rather than thrown, and what goes wrong is told to
 * whoever runs the manager instead of being printed.
 */
import type { connectNodeAdapter } from '@connectrpc/connect-node';
import {
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import type { ConnectRouter, ContextValues } from '@connectrpc/connect';
import { DXPU_ERROR_CODES, type DxpuError } from '#base/errors';

/** Takes requests of HTTP/1.1 and HTTP/2. */
export type NodeHandler = ReturnType<typeof connectNodeAdapter>;
export type NodeServerRequest = Parameters<NodeHandler>[0];
type NodeServerResponse = Parameters<NodeHandler>[1];

export interface NodeHandlerOptions {
  readonly router: ConnectRouter;
  /** What handlers are to know of the request; or why it is refused without being read. */
  readonly admit: (request: NodeServerRequest) => ContextValues | DxpuError;
  readonly onFault: (thrown: unknown) => void;
}

export function nodeHandler(options: NodeHandlerOptions): NodeHandler {
  const handlers = new Map(options.router.handlers.map((one) => [one.requestPath, one]));
  return (request, response) => {
    const [path = ''] = (request.url ?? '').split('?', 1);
    const handler = handlers.get(path);
    if (handler === undefined) {
      refuse(response, 404, 'unimplemented', `there is no ${path.slice(0, 200)} here`);
      return;
    }
    let universal: ReturnType<typeof universalRequestFromNodeRequest>;
    try {
      const admitted = options.admit(request);
      if (admitted instanceof Error) {
        refuseCall(request, response, admitted);
        return;
      }
      universal = universalRequestFromNodeRequest(request, response, undefined, admitted);
    } catch {
      refuse(response, 400, 'invalid_argument', 'this is no request: it names no host');
      return;
    }
    if (hasOneMessage(handler.method.methodKind)) endSlowBody(request);
    handler(universal)
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((thrown: unknown) => {
        // Who is gone hears nothing; that is no fault of ours.
        const isGone =
          universal.signal.aborted ||
          response.destroyed ||
          isClosed(request) ||
          GONE.has((thrown as NodeJS.ErrnoException | undefined)?.code ?? '');
        if (!isGone) options.onFault(thrown);
      });
  };
}

/** What writing to somebody who has just left ends with. */
const GONE: ReadonlySet<string> = new Set([
  'ERR_STREAM_DESTROYED',
  'ERR_HTTP2_INVALID_STREAM',
  'ERR_STREAM_WRITE_AFTER_END',
  'ECONNRESET',
  'EPIPE',
]);

/** How long the one message of a call may take to come in: it is kept until it is whole. */
const BODY_WITHIN_MS = 10_000;

function hasOneMessage(kind: string): boolean {
  return kind === 'unary' || kind === 'server_streaming';
}

function endSlowBody(request: NodeServerRequest): void {
  const timer = setTimeout(() => request.destroy(), BODY_WITHIN_MS).unref();
  const done = (): void => clearTimeout(timer);
  request.once('end', done);
  request.once('close', done);
}

function isClosed(request: NodeServerRequest): boolean {
  return 'stream' in request && request.stream.closed;
}

/** As the Connect protocol says it. */
function refuse(response: NodeServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message }));
}

const STATUS_OF_CODE: Readonly<Record<string, number>> = {
  unauthenticated: 401,
  permission_denied: 403,
  resource_exhausted: 429,
};
/** Flag of the envelope that ends a stream of the Connect protocol. */
const END_STREAM = 2;

/** Answers a call with an error in the protocol it is made in. Nothing of its body is read. */
function refuseCall(
  request: NodeServerRequest,
  response: NodeServerResponse,
  { code, message }: DxpuError,
): void {
  const type = request.headers['content-type'] ?? '';
  if (type.startsWith('application/grpc')) {
    response.writeHead(200, {
      'content-type': type,
      'grpc-status': String(DXPU_ERROR_CODES.indexOf(code) + 1),
      'grpc-message': encodeURIComponent(message),
    });
    response.end();
  } else if (type.startsWith('application/connect+')) {
    const body = Buffer.from(JSON.stringify({ error: { code, message } }));
    const head = Buffer.alloc(5);
    head.writeUInt8(END_STREAM);
    head.writeUInt32BE(body.length, 1);
    response.writeHead(200, { 'content-type': type });
    response.end(Buffer.concat([head, body]));
  } else {
    refuse(response, STATUS_OF_CODE[code] ?? 500, code, message);
  }
}
