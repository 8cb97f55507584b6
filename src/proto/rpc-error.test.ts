/** Errors arrive as they were said, whatever they are. */
import { create } from '@bufbuild/protobuf';
import { Code, ConnectError } from '@connectrpc/connect';
import { errorFromJson, errorToJson } from '@connectrpc/connect/protocol-connect';
import { describe, expect, it } from 'vitest';
import { DXPU_ERROR_CODES, DxpuError } from '#base/errors';
import { RefusalSchema } from './generated/dxpu/pool/v1/pool_pb.ts';
import { fromRpcError, toRpcError } from './rpc-error.ts';

/** Over the JSON of the Connect protocol and back. */
function overTheWire(error: unknown): DxpuError {
  const json = errorToJson(toRpcError(error), undefined);
  const text = JSON.stringify(json);
  return fromRpcError(errorFromJson(JSON.parse(text), undefined, new ConnectError('no error')));
}

describe('an error of ours', () => {
  it.each(DXPU_ERROR_CODES)('of code %s keeps it, its message and its details', (code) => {
    const details = { binding: 'b7', known: 3, deep: { list: [1, 'two', null, true] } };
    const back = overTheWire(new DxpuError(code, 'what happened; do this', { details }));
    expect(back).toMatchObject({ code, message: 'what happened; do this' });
    expect(back.details).toEqual(details);
  });

  it('without details has none', () => {
    expect(overTheWire(new DxpuError('aborted', 'no')).details).toEqual({});
  });

  it('with a number of 64 bits in its details keeps it, as text', () => {
    const details = { limit: 2n ** 60n };
    expect(overTheWire(new DxpuError('aborted', 'no', { details })).details).toEqual({
      limit: '1152921504606846976',
    });
  });

  it('with a refusal keeps it as the message it is', () => {
    const refusal = create(RefusalSchema, {
      summary: 'too few',
      reasons: [{ reason: 'bound', count: 3, message: '3 are bound' }],
    });
    const error = new DxpuError('resource_exhausted', 'too few', {
      details: { refusal, host: 'h1' },
    });
    expect(overTheWire(error).details).toEqual({ refusal, host: 'h1' });
  });

  it('the codes are numbered as gRPC numbers them', () => {
    expect(toRpcError(new DxpuError('cancelled', '')).code).toBe(Code.Canceled);
    expect(toRpcError(new DxpuError('resource_exhausted', '')).code).toBe(Code.ResourceExhausted);
    expect(toRpcError(new DxpuError('unauthenticated', '')).code).toBe(Code.Unauthenticated);
  });
});

it('anything else is internal and tells nothing', () => {
  const back = overTheWire(new Error('the key is 12345'));
  expect(back.code).toBe('internal');
  expect(JSON.stringify([back.message, back.details])).not.toContain('12345');
});

describe('what keeps an answer from coming', () => {
  const because = (code: string): ConnectError =>
    new ConnectError('x', Code.Aborted, {}, [], Object.assign(new Error(code), { code }));

  it.each([
    ['ECONNREFUSED', 'unavailable', 'nobody listens there'],
    ['ECONNRESET', 'unavailable', 'the connection was lost'],
    ['ERR_HTTP2_STREAM_CANCEL', 'unavailable', 'the connection was lost'],
    ['CERT_HAS_EXPIRED', 'unauthenticated', 'has expired'],
    ['SELF_SIGNED_CERT_IN_CHAIN', 'unauthenticated', 'another CA'],
  ])('%s is %s', (cause, code, says) => {
    const error = fromRpcError(because(cause));
    expect(error.code).toBe(code);
    expect(error.message).toContain(says);
  });

  it('our own word inside another error is what it is', () => {
    const own = new DxpuError('permission_denied', 'it is a box');
    expect(fromRpcError(new ConnectError('x', Code.Internal, {}, [], own))).toBe(own);
  });
});
