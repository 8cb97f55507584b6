import { expect, it } from 'vitest';
import { nanos } from '#base/units';
import { Errno } from '#vfio-user/refusal';
import { MAX_KEPT_TRANSFERS, RemoteDma } from './remote-dma.ts';

const NOW = nanos(0);

// What a session had answered with ETIMEDOUT was kept, without an end while the host took nothing.
it('keeps so many transfers for a host that takes nothing, and takes more once they have left', () => {
  let isTaken = false;
  const dma = new RemoteDma();
  dma.plug({ canSend: () => isTaken, send: () => {} });
  dma.limits.busMaster = true;
  const ends: string[] = [];
  const write = (): void =>
    dma.write(NOW, {
      address: 0x1000,
      count: 4,
      bytes: new Uint8Array(4),
      done: () => ends.push('done'),
      fail: (_now, errno) => ends.push(`errno ${errno}`),
    });
  for (let asked = 0; asked < MAX_KEPT_TRANSFERS; asked++) write();
  expect(ends).toEqual([]);
  write();
  expect(ends.splice(0)).toEqual([`errno ${Errno.EBUSY}`]);
  isTaken = true;
  dma.pump(NOW);
  expect(ends.splice(0)).toEqual(Array.from({ length: MAX_KEPT_TRANSFERS }, () => 'done'));
  write();
  expect(ends).toEqual(['done']);
});
