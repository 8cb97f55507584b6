/** What one side says is what the other hears, over the bytes of the wire. */
import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { fc } from '#testkit/properties';
import {
  type AgentHello,
  type AgentOrder,
  type AgentReport,
  BOX_KINDS,
  BOX_SLOT_STATES,
  HOST_SLOT_STATES,
} from './agent-messages.ts';
import {
  agentMessageFromWire,
  helloToWire,
  orderFromWire,
  orderToWire,
  reportToWire,
} from './agent-wire.ts';
import { ConnectRequestSchema, ConnectResponseSchema } from './generated/dxpu/agent/v1/agent_pb.ts';
import { fitMessage, MAX_TEXT_BYTES } from './wire-fields.ts';

/** As the wire gives them back: plain objects. */
const record = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record(model, { noNullPrototype: true });
const flag = fc.boolean();
const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
const safe = fc.maxSafeNat();
const generation = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const slot = fc.nat({ max: 65_535 });
const id16 = fc.nat({ max: 0xffff });
/** Any characters but control characters, at most 1 KiB in UTF-8. */
// oxlint-disable-next-line no-control-regex -- exactly these are left out
const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const word = fc
  .string({ unit: 'binary', maxLength: 256 })
  .filter((text) => !CONTROL.test(text) && Buffer.byteLength(text) <= 1024);
const filled = word.filter((text) => text !== '');
const message = fc.oneof(word, fc.constant('two\nlines\tand a tab'), fc.constant('x'.repeat(1024)));
const measure = fc.double({ min: 0, noNaN: true, noDefaultInfinity: true });
const maybe = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined });
const window = record({ base: safe, limit: safe });
const barIndex = fc.nat({ max: 5 });
const sizeBytes = generation;

const endpoints = fc.uniqueArray(
  record({
    path: name,
    address: fc.constantFrom('127.0.0.1:7001', '[::1]:7001', 'box-1.example:65535'),
  }),
  { maxLength: 64, selector: ({ path }) => path },
);
const hello: fc.Arbitrary<AgentHello> = fc.oneof(
  record({
    kind: fc.constant('box' as const),
    id: name,
    instance: filled,
    version: word,
    boxKind: fc.constantFrom(...BOX_KINDS),
    zone: word,
    endpoints,
  }),
  record({
    kind: fc.constant('host' as const),
    id: name,
    instance: filled,
    version: word,
    reach: fc.array(filled),
  }),
);

const node = record({
  uuid: filled,
  model: filled,
  memoryBytes: safe,
  nvlinkGroup: word,
  bars: fc.uniqueArray(record({ index: barIndex, sizeBytes, prefetchable: flag, is64: flag }), {
    maxLength: 6,
    selector: ({ index }) => index,
  }),
});
const boxReport = record({
  kind: fc.constant('box' as const),
  applied: safe,
  whole: flag,
  slots: fc.uniqueArray(
    record({
      slot,
      node: maybe(node),
      state: fc.constantFrom(...BOX_SLOT_STATES),
      clean: flag,
      row: maybe(record({ host: name, generation })),
      reason: message,
    }),
    { selector: (one) => one.slot },
  ),
  refused: message,
});
const hostReport = record({
  kind: fc.constant('host' as const),
  applied: safe,
  whole: flag,
  slots: fc.uniqueArray(
    record({
      slot,
      secondaryBus: fc.nat({ max: 255 }),
      nonPrefetchable: window,
      prefetchable: window,
      row: maybe(record({ box: name, boxSlot: slot, generation })),
      state: fc.constantFrom(...HOST_SLOT_STATES),
      function: maybe(
        record({
          bdf: id16,
          vendorId: id16,
          deviceId: id16,
          bars: fc.uniqueArray(record({ index: barIndex, address: safe, sizeBytes }), {
            maxLength: 6,
            selector: ({ index }) => index,
          }),
          memoryEnable: flag,
          busMaster: flag,
        }),
      ),
      inUse: flag,
      problem: maybe(record({ kind: filled, message })),
      reason: message,
    }),
    { selector: (one) => one.slot },
  ),
  paths: fc.uniqueArray(
    record({
      box: name,
      path: name,
      up: flag,
      rttNs: measure,
      bitsPerSecond: measure,
      problem: message,
    }),
    { selector: ({ box, path }) => `${box}/${path}` },
  ),
  refused: message,
});
const report: fc.Arbitrary<AgentReport> = fc.oneof(boxReport, hostReport);

const order: fc.Arbitrary<AgentOrder> = fc.oneof(
  record({
    kind: fc.constant('box' as const),
    revision: generation,
    whole: flag,
    slots: fc.uniqueArray(
      record({ slot, row: maybe(record({ host: name, generation, path: name })) }),
      { selector: (one) => one.slot },
    ),
  }),
  record({
    kind: fc.constant('host' as const),
    revision: generation,
    whole: flag,
    slots: fc.uniqueArray(
      record({
        slot,
        row: maybe(record({ box: name, boxSlot: slot, generation, path: name })),
        plugged: flag,
        surprise: flag,
      }),
      { selector: (one) => one.slot },
    ),
    peers: maybe(fc.uniqueArray(record({ box: name, endpoints }), { selector: ({ box }) => box })),
  }),
);

it('a hello and a report arrive as they were said', () => {
  fc.assert(
    fc.property(hello, report, maybe(generation), (first, plain, highestGeneration) => {
      const second = highestGeneration === undefined ? plain : { ...plain, highestGeneration };
      const bytes = [helloToWire(first), reportToWire(second)].map((message) =>
        toBinary(ConnectRequestSchema, message),
      );
      const heard = bytes.map((one) => agentMessageFromWire(fromBinary(ConnectRequestSchema, one)));
      expect(heard).toStrictEqual([{ hello: first }, { report: second }]);
    }),
  );
});

it('an order arrives as it was given', () => {
  fc.assert(
    fc.property(order, (given) => {
      const bytes = toBinary(ConnectResponseSchema, orderToWire(given));
      expect(orderFromWire(fromBinary(ConnectResponseSchema, bytes))).toStrictEqual(given);
    }),
  );
});

it('any text of ours becomes a message that is taken', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 2000 }), (text) => {
      const fitted = fitMessage(text);
      expect(Buffer.byteLength(fitted)).toBeLessThanOrEqual(MAX_TEXT_BYTES);
      const said = reportToWire({
        kind: 'box',
        applied: 0,
        whole: true,
        slots: [],
        refused: text,
      });
      expect(agentMessageFromWire(said).report?.refused).toBe(fitted);
      expect(fitMessage(fitted)).toBe(fitted);
    }),
  );
});

it('arbitrary bytes are refused or understood, and nothing else is thrown', () => {
  fc.assert(
    fc.property(report, fc.nat(), fc.integer({ min: 0, max: 255 }), (said, where, value) => {
      const bytes = toBinary(ConnectRequestSchema, reportToWire(said));
      if (bytes.length === 0) return;
      bytes[where % bytes.length] = value;
      let wire;
      try {
        wire = fromBinary(ConnectRequestSchema, bytes);
      } catch {
        return; // No message of protobuf: the RPC library refuses it.
      }
      try {
        agentMessageFromWire(wire);
      } catch (error) {
        expect(error).toMatchObject({ name: 'DxpuError', code: 'invalid_argument' });
      }
    }),
  );
});
