/**
 * Between `DxpuError` and the errors of the RPC library. Code, message and details cross the wire: the
 * details as a `google.protobuf.Struct`, a refusal of placement as the message it is.
 */
import { create, fromJson, type JsonObject, toJson } from '@bufbuild/protobuf';
import { StructSchema } from '@bufbuild/protobuf/wkt';
import { Code, ConnectError } from '@connectrpc/connect';
import { DXPU_ERROR_CODES, DxpuError, type DxpuErrorCode } from '#base/errors';
import { connectionFault } from '#identity/secure-client';
import { type Refusal, RefusalSchema } from './generated/dxpu/pool/v1/pool_pb.ts';

/** Both number the codes as gRPC does: from `cancelled`, 1, to `unauthenticated`, 16. */
const FIRST_CODE: number = Code.Canceled;

/** For the wire. What is no `DxpuError` becomes `internal` without its message: it may tell anything. */
export function toRpcError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  if (!(thrown instanceof DxpuError)) {
    return new ConnectError('a fault of the program: see its log', Code.Internal, {}, [], thrown);
  }
  const { refusal, ...details } = thrown.details;
  const code: Code = DXPU_ERROR_CODES.indexOf(thrown.code) + FIRST_CODE;
  return new ConnectError(
    thrown.message,
    code,
    {},
    [
      ...(Object.keys(details).length === 0
        ? []
        : [{ desc: StructSchema, value: fromJson(StructSchema, plainJson(details)) }]),
      ...(refusal === undefined
        ? []
        : [{ desc: RefusalSchema, value: create(RefusalSchema, refusal as Refusal) }]),
    ],
    thrown,
  );
}

/** What came over the wire, or what kept it from coming. */
export function fromRpcError(thrown: unknown): DxpuError {
  if (thrown instanceof DxpuError) return thrown;
  if (!(thrown instanceof ConnectError)) return DxpuError.from(thrown);
  // Our own end: the cause says more than the library made of it.
  for (let cause = thrown.cause; cause instanceof Error; cause = cause.cause) {
    const fault = connectionFault(cause);
    if (fault !== undefined) return fault;
    if ((cause as NodeJS.ErrnoException).code?.startsWith('ERR_HTTP2_') === true) {
      return new DxpuError('unavailable', 'the connection was lost', { cause: thrown });
    }
  }
  const [struct] = thrown.findDetails(StructSchema);
  const [refusal] = thrown.findDetails(RefusalSchema);
  return new DxpuError(codeOf(thrown.code), thrown.rawMessage, {
    details: {
      ...(struct === undefined ? {} : (toJson(StructSchema, struct) as JsonObject)),
      ...(refusal === undefined ? {} : { refusal }),
    },
    cause: thrown,
  });
}

function codeOf(code: Code): DxpuErrorCode {
  return DXPU_ERROR_CODES[code - FIRST_CODE] ?? 'unknown';
}

/** What of `details` JSON can say. */
function plainJson(details: Readonly<Record<string, unknown>>): JsonObject {
  const text = JSON.stringify(details, (_key, value: unknown) =>
    typeof value === 'bigint' ? String(value) : value,
  );
  return JSON.parse(text) as JsonObject;
}
