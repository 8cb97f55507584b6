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

/** Takes requests of HTTP/1.1 and HTTP/2. */
export type NodeHandler = ReturnType<typeof connectNodeAdapter>;
export type NodeServerRequest = Parameters<NodeHandler>[0];
type NodeServerResponse = Parameters<NodeHandler>[1];

export interface NodeHandlerOptions {
  readonly router: ConnectRouter;
  readonly contextValues: (request: NodeServerRequest) => ContextValues;
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
      const values = options.contextValues(request);
      universal = universalRequestFromNodeRequest(request, response, undefined, values);
    } catch {
      refuse(response, 400, 'invalid_argument', 'this is no request: it names no host');
      return;
    }
    handler(universal)
      .then((answer) => universalResponseToNodeResponse(answer, response))
      .catch((thrown: unknown) => {
        // Who is gone hears nothing; that is no fault of ours.
        if (!universal.signal.aborted && !response.destroyed) options.onFault(thrown);
      });
  };
}

/** As the Connect protocol says it. */
function refuse(response: NodeServerResponse, status: number, code: string, message: string): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ code, message }));
}
