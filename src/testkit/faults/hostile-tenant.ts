/** Host software for a hostile function: reads of it now and then, and sometimes takes its rights. */
import { configRead, configWrite, mmioRead32, mmioWrite32 } from '#host/host-operations';
import type { PciFunction } from '#host/pci-function';
import { sleep, type Task } from '#host/task';
import { JAILED } from './hostile-device.ts';
import type { TenantContext } from './probe-driver.ts';

const COMMAND = 0x04;
const BUS_MASTER = 1 << 2;

export function* watchHostile(context: TenantContext, fn: PciFunction): Task<void> {
  const { soft, prng, work } = context;
  const registers = fn.bars.find((bar) => bar.index === 0)?.address ?? 0;
  const jailAfter = prng.chance(0.4) ? prng.below(10) : Infinity;
  for (let turn = 0; work.left > 0 || context.isWanted(); turn++) {
    yield* sleep(prng.float() * 400e6);
    // What it answers is not to be relied on; that it is answered, the root complex's observer sees.
    yield* mmioRead32(soft, registers + 4 * prng.below(4));
    if (turn === jailAfter) {
      const command = yield* configRead(soft, fn.bdf, COMMAND);
      yield* configWrite(soft, fn.bdf, COMMAND, command & 0xffff & ~BUS_MASTER, 3);
      yield* mmioWrite32(soft, registers + JAILED, 1);
    }
    work.left = Math.max(0, work.left - 1);
  }
}
