import { describe, expect, it } from 'vitest';
import type { CounterReport, LinkReport } from '#agent/daemon/counter-report';
import { type BoxStatus, type HostStatus, plainTable } from './status-report.ts';
import { countsText, linkText, managerText, statusText, tableText } from './status-text.ts';

const counters: CounterReport = {
  down: {},
  up: {},
  downPayloadBytes: 0,
  upPayloadBytes: 0,
  interrupts: 0,
  faults: {},
};

const link: LinkReport = {
  peer: 'box b1',
  state: 'waiting',
  sessionId: 0,
  path: 'p0',
  problem: 'refused: a session of host/h1 is live',
  rttLastNs: 0,
  rttMinNs: 0,
  rttMeanNs: 0,
  rttCount: 0,
  counters: {},
};

const slot = { function: undefined, problem: undefined, counters };
const status: HostStatus = {
  kind: 'host',
  id: 'h1',
  pid: 1,
  config: 'host.yaml',
  uptimeS: 1,
  stray: counters,
  links: [link],
  faults: { delayNs: 0, dropProbability: 0, cutForNs: 0 },
  table: [],
  slots: [
    {
      ...slot,
      slot: 0,
      state: 'contained',
      generation: 7,
      reason: 'the box restarted; raise its generation',
    },
    { ...slot, slot: 1, state: 'ready', generation: undefined, reason: undefined },
  ],
};

describe('a slot that is not in use', () => {
  it('has its reason in the tables and in the status', () => {
    expect(tableText(status).split('\n').slice(1)).toEqual([
      'virtual slot 0 is contained: the box restarted; raise its generation',
    ]);
    expect(statusText(status)).toContain(
      '  virtual slot 0: contained under generation 7\n    the box restarted; raise its generation\n' +
        '  virtual slot 1: ready',
    );
  });
});

describe('a table for machines', () => {
  it('has the states, the reasons and the manager that the text has', () => {
    const since = '2026-01-02T03:04:05.678Z';
    const manager = { address: '10.0.0.1:7000', connected: true, since, problem: undefined };
    const row = { virtualSlot: 0, used: true } as HostStatus['table'][number];
    const plain = plainTable({ ...status, table: [row], manager });
    expect(JSON.parse(JSON.stringify(plain))).toEqual({
      kind: 'host',
      id: status.id,
      manager: { address: '10.0.0.1:7000', connected: true, since },
      rows: [
        {
          virtualSlot: 0,
          used: true,
          state: 'contained',
          reason: 'the box restarted; raise its generation',
        },
      ],
    });
  });
});

describe('the manager', () => {
  const since = '2026-01-02T03:04:05.678Z';

  it('has its address and since when it is connected, in the tables and in the status', () => {
    const manager = { address: '10.0.0.1:7000', connected: true, since, problem: undefined };
    const line = 'manager at 10.0.0.1:7000: connected since 2026-01-02T03:04:05.678Z';
    expect(tableText({ ...status, manager }).split('\n')[0]).toBe(line);
    expect(statusText({ ...status, manager }).split('\n')[1]).toBe(`  ${line}`);
  });

  it('that is away has what is in the way', () => {
    const manager = { address: '10.0.0.1:7000', connected: false, since, problem: 'it is gone' };
    expect(managerText(manager)).toBe(
      'manager at 10.0.0.1:7000: not connected since 2026-01-02T03:04:05.678Z, ' +
        'rows stay as they are; it is gone',
    );
  });
});

describe('a link without a connection', () => {
  it('shows what was in its way', () => {
    expect(linkText(link)).toBe(
      'link to box b1: waiting over path p0, no round trip measured yet; ' +
        'refused: a session of host/h1 is live',
    );
  });
});

describe('countsText', () => {
  const status = (slots: readonly object[]): BoxStatus => ({ kind: 'box', slots }) as BoxStatus;
  const unused = {
    slot: 0,
    counters: { down: {}, up: {}, downPayloadBytes: 0, upPayloadBytes: 0 },
  };

  it('leaves out slots nothing has passed, and says nothing when there is no other', () => {
    const counters = {
      down: { MRd32: 2 },
      up: { CplD: 2 },
      downPayloadBytes: 0,
      upPayloadBytes: 8,
    };
    expect(countsText(status([unused, { slot: 3, counters }]))).toBe(
      `slot  kind           down  up
   3  CplD              0   2
   3  MRd32             2   0
   3  payload bytes     0   8`,
    );
    expect(countsText(status([unused]))).toBe('');
  });
});
