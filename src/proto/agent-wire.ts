/**
 * Between the messages of `AgentService` and the plain values of agent-messages.ts, in both directions.
 * What comes from the wire is either a checked value or a `DxpuError` with `invalid_argument` that names
 * the field; whoever gets one ends the stream. Ours is made to fit: an overlong message is cut.
 */
import { create } from '@bufbuild/protobuf';
import { type AgentHello, type AgentOrder, type AgentReport, BOX_KINDS } from './agent-messages.ts';
import * as pb from './generated/dxpu/agent/v1/agent_pb.ts';
import {
  boxOrderFromWire,
  boxOrderToWire,
  endpointsFromWire,
  endpointsToWire,
  hostOrderFromWire,
  hostOrderToWire,
} from './order-wire.ts';
import {
  boxReportFromWire,
  boxReportToWire,
  hostReportFromWire,
  hostReportToWire,
} from './report-wire.ts';
import * as field from './wire-fields.ts';

/** What an agent says: its hello first, then reports. */
export type AgentMessage =
  | { readonly hello: AgentHello; readonly report?: undefined }
  | { readonly report: AgentReport; readonly hello?: undefined };

export function helloToWire(hello: AgentHello): pb.ConnectRequest {
  const { id, instance, version } = hello;
  return create(pb.ConnectRequestSchema, {
    message: {
      case: 'hello',
      value: {
        id,
        instance,
        version,
        role:
          hello.kind === 'box'
            ? {
                case: 'box',
                value: {
                  boxKind: field.enumNumber(hello.boxKind, BOX_KINDS) as pb.BoxKind,
                  zone: hello.zone,
                  endpoints: endpointsToWire(hello.endpoints),
                },
              }
            : { case: 'host', value: { reach: [...hello.reach] } },
      },
    },
  });
}

export function reportToWire(report: AgentReport): pb.ConnectRequest {
  return create(pb.ConnectRequestSchema, {
    message:
      report.kind === 'box'
        ? { case: 'boxReport', value: boxReportToWire(report) }
        : { case: 'hostReport', value: hostReportToWire(report) },
  });
}

export function agentMessageFromWire({ message }: pb.ConnectRequest): AgentMessage {
  switch (message.case) {
    case 'hello':
      return { hello: helloFromWire(message.value) };
    case 'boxReport':
      return { report: boxReportFromWire(message.value) };
    case 'hostReport':
      return { report: hostReportFromWire(message.value) };
    case undefined:
      throw field.wireError('', 'message', 'is missing: a hello or a report is expected');
  }
}

function helloFromWire(hello: pb.Hello): AgentHello {
  const common = {
    id: field.name('hello', 'id', hello.id),
    instance: field.filledWord('hello', 'instance', hello.instance),
    version: field.word('hello', 'version', hello.version),
  };
  const { role } = hello;
  switch (role.case) {
    case 'box':
      return {
        kind: 'box',
        ...common,
        boxKind: field.enumName('hello.box', 'box_kind', role.value.boxKind, BOX_KINDS),
        zone: field.word('hello.box', 'zone', role.value.zone),
        endpoints: endpointsFromWire('hello.box', role.value.endpoints),
      };
    case 'host':
      return {
        kind: 'host',
        ...common,
        reach: field.list('hello.host', 'reach', role.value.reach, field.MAX_ZONES, (zone, at) =>
          field.filledWord(at, '', zone),
        ),
      };
    case undefined:
      throw field.wireError('hello', 'role', 'is missing: a box or a host is expected');
  }
}

export function orderToWire(order: AgentOrder): pb.ConnectResponse {
  return create(pb.ConnectResponseSchema, {
    message:
      order.kind === 'box'
        ? { case: 'boxOrder', value: boxOrderToWire(order) }
        : { case: 'hostOrder', value: hostOrderToWire(order) },
  });
}

export function orderFromWire({ message }: pb.ConnectResponse): AgentOrder {
  switch (message.case) {
    case 'boxOrder':
      return boxOrderFromWire(message.value);
    case 'hostOrder':
      return hostOrderFromWire(message.value);
    case undefined:
      throw field.wireError('', 'message', 'is missing: an order is expected');
  }
}
