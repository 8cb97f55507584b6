import { describe, expect, test } from 'vitest';
import { checkJobs, type Job, jobsOfPods, readJobs } from './job-list.ts';
import { readPods } from './pod-list.ts';

describe('lists of jobs', () => {
  const needs = { cpuMilliPerGpu: 4000, memoryMibPerGpu: 100, gpusPerTask: 8 };
  const read = (rows: string): Job[] =>
    readJobs('j.csv', `job_id,num_gpu,submit_time,duration,model_name\n${rows}\n`, needs);

  test('equal demands are one object; large jobs are of equal tasks', () => {
    const jobs = read('0,16,0,1000,vgg16\n1,8,5,10,bert\n2,1,7,1,bert');
    expect(jobs.map(({ tasks, demand }) => [tasks, demand.gpus, demand.cpuMilli])).toEqual([
      [2, 8, 32_000],
      [1, 8, 32_000],
      [1, 1, 4000],
    ]);
    expect(jobs[0]?.demand).toBe(jobs[1]?.demand);
    expect(jobs[0]).toMatchObject({ workClass: 'vgg16', submitMs: 0, durationMs: 1000 });
  });

  test.for([
    ['0,0,0,1,x', 'j.csv:2:3: a job of no GPU'],
    ['0,8000,0,1,x', 'j.csv:2:3: num_gpu 8000 is in whole GPUs, not in thousandths'],
    ['0,9,0,1,x', 'j.csv:2:3: 9 GPUs make no 2 equal tasks of at most 8'],
    ['0,1,-5,1,x', 'j.csv:2:5: submit_time is negative: -5'],
    ['0,1,0,1.5,x', 'j.csv:2:7: duration "1.5" is no whole number; it is in milliseconds'],
    ['0,1,0,1,x\n0,1,0,1,x', 'j.csv:3:1: job_id 0 was used before, in line 2'],
  ])('%s', ([rows, message]) => {
    expect(() => read(rows!)).toThrow(message);
  });

  test('what no machine could hold is told with its place', () => {
    const machine = { name: 'a', cpuMilli: 32_000, memoryMib: 800, gpus: 8, model: 'G2' };
    const jobs = read('a,8,0,1,x\nb,16,0,1,x\nc,24,0,1,x');
    expect(checkJobs('j.csv', jobs, [machine, machine])).toEqual([
      'j.csv:4:3: job c: 24 GPUs, and all machines have 16',
    ]);
    // 8 GPUs need 800 MiB.
    expect(checkJobs('j.csv', jobs.slice(0, 2), [{ ...machine, memoryMib: 799 }])).toEqual([
      'j.csv:2:3: job a: fits no machine, even an empty one',
      'j.csv:3:3: job b: a task of 8 GPUs fits no machine, even an empty one',
    ]);
  });

  test('pods with both times', () => {
    const header = 'name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time\n';
    const pods = readPods('p.csv', `${header}a,1000,1,1,500,3,5\nb,1000,1,1,500,3,\n`);
    expect(jobsOfPods(pods)).toEqual([
      expect.objectContaining({ name: 'a', submitMs: 3000, durationMs: 2000, tasks: 1 }),
    ]);
  });
});
