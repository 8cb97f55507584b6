/** Host software for the reference accelerator: small matrix products, each checked. */
import { DxpuError } from '#base/errors';
import { AccelDriver } from '#host/accel-driver';
import type { HostBuffer } from '#host/host-memory';
import { memoryWrite } from '#host/host-operations';
import type { PciFunction } from '#host/pci-function';
import { firstDifference, plainSgemm } from '#host/plain';
import { currentTime, sleep, type Task } from '#host/task';
import { Invariant } from './oracle.ts';
import { PATIENCE_NS, type TenantContext } from './probe-driver.ts';

const COPY_BYTES = 4096;
const MEMORY_BAR = 2;

export function* useAccelerator(context: TenantContext, fn: PciFunction): Task<void> {
  const { soft, oracle, prng, work, name } = context;
  while (work.left > 0 || context.isWanted()) {
    const startedNs = yield* currentTime();
    let driver: AccelDriver | undefined;
    const buffer = soft.memory.alloc(COPY_BYTES, 4096);
    try {
      driver = yield* AccelDriver.open(soft, fn, {
        ringEntries: 16,
        commandTimeoutNs: 6e9,
        stagingBytes: 16 * 1024,
        wait: prng.chance(0.5) ? 'msi' : 'poll',
        pollIntervalNs: 500e3,
      });
      while (work.left > 0 || context.isWanted()) {
        if (prng.chance(0.2)) yield* thereAndBack(context, driver, fn, buffer);
        else yield* multiply(context, driver);
        work.left--;
        yield* sleep(prng.chance(0.8) ? 500e6 * prng.float() : 1e6 * prng.float());
      }
    } catch (error) {
      // Removed: the scope has ended, and this task goes with it.
      if (!(error instanceof DxpuError) || fn.scope.error !== undefined) throw error;
      // Another error is excused by what was done to the world meanwhile, and passes.
      if (oracle.calmNs(startedNs) > PATIENCE_NS) {
        oracle.fail(Invariant.PROGRESS, `${name}: with nothing wrong: ${error.message}`);
        return;
      }
      yield* sleep(500e6);
    } finally {
      if (driver !== undefined) yield* driver.close();
      soft.memory.free(buffer);
    }
  }
}

/** Long writes down by the CPU, and up by the copy engine: they go as runs. */
function* thereAndBack(
  { soft, prng, oracle, name }: TenantContext,
  driver: AccelDriver,
  fn: PciFunction,
  buffer: HostBuffer,
): Task<void> {
  const memory = fn.bars.find((bar) => bar.index === MEMORY_BAR)?.address ?? 0;
  const device = driver.allocDevice(COPY_BYTES);
  const sent = Uint8Array.from({ length: COPY_BYTES }, () => prng.below(256));
  yield* memoryWrite(soft, memory + device.offset, sent);
  buffer.bytes.fill(0);
  yield* driver.download(device.offset, buffer);
  driver.freeDevice(device);
  if (Buffer.compare(sent, buffer.bytes) === 0) return;
  oracle.fail(Invariant.EXACT, `${name}: ${COPY_BYTES} bytes came back changed`);
}

function* multiply({ prng, oracle, name }: TenantContext, driver: AccelDriver): Task<void> {
  const [m, n, k] = [prng.between(1, 6), prng.between(1, 6), prng.between(1, 6)];
  const a = Float32Array.from({ length: m * k }, () => prng.float() - 0.5);
  const b = Float32Array.from({ length: k * n }, () => prng.float() - 0.5);
  const product = yield* driver.sgemm(m, n, k, a, b);
  const wrong = firstDifference(product, plainSgemm(m, n, k, a, b));
  if (wrong >= 0) oracle.fail(Invariant.EXACT, `${name}: element ${wrong} of a product is wrong`);
  oracle.counts.sgemms++;
}
