import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import type {
  AgentHello,
  AgentReport,
  BoxHello,
  BoxOrder,
  BoxReport,
  BoxSlotOrder,
  HostHello,
  HostOrder,
  HostReport,
  HostSlotOrder,
  PathReport,
} from '#proto/agent-messages';
import { ModelBoxPlane, ModelHostPlane } from '#testkit/model-plane';
import type { AgentUplink } from './agent-core.ts';
import type { AgentFaults } from './agent-faults.ts';
import { BoxAgentCore } from './box-agent.ts';
import { HostAgentCore } from './host-agent.ts';

const BOX_HELLO: BoxHello = {
  kind: 'box',
  id: 'b1',
  instance: 'i1',
  version: '0',
  boxKind: 'pcie',
  zone: '',
  endpoints: [{ path: 'net0', address: '10.0.0.1:7000' }],
};
const HOST_HELLO: HostHello = { kind: 'host', id: 'h1', instance: 'i1', version: '0', reach: [] };

const at = (ms: number): Nanos => (ms * 1e6) as Nanos;

class Uplink<R extends AgentReport> implements AgentUplink {
  readonly hellos: AgentHello[] = [];
  readonly reports: R[] = [];

  hello(hello: AgentHello): void {
    this.hellos.push(hello);
  }

  report(report: AgentReport): void {
    this.reports.push(report as R);
  }

  get last(): R {
    return this.reports.at(-1) as R;
  }
}

function boxRig(faults: AgentFaults = {}) {
  const plane = new ModelBoxPlane(3);
  const agent = new BoxAgentCore({ hello: BOX_HELLO, plane, faults });
  const uplink = new Uplink<BoxReport>();
  agent.connected(at(0), uplink);
  let revision = 0;
  const order = (slots: BoxSlotOrder[], whole = revision === 0): void => {
    agent.order(at(1), { kind: 'box', revision: ++revision, whole, slots });
  };
  return { plane, agent, uplink, order };
}

const boxRow = (slot: number, generation: number, host = 'h1'): BoxSlotOrder => ({
  slot,
  row: { host, generation, path: 'net0' },
});

describe('a stream', () => {
  it('begins with hello and a whole report, before any order', () => {
    const { plane, uplink } = boxRig();
    expect(uplink.hellos).toEqual([BOX_HELLO]);
    expect(uplink.reports).toEqual([
      { kind: 'box', applied: 0, whole: true, slots: plane.reports, refused: '' },
    ]);
  });

  it('goes on with what changed, and says nothing twice', () => {
    const { plane, agent, uplink, order } = boxRig();
    order([boxRow(1, 5)]);
    expect(uplink.last).toEqual({
      kind: 'box',
      applied: 1,
      whole: false,
      slots: [plane.reports[1]],
      refused: '',
    });
    agent.changed(at(2));
    expect(uplink.reports).toHaveLength(2);
    plane.contain(1);
    agent.changed(at(3));
    expect(uplink.last).toMatchObject({
      applied: 1,
      whole: false,
      slots: [{ state: 'contained' }],
    });
  });

  it('confirms an order that changes nothing', () => {
    const { uplink, order } = boxRig();
    order([]);
    expect(uplink.last).toEqual({ kind: 'box', applied: 1, whole: false, slots: [], refused: '' });
  });

  it('that is new begins anew: whole report, applied 0, orders from 1', () => {
    const { plane, agent, order } = boxRig();
    order([boxRow(0, 5)]);
    agent.disconnected(at(2));
    plane.contain(0);
    agent.changed(at(3));
    const second = new Uplink<BoxReport>();
    agent.connected(at(4), second);
    expect(second.last).toMatchObject({ applied: 0, whole: true });
    expect(second.last.slots).toEqual(plane.reports);
    agent.order(at(5), { kind: 'box', revision: 1, whole: true, slots: [] });
    expect(second.last).toMatchObject({ applied: 1, slots: [{ slot: 0, row: undefined }] });
  });

  it('that is lost changes no row', () => {
    const { plane, agent, order } = boxRig();
    order([boxRow(0, 5)]);
    agent.disconnected(at(2));
    agent.changed(at(3));
    expect(plane.reports[0]!.row).toEqual({ host: 'h1', generation: 5 });
    expect(plane.taken).toHaveLength(1);
  });
});

describe('an order that does not follow its predecessor ends the stream', () => {
  const box = (revision: number, whole: boolean): BoxOrder => ({
    kind: 'box',
    revision,
    whole,
    slots: [],
  });

  it.each([
    ['the first is not whole', [box(1, false)], 'order 1 is refused: the first of a stream'],
    ['the first is not 1', [box(2, true)], 'order 2 is refused: order 1 is the next'],
    ['a gap', [box(1, true), box(3, false)], 'order 3 is refused: order 2 is the next'],
    ['one again', [box(1, true), box(1, true)], 'order 1 is refused: order 2 is the next'],
    [
      'one for a host',
      [{ kind: 'host', revision: 1, whole: true, slots: [], peers: [] } as HostOrder],
      'it is for a host, this is a box',
    ],
  ])('%s', (_name, orders, message) => {
    const { agent, plane, uplink } = boxRig();
    const last = orders.at(-1)!;
    for (const order of orders.slice(0, -1)) agent.order(at(1), order);
    const before = [plane.taken.length, uplink.reports.length];
    expect(() => agent.order(at(1), last)).toThrow(message);
    expect([plane.taken.length, uplink.reports.length]).toEqual(before);
  });

  it('without a stream', () => {
    const { agent } = boxRig();
    agent.disconnected(at(1));
    expect(() => agent.order(at(2), box(1, true))).toThrow('order 1 came without a stream');
  });
});

it('a plane that says it changed while it is changed is reported once, when it is done', () => {
  const { plane, agent, uplink, order } = boxRig();
  const setRows = plane.setRows.bind(plane);
  plane.setRows = (now, rows) => {
    const refused = setRows(now, rows);
    agent.changed(now);
    return refused;
  };
  order([boxRow(0, 1), boxRow(1, 2)]);
  expect(uplink.reports).toHaveLength(2);
  expect(uplink.last).toMatchObject({ applied: 1, slots: [{ slot: 0 }, { slot: 1 }] });
});

describe('rows', () => {
  it('of an incremental order join those ordered before; a whole one replaces them', () => {
    const { plane, order } = boxRig();
    order([boxRow(0, 1)]);
    order([boxRow(1, 2)]);
    expect(plane.taken.at(-1)).toEqual(['0:1', '1:2']);
    order([{ slot: 0, row: undefined }]);
    expect(plane.taken.at(-1)).toEqual(['1:2']);
    order([boxRow(2, 3)], true);
    expect(plane.taken.at(-1)).toEqual(['2:3']);
  });

  it('whose generation changes are taken out first', () => {
    const { plane, order } = boxRig();
    order([boxRow(0, 1), boxRow(1, 2)]);
    order([boxRow(0, 3, 'h2')]);
    expect(plane.taken).toEqual([['0:1', '1:2'], ['1:2'], ['0:3', '1:2']]);
  });

  it('that the plane refuses leave the last ones in force, and are tried again', () => {
    const { plane, agent, uplink, order } = boxRig();
    order([boxRow(0, 1)]);
    plane.refusal = 'slot 1 burns';
    order([boxRow(1, 2)]);
    expect(uplink.last).toEqual({
      kind: 'box',
      applied: 1,
      whole: false,
      slots: [],
      refused: 'slot 1 burns',
    });
    agent.changed(at(2));
    expect(uplink.reports).toHaveLength(3);
    plane.refusal = '';
    agent.changed(at(3));
    expect(uplink.last).toMatchObject({ applied: 2, refused: '', slots: [{ slot: 1 }] });
  });

  it('that were refused in one stream are no news of the next, but still what should be', () => {
    const { plane, agent, order } = boxRig();
    plane.refusal = 'slot 1 burns';
    order([boxRow(1, 2)]);
    agent.disconnected(at(2));
    const second = new Uplink<BoxReport>();
    agent.connected(at(3), second);
    expect(second.last).toMatchObject({ applied: 0, refused: '' });
    plane.refusal = '';
    agent.changed(at(4));
    expect(second.last).toMatchObject({ applied: 0, refused: '', slots: [{ slot: 1 }] });
  });

  // A row that came back by itself would let a driver go on with a device that was reset.
  it('that the plane has lost do not come back under their generation', () => {
    const { plane, uplink, order } = boxRig();
    order([boxRow(0, 4)]);
    plane.lose(0);
    order([boxRow(1, 5)]);
    expect(plane.taken.at(-1)).toEqual(['1:5']);
    expect(uplink.last).toMatchObject({ applied: 2, refused: '' });
    expect(uplink.last.slots.map(({ slot, row }) => [slot, row?.generation])).toEqual([
      [0, undefined],
      [1, 5],
    ]);
    order([boxRow(0, 6)]);
    expect(plane.taken.at(-1)).toEqual(['0:6', '1:5']);
  });
});

// A restored store must go on behind what was used, also where no row is left to show it.
it('a whole report names the highest generation there was, of rows that are gone too', () => {
  const { agent, uplink, order } = boxRig();
  expect(uplink.last).not.toHaveProperty('highestGeneration');
  order([boxRow(0, 4), boxRow(1, 9)]);
  order([{ slot: 1, row: undefined }]);
  const again = new Uplink<BoxReport>();
  agent.disconnected(at(2));
  agent.connected(at(3), again);
  expect(again.last).toMatchObject({ whole: true, highestGeneration: 9 });
});

function hostRig(faults: AgentFaults = {}) {
  const plane = new ModelHostPlane(3);
  const agent = new HostAgentCore({ hello: HOST_HELLO, plane, faults });
  const uplink = new Uplink<HostReport>();
  agent.connected(at(0), uplink);
  let revision = 0;
  const order = (slots: HostSlotOrder[], peers?: HostOrder['peers'], ms = 1): void => {
    agent.order(at(ms), {
      kind: 'host',
      revision: ++revision,
      whole: revision === 1,
      slots,
      peers,
    });
  };
  return { plane, agent, uplink, order };
}

const hostRow = (
  slot: number,
  generation: number,
  plugged: boolean,
  surprise = false,
): HostSlotOrder => ({
  slot,
  row: { box: 'b1', boxSlot: 7, generation, path: 'net0' },
  plugged,
  surprise,
});

describe('functions', () => {
  it('stay out of a new row, and are said once to enter and to leave', () => {
    const { plane, order } = hostRig();
    order([hostRow(0, 1, false)]);
    expect(plane.moves).toEqual([]);
    order([hostRow(0, 1, true)]);
    order([hostRow(0, 1, true)]);
    expect(plane.moves).toEqual(['plug 0']);
    order([hostRow(0, 1, false)]);
    order([hostRow(0, 1, false)]);
    expect(plane.moves).toEqual(['plug 0', 'unplug 0']);
  });

  it('that leave by surprise after all are said so, and not the other way round', () => {
    const { plane, order } = hostRig();
    order([hostRow(0, 1, true)]);
    plane.use(0, true);
    order([hostRow(0, 1, false)]);
    order([hostRow(0, 1, false, true)]);
    order([hostRow(0, 1, false)]);
    expect(plane.moves).toEqual(['plug 0', 'unplug 0', 'unplug 0 surprise']);
  });

  it('are taken back while they have not left', () => {
    const { plane, order } = hostRig();
    order([hostRow(0, 1, true)]);
    plane.use(0, true);
    order([hostRow(0, 1, false)]);
    order([hostRow(0, 1, true)]);
    expect(plane.moves).toEqual(['plug 0', 'unplug 0', 'plug 0']);
  });

  it('of a new generation are others: out at first, then said to enter', () => {
    const { plane, order } = hostRig();
    order([hostRow(0, 1, true)]);
    order([hostRow(0, 2, true)]);
    expect(plane.taken).toEqual([['0:1'], [], ['0:2']]);
    expect(plane.moves).toEqual(['plug 0', 'plug 0']);
  });

  it('of rows that are refused are not moved', () => {
    const { plane, order } = hostRig();
    plane.refusal = 'no';
    order([hostRow(0, 1, true)]);
    expect(plane.moves).toEqual([]);
  });

  it('of rows in force are moved, though another row is refused', () => {
    const { plane, order, uplink } = hostRig();
    order([hostRow(0, 1, true)]);
    plane.refusal = 'slot 1 burns';
    order([hostRow(0, 1, false, true), hostRow(1, 2, true)]);
    expect(plane.moves).toEqual(['plug 0', 'unplug 0 surprise']);
    expect(uplink.last).toMatchObject({ applied: 1, refused: 'slot 1 burns' });
  });

  it('of a row the plane has lost are not moved', () => {
    const { plane, order } = hostRig();
    order([hostRow(0, 1, false)]);
    plane.lose(0);
    order([hostRow(0, 1, true)]);
    expect(plane.moves).toEqual([]);
  });
});

describe('peers', () => {
  it('are set before rows, and stay while an order has none', () => {
    const { plane, order } = hostRig();
    const peers = [{ box: 'b1', endpoints: [{ path: 'net0', address: '10.0.0.1:7000' }] }];
    order([], peers);
    order([]);
    expect(plane.peers).toBe(peers);
    order([], []);
    expect(plane.peers).toEqual([]);
  });
});

const path = (name: string, rttNs: number, up = true): PathReport => ({
  box: 'b1',
  path: name,
  up,
  rttNs,
  bitsPerSecond: 0,
  problem: '',
});

describe('paths', () => {
  it('are reported once a second at most, and by themselves', () => {
    const { plane, agent, uplink } = hostRig();
    // The whole report at 0 had none.
    plane.pathReports = [path('net0', 1000)];
    agent.changed(at(500));
    expect(uplink.reports).toHaveLength(1);
    expect(agent.nextDeadlineNs()).toBe(1e9);
    agent.tick(at(1000));
    expect(uplink.last).toMatchObject({ whole: false, slots: [], paths: [path('net0', 1000)] });
    expect(agent.nextDeadlineNs()).toBe(2e9);
  });

  it('are no news for less than an eighth of a round trip', () => {
    const { plane, agent, uplink } = hostRig();
    plane.pathReports = [path('net0', 800)];
    agent.tick(at(1000));
    plane.pathReports = [path('net0', 900)]; // 800 + 800 / 8
    agent.tick(at(2000));
    expect(uplink.reports).toHaveLength(2);
    plane.pathReports = [path('net0', 901)];
    agent.tick(at(3000));
    expect(uplink.last.paths).toEqual([path('net0', 901)]);
  });

  it('that are no more make a whole report', () => {
    const { plane, agent, uplink } = hostRig();
    plane.pathReports = [path('net0', 800), path('net1', 800)];
    agent.tick(at(1000));
    plane.pathReports = [path('net1', 800)];
    agent.tick(at(2000));
    expect(uplink.last).toMatchObject({ whole: true, paths: [path('net1', 800)] });
    expect(uplink.last.slots).toHaveLength(3);
  });

  it('wait while slots are reported at once', () => {
    const { plane, agent, uplink, order } = hostRig();
    order([hostRow(0, 1, true)]);
    plane.pathReports = [path('net0', 1000)];
    plane.contain(0);
    agent.changed(at(2));
    expect(uplink.last).toMatchObject({ slots: [{ state: 'contained' }], paths: [] });
  });

  it('wake nobody without a stream', () => {
    const { agent } = hostRig();
    agent.disconnected(at(1));
    expect(agent.nextDeadlineNs()).toBe(Infinity);
  });
});

describe('a planted fault shows', () => {
  it('reportsWhatShouldBe: a lost row is said to be there', () => {
    const { plane, agent, uplink, order } = boxRig({ reportsWhatShouldBe: true });
    order([boxRow(0, 1)]);
    plane.lose(0);
    agent.changed(at(2));
    expect(uplink.reports).toHaveLength(2);
    expect(uplink.last.slots[0]).toMatchObject({ row: { generation: 1 }, state: 'ready' });
  });

  it('keepsOldRow: a row ordered away stays', () => {
    const { plane, order } = hostRig({ keepsOldRow: true });
    order([hostRow(0, 1, true)]);
    order([{ slot: 0, row: undefined, plugged: false, surprise: false }]);
    expect(plane.reports[0]!.row?.generation).toBe(1);
  });

  it('appliesStaleOrder: a late order takes effect', () => {
    const { plane, agent, order } = boxRig({ appliesStaleOrder: true });
    order([boxRow(0, 1)]);
    order([boxRow(1, 2)]);
    agent.order(at(2), { kind: 'box', revision: 1, whole: true, slots: [boxRow(0, 1)] });
    expect(plane.taken.at(-1)).toEqual(['0:1']);
  });

  it('claimsRefusedOrder: a refused order counts as in force', () => {
    const { plane, uplink, order } = boxRig({ claimsRefusedOrder: true });
    plane.refusal = 'no';
    order([boxRow(0, 1)]);
    expect(uplink.last).toMatchObject({ applied: 1, refused: '' });
  });
});
