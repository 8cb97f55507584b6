/** Orders of the manager, to the wire and back. Checks are in wire-fields.ts. */
import { create } from '@bufbuild/protobuf';
import type {
  BoxOrder,
  BoxSlotOrder,
  Endpoint,
  HostOrder,
  HostSlotOrder,
} from './agent-messages.ts';
import * as pb from './generated/dxpu/agent/v1/agent_pb.ts';
import * as field from './wire-fields.ts';

export function boxOrderToWire(order: BoxOrder): pb.BoxOrder {
  return create(pb.BoxOrderSchema, {
    revision: BigInt(order.revision),
    whole: order.whole,
    slots: order.slots.map(({ slot, row }) =>
      row === undefined
        ? { slot }
        : {
            slot,
            row: { host: row.host, generation: BigInt(row.generation), path: row.path },
          },
    ),
  });
}

export function boxOrderFromWire(order: pb.BoxOrder): BoxOrder {
  const slots = field.list('', 'slots', order.slots, field.MAX_BOX_SLOTS, boxSlotFromWire);
  field.distinct('', 'slots', slots, ({ slot }) => slot);
  return {
    kind: 'box',
    revision: field.safeNumber('', 'revision', order.revision, 1),
    whole: order.whole,
    slots,
  };
}

function boxSlotFromWire({ slot, row }: pb.BoxSlotOrder, at: string): BoxSlotOrder {
  return {
    slot: field.wholeNumber(at, 'slot', slot, field.MAX_SLOT),
    row:
      row === undefined
        ? undefined
        : {
            host: field.name(at, 'row.host', row.host),
            generation: field.safeNumber(at, 'row.generation', row.generation, 1),
            path: field.name(at, 'row.path', row.path),
          },
  };
}

export function hostOrderToWire(order: HostOrder): pb.HostOrder {
  return create(pb.HostOrderSchema, {
    revision: BigInt(order.revision),
    whole: order.whole,
    slots: order.slots.map(({ slot, row, plugged, surprise }) => ({
      slot,
      ...(row === undefined
        ? {}
        : {
            row: {
              box: row.box,
              boxSlot: row.boxSlot,
              generation: BigInt(row.generation),
              path: row.path,
            },
          }),
      plugged,
      surprise,
    })),
    ...(order.peers === undefined
      ? {}
      : {
          peers: {
            peers: order.peers.map(({ box, endpoints }) => ({
              box,
              endpoints: endpointsToWire(endpoints),
            })),
          },
        }),
  });
}

export function hostOrderFromWire(order: pb.HostOrder): HostOrder {
  const slots = field.list('', 'slots', order.slots, field.MAX_HOST_SLOTS, hostSlotFromWire);
  field.distinct('', 'slots', slots, ({ slot }) => slot);
  return {
    kind: 'host',
    revision: field.safeNumber('', 'revision', order.revision, 1),
    whole: order.whole,
    slots,
    peers: order.peers === undefined ? undefined : peersFromWire(order.peers),
  };
}

function hostSlotFromWire(order: pb.HostSlotOrder, at: string): HostSlotOrder {
  const { row } = order;
  return {
    slot: field.wholeNumber(at, 'slot', order.slot, field.MAX_SLOT),
    row:
      row === undefined
        ? undefined
        : {
            box: field.name(at, 'row.box', row.box),
            boxSlot: field.wholeNumber(at, 'row.box_slot', row.boxSlot, field.MAX_SLOT),
            generation: field.safeNumber(at, 'row.generation', row.generation, 1),
            path: field.name(at, 'row.path', row.path),
          },
    plugged: order.plugged,
    surprise: order.surprise,
  };
}

function peersFromWire(wire: pb.Peers): NonNullable<HostOrder['peers']> {
  const peers = field.list('', 'peers', wire.peers, field.MAX_PEERS, (peer, at) => ({
    box: field.name(at, 'box', peer.box),
    endpoints: endpointsFromWire(at, peer.endpoints),
  }));
  field.distinct('', 'peers', peers, ({ box }) => box);
  return peers;
}

export function endpointsToWire(endpoints: readonly Endpoint[]): pb.Endpoint[] {
  return endpoints.map(({ path, address }) => create(pb.EndpointSchema, { path, address }));
}

/** The `endpoints` of the message at `at`. */
export function endpointsFromWire(at: string, endpoints: readonly pb.Endpoint[]): Endpoint[] {
  const checked = field.list(at, 'endpoints', endpoints, field.MAX_ENDPOINTS, (one, oneAt) => ({
    path: field.name(oneAt, 'path', one.path),
    address: field.address(oneAt, 'address', one.address),
  }));
  field.distinct(at, 'endpoints', checked, ({ path }) => path);
  return checked;
}
