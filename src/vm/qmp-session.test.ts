import { describe, expect, it } from 'vitest';
import type { Nanos } from '#base/units';
import { type QmpAnswer, QmpSession } from './qmp-session.ts';

/** As QEMU greets (docs/interop/qmp-spec, 2.2). */
const GREETING =
  '{"QMP": {"version": {"qemu": {"micro": 3, "minor": 1, "major": 11}, "package": ""}, "capabilities": ["oob"]}}\r\n';
const SECOND = 1e9;
const at = (ns: number): Nanos => ns as Nanos;

function rig() {
  const sent: { execute: string; arguments: unknown; id: number }[] = [];
  const heard: string[] = [];
  const answers: [string, QmpAnswer][] = [];
  const session = new QmpSession(0 as Nanos, {
    send: (text) => {
      expect(text.endsWith('\n')).toBe(true);
      sent.push(JSON.parse(text));
    },
    deadlineMoved: () => heard.push('deadline'),
    user: {
      ready: () => heard.push('ready'),
      event: (_now, name, data) => heard.push(`${name} ${JSON.stringify(data)}`),
      broken: (_now, reason) => heard.push(`broken: ${reason}`),
    },
  });
  const ask = (name: string, args = {}, now = 0): void =>
    session.execute(at(now), name, args, (_now, answer) => answers.push([name, answer]));
  const receive = (text: string, now = 0): void => session.receive(at(now), text);
  const start = (): void => {
    receive(GREETING);
    receive('{"return": {}, "id": 1}\r\n');
    sent.length = 0;
    heard.length = 0;
  };
  return { session, sent, heard, answers, ask, receive, start };
}

describe('a QMP session', () => {
  it('leaves the negotiation mode, and takes commands from then on', () => {
    const { session, sent, heard, answers, ask, receive } = rig();
    ask('early');
    receive(GREETING);
    expect(sent).toEqual([{ execute: 'qmp_capabilities', arguments: {}, id: 1 }]);
    ask('early');
    expect(session.isReady).toBe(false);
    expect(answers.map(([, answer]) => !answer.ok && answer.kind)).toEqual(['gone', 'gone']);
    receive('{"return": {}, "id": 1}\r\n');
    expect(session.isReady).toBe(true);
    expect(heard).toEqual(['deadline', 'ready']);
    ask('query-pci', { a: 1 });
    expect(sent[1]).toEqual({ execute: 'query-pci', arguments: { a: 1 }, id: 2 });
  });

  it('takes lines in pieces, several at once, and empty ones', () => {
    const { heard, answers, ask, receive, start } = rig();
    start();
    ask('one');
    for (const letter of '{"return": ["ü"], "id": 2}') receive(letter);
    expect(answers).toEqual([]);
    receive('\r\n\r\n{"event": "RESET", "data": {"guest": true}}\n{"event": "STOP"}\n{"ev');
    receive('ent": "RESUME"}\n');
    expect(answers).toEqual([['one', { ok: true, value: ['ü'] }]]);
    expect(heard).toEqual(['deadline', 'RESET {"guest":true}', 'STOP {}', 'RESUME {}']);
  });

  it('finds whose an answer is by its id', () => {
    const { answers, ask, receive, start } = rig();
    start();
    ask('one');
    ask('two');
    receive('{"return": "b", "id": 3}\n{"return": "a", "id": 2}\n');
    expect(answers).toEqual([
      ['two', { ok: true, value: 'b' }],
      ['one', { ok: true, value: 'a' }],
    ]);
    // Nobody's, or a second time.
    receive('{"return": "c", "id": 2}\n{"return": "d"}\n{"return": "e", "id": "2"}\n');
    expect(answers).toHaveLength(2);
  });

  it('gives errors with the class QEMU has for them', () => {
    const { answers, ask, receive, start } = rig();
    start();
    for (const name of ['device_del', 'device_add', 'other']) ask(name);
    receive('{"error": {"class": "DeviceNotFound", "desc": "Device \'x\' not found"}, "id": 2}\n');
    receive('{"id": 3, "error": {"class": "GenericError", "desc": "Bus \'rp9\' not found"}}\n');
    receive('{"id": 4, "error": {}}\n');
    expect(answers.map(([, answer]) => answer)).toEqual([
      { ok: false, kind: 'DeviceNotFound', message: "QMP device_del: Device 'x' not found" },
      { ok: false, kind: 'GenericError', message: "QMP device_add: Bus 'rp9' not found" },
      { ok: false, kind: 'GenericError', message: 'QMP other: refused' },
    ]);
  });

  it('waits 10 s for each answer, and drops one that comes later', () => {
    const { session, answers, ask, receive, start } = rig();
    start();
    expect(session.nextDeadlineNs()).toBe(Infinity);
    ask('one', {}, 0);
    ask('two', {}, 3 * SECOND);
    expect(session.nextDeadlineNs()).toBe(10 * SECOND);
    session.tick(at(10 * SECOND - 1));
    expect(answers).toEqual([]);
    session.tick(at(10 * SECOND));
    const late = { ok: false, kind: 'timeout', message: 'QMP one: no answer within 10 s' };
    expect(answers).toEqual([['one', late]]);
    expect(session.nextDeadlineNs()).toBe(13 * SECOND);
    receive('{"return": 1, "id": 2}\n{"return": 2, "id": 3}\n', 11 * SECOND);
    expect(answers.slice(1)).toEqual([['two', { ok: true, value: 2 }]]);
    expect(session.isReady).toBe(true);
  });

  it('is broken where nobody greets within 10 s, as QEMU does while it has another client', () => {
    const { session, heard, answers, ask, start } = rig();
    expect(session.nextDeadlineNs()).toBe(10 * SECOND);
    session.tick(at(10 * SECOND - 1));
    expect(heard).toEqual([]);
    session.tick(at(10 * SECOND));
    expect(heard).toEqual([
      "broken: no greeting from QEMU's QMP socket within 10 s: it takes one client, and may have another: " +
        'give the host proxy a -qmp of its own',
    ]);
    ask('stop', {}, 10 * SECOND);
    expect(answers[0]?.[1]).toMatchObject({ ok: false, kind: 'gone' });
    expect(session.nextDeadlineNs()).toBe(Infinity);

    const greeted = rig();
    greeted.start();
    expect(greeted.session.nextDeadlineNs()).toBe(Infinity);
    start();
    expect(heard, 'too late').toHaveLength(0);
  });

  it('is broken where QEMU does not answer the negotiation', () => {
    const { session, heard, receive } = rig();
    receive(GREETING);
    session.tick(at(10 * SECOND));
    expect(heard[1]).toBe(
      'broken: what answers at the QMP socket is no QEMU: QMP qmp_capabilities: no answer within 10 s',
    );
  });

  it.each([
    ['HTTP/1.1 400 Bad Request\n', 'is not valid JSON in "HTTP/1.1 400 Bad Request"'],
    ['{"return": {}}\n', 'there was no greeting'],
    ['null\n', '"null" is no message'],
    ['7\n', '"7" is no message'],
  ])('is broken by %j for a greeting', (text, reason) => {
    const { session, heard, receive } = rig();
    receive(text);
    expect(heard).toHaveLength(1);
    expect(heard[0]).toMatch(/^broken: what answers at the QMP socket is no QEMU: /);
    expect(heard[0]).toContain(reason);
    receive(GREETING);
    expect(session.isReady).toBe(false);
    expect(heard).toHaveLength(1);
  });

  it('is broken by a line without an end', () => {
    const { heard, receive, start } = rig();
    start();
    receive('x'.repeat(16 * 2 ** 20));
    expect(heard).toEqual([]);
    receive('x');
    expect(heard).toEqual([
      'broken: what answers at the QMP socket is no QEMU: a line without an end',
    ]);
  });

  it('takes nothing behind what broke it', () => {
    const { heard, receive, start } = rig();
    start();
    receive('rubbish\n{"event": "STOP"}\nmore rubbish\n');
    expect(heard.map((one) => one.slice(0, 7))).toEqual(['broken:']);
  });

  it.each([
    ['a list', '[]'],
    ['an error that is none', '{"error": null, "id": 2}'],
    ['an event whose name is none', '{"event": 7}'],
    ['data that is none', '{"event": "STOP", "data": null}'],
  ])('survives %s', (_what, line) => {
    const { session, ask, receive, start } = rig();
    start();
    ask('one');
    receive(`${line}\n`);
    expect(session.isReady).toBe(true);
  });

  it('ends what is pending when the connection goes', () => {
    const { session, heard, answers, ask, receive, start } = rig();
    start();
    ask('one');
    ask('two');
    session.closed(at(5), 'QEMU has closed its QMP socket');
    session.closed(at(6), 'again');
    const message = 'QEMU has closed its QMP socket';
    expect(answers).toEqual([
      ['one', { ok: false, kind: 'gone', message: `QMP one: ${message}` }],
      ['two', { ok: false, kind: 'gone', message: `QMP two: ${message}` }],
    ]);
    expect(session.nextDeadlineNs()).toBe(Infinity);
    receive('{"event": "STOP"}\n');
    ask('three');
    expect(heard).not.toContain('STOP {}');
    expect(answers[2]?.[1]).toMatchObject({ ok: false, kind: 'gone' });
  });
});
