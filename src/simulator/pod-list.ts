/** Requests from a pod list as openb publishes it, and what a list of machines makes of them. */
import { csvError, readRows, type CsvField, type CsvRow } from './csv.ts';
import {
  couldHold,
  type Demand,
  demandKey,
  type Machine,
  machineKey,
  WHOLE_GPU,
} from './demand.ts';
import { requiredField, UniqueNames, wholeGpus, wholeNumber } from './field.ts';

const REQUIRED = ['name', 'cpu_milli', 'memory_mib', 'num_gpu', 'gpu_milli'] as const;
const TIMES = ['creation_time', 'deletion_time', 'scheduled_time'] as const;
const OPTIONAL = ['gpu_spec', 'qos', 'pod_phase', ...TIMES] as const;

/** What is under this was meant as whole CPUs or GPUs, not as thousandths. */
const LEAST_MILLI = 10;

/** A request of the list and where it stands in it: times in seconds, where the list has them. */
export interface Pod {
  readonly name: string;
  readonly demand: Demand;
  readonly createdS?: number;
  readonly deletedS?: number;
  readonly at: PodPlace;
}

export interface PodPlace {
  readonly line: number;
  readonly column: number;
  readonly specColumn: number;
}

/**
 * Reads `text`, the content of `file`. Throws `invalid_argument` with file, line and column for a
 * file that is not such a list, a name used twice, counts in the wrong unit, GPUs without thousandths
 * or thousandths without GPUs, a part of several GPUs, and times that run backwards.
 */
export function readPods(file: string, text: string): Pod[] {
  const names = new UniqueNames(file, 'name');
  return readRows(file, text, { required: REQUIRED, optional: OPTIONAL }, (row) => {
    const first = requiredField(row, 'name');
    const spec = row.field('gpu_spec');
    return {
      name: names.take(first),
      demand: readDemand(file, row),
      ...readTimes(file, row),
      at: { line: first.line, column: first.column, specColumn: spec?.column ?? first.column },
    };
  });
}

function readDemand(file: string, row: CsvRow): Demand {
  const number = (column: (typeof REQUIRED)[number], unit: string) =>
    wholeNumber(file, column, requiredField(row, column), unit);
  const cpuMilli = number('cpu_milli', 'milli CPUs: 1500 is 1.5 CPUs');
  if (cpuMilli > 0 && cpuMilli < LEAST_MILLI) {
    const what = `cpu_milli ${cpuMilli} is in milli CPUs: ${cpuMilli} CPUs are ${cpuMilli * 1000}`;
    throw csvError(file, requiredField(row, 'cpu_milli'), what);
  }
  const memoryMib = number('memory_mib', 'MiB');
  const gpus = wholeGpus(file, 'num_gpu', requiredField(row, 'num_gpu'));
  const gpuMilli = number('gpu_milli', 'thousandths of a GPU: 500 is half of one');
  const wrong = gpuProblem(gpus, gpuMilli);
  if (wrong !== undefined) throw csvError(file, requiredField(row, 'gpu_milli'), wrong);
  const spec = row.field('gpu_spec')?.text ?? '';
  const models = [...new Set(spec.split('|').filter((model) => model !== ''))];
  return { cpuMilli, memoryMib, gpus, gpuMilli, models: gpus === 0 ? [] : models };
}

function gpuProblem(gpus: number, gpuMilli: number): string | undefined {
  if (gpus === 0 && gpuMilli > 0) return `gpu_milli ${gpuMilli} of no GPU: num_gpu is 0`;
  if (gpus > 0 && gpuMilli === 0) return `num_gpu is ${gpus}, and yet gpu_milli 0`;
  if (gpuMilli > WHOLE_GPU) {
    return `gpu_milli ${gpuMilli} is more than a GPU; it counts thousandths of each of num_gpu GPUs`;
  }
  if (gpuMilli > 0 && gpuMilli < LEAST_MILLI) {
    return `gpu_milli ${gpuMilli} is in thousandths of a GPU: a whole one is ${WHOLE_GPU}`;
  }
  if (gpus > 1 && gpuMilli < WHOLE_GPU) {
    return `a part of each of ${gpus} GPUs: several GPUs are whole ones, gpu_milli ${WHOLE_GPU}`;
  }
  return undefined;
}

function readTimes(file: string, row: CsvRow): Pick<Pod, 'createdS' | 'deletedS'> {
  const time = (column: (typeof TIMES)[number]): [number, CsvField] | undefined => {
    const field = row.field(column);
    if (field === undefined || field.text === '') return undefined;
    return [wholeNumber(file, column, field, 'seconds'), field];
  };
  const created = time('creation_time');
  const deleted = time('deletion_time');
  const scheduled = time('scheduled_time');
  for (const [what, later] of [
    ['deletion_time', deleted],
    ['scheduled_time', scheduled],
  ] as const) {
    if (created !== undefined && later !== undefined && later[0] < created[0]) {
      throw csvError(file, later[1], `${what} ${later[0]} is before creation_time ${created[0]}`);
    }
  }
  return {
    ...(created === undefined ? {} : { createdS: created[0] }),
    ...(deleted === undefined ? {} : { deletedS: deleted[0] }),
  };
}

/**
 * Holds pods against machines. Throws `invalid_argument` at the first pod that asks for a model no
 * machine has. Returns a message with file, line and column for every pod that no machine could
 * hold even when empty: a run counts it as never placed, as the published method does.
 */
export function checkPods(
  file: string,
  pods: readonly Pod[],
  machines: readonly Machine[],
): string[] {
  const models = new Set(machines.map((machine) => machine.model).filter((name) => name !== ''));
  const kinds = [...new Map(machines.map((each) => [machineKey(each), each])).values()];
  const held = new Map<string, boolean>();
  const messages: string[] = [];
  for (const pod of pods) {
    const { demand, at } = pod;
    const unknown = demand.models.find((model) => !models.has(model));
    if (unknown !== undefined) {
      const what = `no machine has the model ${unknown}; there are ${[...models].join(', ')}`;
      throw csvError(file, { line: at.line, column: at.specColumn }, what);
    }
    const key = demandKey(demand);
    const known = held.get(key) ?? kinds.some((machine) => couldHold(machine, demand));
    held.set(key, known);
    if (!known) {
      messages.push(
        `${file}:${at.line}:${at.column}: ${pod.name} fits no machine, even an empty one`,
      );
    }
  }
  return messages;
}
