/** Machines from a node list as openb publishes it: sn, cpu_milli, memory_mib, gpu, model. */
import { csvError, readCsv } from './csv.ts';
import type { Machine } from './demand.ts';
import { requiredField, UniqueNames, wholeGpus, wholeNumber } from './field.ts';

const COLUMNS = ['sn', 'cpu_milli', 'memory_mib', 'gpu', 'model'] as const;

/**
 * Reads `text`, the content of `file`. Throws `invalid_argument` with file, line and column for a
 * file that is not such a list, a name used twice, a count that is no whole number, fewer than one
 * CPU (the list counts thousandths), GPUs without a model and a model without GPUs.
 */
export function readNodes(file: string, text: string): Machine[] {
  const names = new UniqueNames(file, 'sn');
  return readCsv(file, text, { required: COLUMNS }).map((row) => {
    const field = (column: (typeof COLUMNS)[number]) => requiredField(row, column);
    const number = (column: (typeof COLUMNS)[number], unit: string) =>
      wholeNumber(file, column, field(column), unit);
    const name = names.take(field('sn'));
    const cpuMilli = number('cpu_milli', 'milli CPUs: 96000 is 96 CPUs');
    if (cpuMilli < 1000) {
      const what = `cpu_milli ${cpuMilli} is less than one CPU; it is in milli CPUs: 96000 is 96 CPUs`;
      throw csvError(file, field('cpu_milli'), what);
    }
    const memoryMib = number('memory_mib', 'MiB');
    const gpus = wholeGpus(file, 'gpu', field('gpu'));
    const model = field('model').text;
    if (gpus > 0 && model === '') throw csvError(file, field('model'), 'GPUs without a model');
    if (gpus === 0 && model !== '') {
      throw csvError(file, field('gpu'), `no GPUs, and yet the model ${model}`);
    }
    return { name, cpuMilli, memoryMib, gpus, model };
  });
}
