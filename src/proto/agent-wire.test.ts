/** Everything that is refused, with the field it names. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { DxpuError } from '#base/errors';
import { BOX_KINDS, BOX_SLOT_STATES, HOST_SLOT_STATES } from './agent-messages.ts';
import { agentMessageFromWire, orderFromWire } from './agent-wire.ts';
import {
  BoxKindSchema,
  BoxSlotStateSchema,
  ConnectRequestSchema,
  ConnectResponseSchema,
  HostSlotStateSchema,
} from './generated/dxpu/agent/v1/agent_pb.ts';
import { fitMessage } from './wire-fields.ts';

type Init = MessageInitShape<typeof ConnectRequestSchema>;
type Message = NonNullable<Init['message']>;
type Reports = Extract<Message, { case: 'boxReport' | 'hostReport' }>;
type BoxReportInit = Extract<Reports, { case: 'boxReport' }>['value'];
type HostReportInit = Extract<Reports, { case: 'hostReport' }>['value'];

function refusal(run: () => unknown): DxpuError {
  try {
    run();
  } catch (error) {
    if (error instanceof DxpuError) return error;
    throw error;
  }
  throw new Error('it was taken');
}

function refusedMessage(message: Message): DxpuError {
  return refusal(() => agentMessageFromWire(create(ConnectRequestSchema, { message })));
}

const box = (value: BoxReportInit): Message => ({ case: 'boxReport', value });
const host = (value: HostReportInit): Message => ({ case: 'hostReport', value });
const windows = { nonPrefetchable: { base: 1n }, prefetchable: { base: 1n } };
const uuid = '5f1f2a30-0000-8000-8000-000000000001';

describe('a message that cannot be is refused, naming the field', () => {
  const hostSlot = { slot: 0, ...windows, state: 1 as const };
  const cases: [string, Message, string, string][] = [
    ['nothing', { case: undefined }, 'message', 'missing'],
    ['no role', { case: 'hello', value: { id: 'b1', instance: 'i' } }, 'hello.role', 'missing'],
    [
      'an id with a slash',
      { case: 'hello', value: { id: 'b/1', instance: 'i' } },
      'hello.id',
      'letters',
    ],
    ['no instance', { case: 'hello', value: { id: 'b1' } }, 'hello.instance', 'missing'],
    [
      'a box kind from the future',
      {
        case: 'hello',
        value: { id: 'b1', instance: 'i', role: { case: 'box', value: { boxKind: 9 as never } } },
      },
      'hello.box.box_kind',
      '9 is none of 1 (pcie), 2 (nvswitch)',
    ],
    [
      '65 endpoints',
      {
        case: 'hello',
        value: {
          id: 'b1',
          instance: 'i',
          role: {
            case: 'box',
            value: {
              boxKind: 1,
              endpoints: Array.from({ length: 65 }, (_, i) => ({
                path: `p${i}`,
                address: 'a:1',
              })),
            },
          },
        },
      },
      'hello.box.endpoints',
      'has 65 entries, at most 64',
    ],
    [
      'an address without a port',
      {
        case: 'hello',
        value: {
          id: 'b1',
          instance: 'i',
          role: {
            case: 'box',
            value: { boxKind: 1, endpoints: [{ path: 'p', address: '10.0.0.1' }] },
          },
        },
      },
      'hello.box.endpoints[0].address',
      'not an address and port',
    ],
    ['applied above 2^53 - 1', box({ applied: 2n ** 53n }), 'applied', '9007199254740992'],
    [
      'a generation of 0',
      box({ slots: [{ slot: 0, state: 1, row: { host: 'h1' } }] }),
      'slots[0].row.generation',
      '0 is not from 1',
    ],
    ['no state', box({ slots: [{ slot: 3 }] }), 'slots[0].state', 'missing'],
    ['a slot of 65,536', box({ slots: [{ slot: 65_536, state: 1 }] }), 'slots[0].slot', '65535'],
    [
      'a slot twice',
      box({
        slots: [
          { slot: 3, state: 1 },
          { slot: 3, state: 1 },
        ],
      }),
      'slots[1]',
      '3 is there twice',
    ],
    [
      '1,025 slots of a box',
      box({ slots: Array.from({ length: 1025 }, () => ({ slot: 0, state: 1 as const })) }),
      'slots',
      'at most 1024',
    ],
    [
      'seven BARs',
      box({
        slots: [
          {
            slot: 0,
            state: 1,
            node: { uuid, model: 'm', bars: Array.from({ length: 7 }, () => ({ sizeBytes: 1n })) },
          },
        ],
      }),
      'slots[0].node.bars',
      'at most 6',
    ],
    [
      'a model of 1,025 bytes',
      box({ slots: [{ slot: 0, state: 1, node: { uuid, model: 'é'.repeat(512) + 'x' } }] }),
      'slots[0].node.model',
      'has 1025 bytes, at most 1024',
    ],
    [
      'a model that moves the cursor',
      box({ slots: [{ slot: 0, state: 1, node: { uuid, model: 'A\u001b[2J' } }] }),
      'slots[0].node.model',
      'control characters',
    ],
    [
      'no window',
      host({ slots: [{ slot: 0, state: 1, nonPrefetchable: {} }] }),
      'slots[0].prefetchable',
      'missing',
    ],
    [
      'a window above 2^53 - 1',
      host({ slots: [{ ...hostSlot, prefetchable: { limit: 2n ** 60n } }] }),
      'slots[0].prefetchable.limit',
      'not from 0',
    ],
    [
      'a BDF of 17 bits',
      host({ slots: [{ ...hostSlot, function: { bdf: 0x10000 } }] }),
      'slots[0].function.bdf',
      '65535',
    ],
    [
      'a BAR 6',
      host({ slots: [{ ...hostSlot, function: { bars: [{ index: 6, sizeBytes: 1n }] } }] }),
      'slots[0].function.bars[0].index',
      'not from 0 to 5',
    ],
    [
      'a round trip that is no number',
      host({ paths: [{ box: 'b1', path: 'p', rttNs: NaN }] }),
      'paths[0].rtt_ns',
      'NaN',
    ],
    [
      'an infinite bandwidth',
      host({ paths: [{ box: 'b1', path: 'p', bitsPerSecond: Infinity }] }),
      'paths[0].bits_per_second',
      'Infinity',
    ],
    [
      'a negative round trip',
      host({ paths: [{ box: 'b1', path: 'p', rttNs: -1 }] }),
      'paths[0].rtt_ns',
      '-1',
    ],
  ];
  it.each(cases)('%s', (_what, message, field, says) => {
    const error = refusedMessage(message);
    expect(error.code).toBe('invalid_argument');
    expect(error.details).toEqual({ field });
    expect(error.message).toContain(`${field}: `);
    expect(error.message).toContain(says);
  });

  it('100,001 peers in an order', () => {
    const peers = Array.from({ length: 100_001 }, () => ({ box: 'b1' }));
    const message = { case: 'hostOrder' as const, value: { revision: 1n, peers: { peers } } };
    const error = refusal(() => orderFromWire(create(ConnectResponseSchema, { message })));
    expect(error.details).toEqual({ field: 'peers' });
  });
});

// The wire numbers the names from 1 in the order of the lists; a list that is reordered would lie.
it.each([
  ['BOX_KIND_', BOX_KINDS, BoxKindSchema],
  ['BOX_SLOT_STATE_', BOX_SLOT_STATES, BoxSlotStateSchema],
  ['HOST_SLOT_STATE_', HOST_SLOT_STATES, HostSlotStateSchema],
])('%s numbers the names in their order', (prefix, names, schema) => {
  expect(schema.values.map(({ number, name }) => [number, name])).toEqual([
    [0, `${prefix}UNSPECIFIED`],
    ...names.map((name, index) => [index + 1, `${prefix}${name.toUpperCase()}`]),
  ]);
});

it('a message of ours is cut at 1 KiB, between characters', () => {
  // 1024 - 3 bytes for the ellipsis leave 1021; 510 characters of two bytes are 1020.
  expect(fitMessage('é'.repeat(600))).toBe(`${'é'.repeat(510)}…`);
  expect(fitMessage('a\u0007b\nc')).toBe('a b\nc');
});
