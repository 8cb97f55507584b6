/** What one request asks for, and what one machine has. */

/**
 * CPU in thousandths, memory in MiB. `gpus` GPUs of which each gives `gpuMilli` thousandths: 1000
 * for whole GPUs, less only where `gpus` is 1, and 0 where no GPU is asked for. `models` are those
 * that will do; an empty list means any.
 */
export interface Demand {
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  readonly gpuMilli: number;
  readonly models: readonly string[];
}

/** A machine as bought: `gpus` GPUs of one model; none has `gpus` 0 and `model` empty. */
export interface Machine {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  readonly model: string;
}

/** A whole GPU, in thousandths. */
export const WHOLE_GPU = 1000;

/** Thousandths of GPUs that a demand asks for altogether. */
export function askedMilli(demand: Demand): number {
  return demand.gpus * demand.gpuMilli;
}

export function isShared(demand: Demand): boolean {
  return demand.gpus === 1 && demand.gpuMilli < WHOLE_GPU;
}

/** Equal for demands that nothing tells apart. */
export function demandKey({ cpuMilli, memoryMib, gpus, gpuMilli, models }: Demand): string {
  return `${cpuMilli},${memoryMib},${gpus},${gpuMilli},${models.join('|')}`;
}

/** Equal for machines that nothing but a name tells apart. */
export function machineKey({ cpuMilli, memoryMib, gpus, model }: Machine): string {
  return `${cpuMilli},${memoryMib},${gpus},${model}`;
}

/** GPUs of machines altogether. */
export function gpusOf(machines: readonly Machine[]): number {
  return machines.reduce((sum, { gpus }) => sum + gpus, 0);
}

/** Whether the machine, empty, could hold the demand. */
export function couldHold(machine: Machine, demand: Demand): boolean {
  return (
    machine.cpuMilli >= demand.cpuMilli &&
    machine.memoryMib >= demand.memoryMib &&
    machine.gpus >= demand.gpus &&
    (demand.gpus === 0 || acceptsModel(demand, machine.model))
  );
}

export function acceptsModel(demand: Demand, model: string): boolean {
  return demand.models.length === 0 || demand.models.includes(model);
}
