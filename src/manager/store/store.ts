/** Where the pool's state survives. One manager at a time has a store open. */
import type { Batch, Snapshot } from '../domain/batch.ts';
import type { LogRecord } from '../domain/records.ts';

/**
 * Every store refuses by its own schema a second binding of one box slot, of one virtual slot and of
 * one generation, a log position that is taken, and any change of the log.
 */
export interface Store {
  /** Everything but the log. */
  load(): Snapshot;
  /**
   * One durable transaction: on return it survives the death of the process and of the machine. Fails
   * with a `DxpuError` and then nothing of it is there: `resource_exhausted` for a full disk, `aborted`
   * for what the schema refuses (a bug of the caller), `unavailable` for a disk that fails, `data_loss`
   * for a damaged file. After `unavailable` alone, the batch may be there at the next start all the
   * same: whether the disk has it is what nobody could say.
   */
  commit(batch: Batch): void;
  /** Entries with position > `after`, in order, at most `limit`; of one binding where given. */
  log(after: number, limit: number, binding?: string): LogRecord[];
  close(): void;
}
