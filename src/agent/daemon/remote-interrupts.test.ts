import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { MESSAGE_ASSERT_INTA } from '#pcie/intx';
import { remoteFunctionOf } from '#testkit/remote-function-of';
import type { ClientSession } from '#vfio-user/client-session';
import { RemoteDma } from './remote-dma.ts';
import { RemoteInterrupts } from './remote-interrupts.ts';
import { RemoteRegisters } from './remote-registers.ts';

const NOW = nanos(0);

/** Interrupt Pin, bits 15:8, is INTA. */
const withPin = remoteFunctionOf((config) => config.define(0x3c, 0x0100, 0xff), {
  irqs: [1, 0, 0, 0, 0],
});

// The first that waited, behind an earlier write, used to show the level of now.
it('INTx is not told before the writes that its server sent ahead of it have left', () => {
  const told: string[] = [];
  let credits = 0;
  const dma = new RemoteDma();
  dma.plug({
    canSend: () => credits > 0,
    send: () => {
      credits--;
      told.push('write');
    },
  });
  dma.limits.busMaster = true;
  let fire = (): void => expect.unreachable();
  const session = {
    unmaskIntx: () => {},
    enableIrqs: (
      _now: unknown,
      _index: number,
      _count: number,
      fired: (vector: number) => void,
    ) => {
      fire = () => fired(0);
    },
  };
  const interrupts = new RemoteInterrupts({
    session: session as unknown as ClientSession,
    registers: new RemoteRegisters(withPin),
    dma,
    now: () => NOW,
    sendMessage: (_now, code) =>
      told.push(code === MESSAGE_ASSERT_INTA ? 'assert' : 'deassert') > 0,
    onWork: () => {},
    onFault: (_now, reason) => expect.unreachable(reason),
  });
  const write = (): void =>
    dma.write(NOW, {
      address: 0x1000,
      count: 4,
      bytes: new Uint8Array(4),
      done: () => {},
      fail: () => expect.unreachable(),
    });
  interrupts.setUp(NOW);
  fire();
  // The host is told, accesses a BAR, and has to be told that the wire is down, behind the first write.
  expect(told.splice(0)).toEqual(['assert']);
  write();
  interrupts.accessed(NOW);
  write();
  fire();
  credits = 1;
  dma.pump(NOW);
  expect(told.splice(0)).toEqual(['write', 'deassert']);
  credits = 1;
  dma.pump(NOW);
  expect(told).toEqual(['write', 'assert']);
});
