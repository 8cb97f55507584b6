/** Who is held for dead, with sessions that answer as they are told. */
import { EventEmitter } from 'node:events';
import type { ServerHttp2Session } from 'node:http2';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { KeepAlive } from './keep-alive.ts';

class FakeSession extends EventEmitter {
  answers = true;
  destroyed = false;
  closed = false;
  pings = 0;

  ping(done: (error: null) => void): boolean {
    this.pings += 1;
    if (this.answers) done(null);
    return true;
  }

  destroy(): void {
    this.destroyed = true;
    this.emit('close');
  }
}

let dead: unknown[];
let keepAlive: KeepAlive;

beforeEach(() => {
  vi.useFakeTimers();
  dead = [];
  const options = { intervalMs: 2000, timeoutMs: 6000 };
  keepAlive = new KeepAlive(options, (session) => dead.push(session));
});
afterEach(() => {
  keepAlive.stop();
  vi.useRealTimers();
});

function enter(): FakeSession {
  const session = new FakeSession();
  keepAlive.add(session as unknown as ServerHttp2Session);
  return session;
}

it('who answers stays, who does not ends once nothing was heard for the timeout', () => {
  const alive = enter();
  const silent = enter();
  vi.advanceTimersByTime(6100);
  // Rounds at 2, 4 and 6 s; 6 s after the last word nobody is late yet.
  expect([alive.pings, silent.pings]).toEqual([3, 3]);
  silent.answers = false;
  vi.advanceTimersByTime(6000);
  expect(dead).toEqual([]);
  vi.advanceTimersByTime(2000);
  expect(dead).toEqual([silent]);
  expect(silent.destroyed).toBe(true);
  vi.advanceTimersByTime(60_000);
  expect(alive.destroyed).toBe(false);
});

it('while this process stood still nobody could be heard: nobody ends for it', () => {
  const session = enter();
  vi.advanceTimersByTime(2100);
  session.answers = false;
  // Ten seconds in which no timer ran: the clock moves, the loop does not.
  vi.setSystemTime(Date.now() + 10_000);
  const now = performance.now();
  const spy = vi.spyOn(performance, 'now').mockImplementation(() => now + 10_000);
  vi.advanceTimersToNextTimer();
  vi.advanceTimersToNextTimer();
  expect(dead).toEqual([]);
  spy.mockRestore();
});

it('who has gone is forgotten', () => {
  const session = enter();
  session.answers = false;
  session.emit('close');
  vi.advanceTimersByTime(60_000);
  expect(dead).toEqual([]);
});
