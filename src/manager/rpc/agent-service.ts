/**
 * `AgentService` over a shell: one stream an agent. The hello must be of the certificate's own identity;
 * what follows are reports in, orders out. Whatever breaks the contract ends the stream with an error that
 * says so, and is reported.
 */
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect';
import { DxpuError } from '#base/errors';
import { MessageQueue } from '#base/message-queue';
import { type Identity, identityName, identityUri } from '#identity/identity';
import type { AgentHello, AgentOrder } from '#proto/agent-messages';
import { agentMessageFromWire, orderToWire } from '#proto/agent-wire';
import type * as pb from '#proto/generated/dxpu/agent/v1/agent_pb';
import { toRpcError } from '#proto/rpc-error';
import type { AgentSession, Shell } from '../shell/shell.ts';
import { abortRequest, type FaultReport, peerOf, refusalLine } from './peers.ts';

type Implementation = ServiceImpl<typeof pb.AgentService>;

export interface AgentServiceOptions {
  readonly shell: Shell;
  readonly report: FaultReport;
}

/** Orders an agent may be behind. They are changes of a few slots each, but for the first. */
const MAX_WAITING_ORDERS = 1024;
const HELLO_WITHIN_MS = 10_000;

export function agentService({ shell, report }: AgentServiceOptions): Implementation {
  return {
    async *connect(requests: AsyncIterable<pb.ConnectRequest>, context: HandlerContext) {
      const incoming = requests[Symbol.asyncIterator]();
      let session: AgentSession | undefined;
      try {
        const identity = agentIdentity(peerOf(context));
        const hello = await helloOf(incoming, identity);
        const queue = new MessageQueue<AgentOrder>(MAX_WAITING_ORDERS, () => {
          const deaf = new DxpuError(
            'resource_exhausted',
            `${identityName(identity)} is ${MAX_WAITING_ORDERS} orders behind: it does not read`,
          );
          report.refused(refusalLine(context, deaf));
          // It would not read that either.
          queue.end();
          abortRequest(context);
        });
        session = shell.openSession(hello, {
          order: (order) => queue.push(order),
          end: (error) => queue.end(error),
        });
        void readReports(incoming, hello, session, context.signal).then(
          () => queue.end(),
          (error: unknown) => queue.end(DxpuError.from(error)),
        );
        for await (const order of queue) yield orderToWire(order);
      } catch (error) {
        tell(report, context, error);
        throw toRpcError(error);
      } finally {
        session?.close();
        void incoming.return?.().catch(() => {});
      }
    },
  };
}

/** What ended a stream, where somebody should know. */
function tell(report: FaultReport, context: HandlerContext, error: unknown): void {
  if (error instanceof DxpuError) {
    // Of our own ends the shell has told already; of a peer's there is nothing wrong.
    if (error.code === 'unavailable' || error.code === 'cancelled') return;
    report.refused(refusalLine(context, error));
  } else if (!isWriteError(error)) {
    report.fault(error);
  }
}

/** The library tells us so that the peer is gone. */
function isWriteError(error: unknown): boolean {
  return error instanceof Error && 'code' in error;
}

function agentIdentity(identity: Identity): Identity<'host' | 'box'> {
  const { kind, id } = identity;
  if (kind === 'host' || kind === 'box') return { kind, id };
  throw new DxpuError(
    'permission_denied',
    `${identityUri(identity)} is a ${kind}: AgentService is for hosts and boxes alone`,
    { details: { reason: 'wrong-kind', peer: identityUri(identity) } },
  );
}

async function helloOf(
  incoming: AsyncIterator<pb.ConnectRequest>,
  identity: Identity<'host' | 'box'>,
): Promise<AgentHello> {
  let timer: NodeJS.Timeout | undefined;
  const silence = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(
        new DxpuError(
          'deadline_exceeded',
          `${identityName(identity)} opened a stream and said nothing for ${HELLO_WITHIN_MS} ms`,
        ),
      );
    }, HELLO_WITHIN_MS);
  });
  let first: IteratorResult<pb.ConnectRequest>;
  try {
    first = await Promise.race([incoming.next(), silence]);
  } finally {
    clearTimeout(timer);
  }
  if (first.done === true) throw new DxpuError('cancelled', 'it ended without a hello');
  const { hello } = agentMessageFromWire(first.value);
  if (hello === undefined) {
    throw new DxpuError(
      'failed_precondition',
      `${identityName(identity)} began with a report: the first message is a hello`,
    );
  }
  if (hello.kind !== identity.kind || hello.id !== identity.id) {
    throw new DxpuError(
      'permission_denied',
      `its certificate says ${identityUri(identity)}, its hello ${identityName(hello)}: ` +
        'nobody speaks for another',
      {
        details: {
          reason: 'wrong-identity',
          peer: identityUri(identity),
          claims: identityName(hello),
        },
      },
    );
  }
  return hello;
}

/** Resolves at the end of what the agent says. Rejects when it says what cannot be. */
async function readReports(
  incoming: AsyncIterator<pb.ConnectRequest>,
  hello: AgentHello,
  session: AgentSession,
  signal: AbortSignal,
): Promise<void> {
  let isFirst = true;
  for (;;) {
    let next: IteratorResult<pb.ConnectRequest>;
    try {
      next = await incoming.next();
    } catch (error) {
      // The connection is gone, or the bytes are no message: the library has said which to the peer.
      if (signal.aborted) return;
      throw new DxpuError('invalid_argument', `what it sends is no message: ${String(error)}`, {
        cause: error,
      });
    }
    if (next.done === true) return;
    const { report } = agentMessageFromWire(next.value);
    if (report === undefined || report.kind !== hello.kind) {
      throw new DxpuError(
        'failed_precondition',
        `${identityName(hello)} sent ${report === undefined ? 'a second hello' : `a ${report.kind}'s report`}: ` +
          'after its hello come its own reports',
      );
    }
    if (isFirst && !report.whole) {
      throw new DxpuError(
        'failed_precondition',
        `${identityName(hello)}: the first report is a whole one`,
      );
    }
    isFirst = false;
    session.report(report);
  }
}
