/** Made-up lists, for a first look without any at hand: as text, in the form of real ones. */
import { Prng } from '#base/prng';

/** By what they are lists of, with what they are called wherever they are named. */
export const EXAMPLE_LISTS = {
  nodes: { name: 'synthetic-nodes.csv', text: exampleNodes },
  pods: { name: 'synthetic-pods.csv', text: examplePods },
  jobs: { name: 'synthetic-jobs.csv', text: exampleJobs },
} as const;

const SEED = 1;
const MACHINES = 48;
const PODS = 400;
const JOBS = 400;
const HOUR_MS = 3_600_000;

/** 48 machines: racks of 8 GPUs, of 4, and of 2. */
export function exampleNodes(): string {
  const rows = Array.from({ length: MACHINES }, (_, i) => {
    const [cpus, gib, gpus, model] =
      i < 24 ? [96, 768, 8, 'V100'] : i < 40 ? [64, 256, 4, 'T4'] : [96, 384, 2, 'P100'];
    return `node-${i},${Number(cpus) * 1000},${Number(gib) * 1024},${gpus},${model}`;
  });
  return `sn,cpu_milli,memory_mib,gpu,model\n${rows.join('\n')}\n`;
}

/** 400 requests: parts of GPUs, single GPUs, several, and some of none. Some need much CPU. */
export function examplePods(): string {
  const prng = new Prng(SEED);
  const rows = Array.from({ length: PODS }, (_, i) => {
    const kind = prng.float();
    const gpus = kind < 0.12 ? 0 : kind < 0.88 ? 1 : prng.pick([2, 4, 8]);
    const milli = gpus === 0 ? 0 : gpus === 1 && kind < 0.5 ? prng.between(1, 9) * 100 : 1000;
    const cpus = gpus < 2 ? prng.pick([2, 4, 8, 16, 24]) : gpus * prng.pick([4, 8, 12]);
    const model = gpus > 0 && gpus < 8 && prng.chance(0.1) ? prng.pick(['V100', 'V100|T4']) : '';
    return `pod-${i},${cpus * 1000},${cpus * 4096},${gpus},${milli},${model}`;
  });
  return `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n${rows.join('\n')}\n`;
}

/** 400 jobs of 1 to 8 GPUs over about three days; those machines are too few at times. */
export function exampleJobs(): string {
  const prng = new Prng(SEED);
  let atMs = 0;
  const rows = Array.from({ length: JOBS }, (_, i) => {
    atMs += Math.round(-Math.log(1 - prng.float()) * 0.17 * HOUR_MS);
    const gpus = prng.pick([1, 1, 1, 2, 4, 4, 8]);
    const hours = prng.pick([1, 4, 12, 48]) * (0.5 + prng.float());
    const model = prng.pick(['resnet50', 'vgg16', 'gpt2']);
    return `job-${i},${gpus},${atMs},${model},${Math.round(hours * HOUR_MS)}`;
  });
  return `job_id,num_gpu,submit_time,model_name,duration\n${rows.join('\n')}\n`;
}
