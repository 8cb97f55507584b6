/** What the core knows as users see it. */
import { expect, it } from 'vitest';
import { BindingState } from '#proto/generated/dxpu/pool/v1/pool_pb';
import {
  BINDING_STATES,
  type BindingRecord,
  type LoggedBinding,
  type LogRecord,
} from '../domain/records.ts';
import * as message from './pool-messages.ts';

const record: BindingRecord = {
  id: 'b7',
  state: 'attached',
  goal: 'attached',
  force: false,
  retries: true,
  host: 'h1',
  hostSlot: 2,
  box: 'x1',
  boxSlot: 3,
  uuid: 'u3',
  model: 'accel',
  path: 'p0',
  generation: 2 ** 53 - 1,
  failure: undefined,
  attempts: 0,
  // Bus 3, device 0, function 1.
  attachment: { bdf: 0x0301, bars: [{ index: 2, address: 2 ** 40, sizeBytes: 4096 }] },
  requestedBy: 'user/alice',
  requestId: 'r1',
  createdMs: 1500,
  changedMs: 2_000_000,
};

it('a binding with everything', () => {
  const live = { memoryEnable: true, busMaster: false, inUse: true, rttNs: 1234.5 };
  expect(message.bindingViewMessage({ record, willRetry: false, live })).toMatchObject({
    id: 'b7',
    state: BindingState.ATTACHED,
    leaving: false,
    hostSlot: 2,
    boxSlot: 3,
    gpu: 'u3',
    generation: 9007199254740991n,
    created: { seconds: 1n, nanos: 500_000_000 },
    changed: { seconds: 2000n, nanos: 0 },
    attachment: {
      bdf: '03:00.1',
      bars: [{ index: 2, address: 1099511627776n, sizeBytes: 4096n }],
    },
    live: { memoryEnable: true, busMaster: false, inUse: true, roundTripNs: 1234.5 },
  });
});

it('what is not there is not said', () => {
  const { live, failure, attachment } = message.bindingMessage({
    ...record,
    attachment: undefined,
  });
  expect([live, failure, attachment]).toEqual([undefined, undefined, undefined]);
});

it('each state of a record has its own, and is found again by it', () => {
  const states = BINDING_STATES.map((state) => message.bindingMessage({ ...record, state }).state);
  expect(new Set(states).size).toBe(BINDING_STATES.length);
  expect(states.map((state) => message.bindingState(state))).toEqual([...BINDING_STATES]);
  expect(message.bindingState(BindingState.FREE)).toBeUndefined();
});

it.each([
  ['link-down', true, 'attached', 1, true],
  ['link-down', false, 'attached', 1, false],
  ['link-down', true, 'free', 1, false],
  ['no-space', true, 'attached', 1, false],
  // Somebody has asked since: whoever waits for it must not take it for the end (regression).
  ['quarantined', true, 'attached', 0, true],
  ['quarantined', false, 'attached', 0, true],
  ['quarantined', true, 'free', 0, false],
] as const)('failed(%s), retries %s, goal %s, attempts %i: tried again %s', (...row) => {
  const [reason, retries, goal, attempts, again] = row;
  const failure = { reason, message: 'why', during: 'attached' as const };
  const entry: LoggedBinding = {
    ...record,
    state: 'failed',
    failure,
    retries,
    goal,
    attempts,
  };
  expect(message.bindingMessage(entry).failure).toMatchObject({
    reason,
    message: 'why',
    during: BindingState.ATTACHED,
    retries: again,
  });
});

it('an entry about a binding that is gone says so', () => {
  const entry: LogRecord = {
    position: 9,
    atMs: 3000,
    actor: 'manager',
    requestId: '',
    subjectKind: 'binding',
    subject: 'b7',
    action: 'freed',
    message: 'it is scrubbed',
    binding: { ...record, state: 'free' },
  };
  expect(message.logMessage(entry)).toMatchObject({
    position: 9n,
    time: { seconds: 3n },
    subject: 'b7',
    binding: { id: 'b7', state: BindingState.FREE },
  });
});
