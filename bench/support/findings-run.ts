/** The studies behind docs/simulate-findings.md: `dxpu simulate` as a process, its JSON read. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { type SimulateResult, simulateResult } from '#simulator/result';

const MAIN = fileURLToPath(new URL('../../../dist/cli/main.js', import.meta.url));

export const OPENB_LISTS = ['default', 'cpu100', 'gpushare40', 'gpuspec10', 'multigpu20'] as const;
/** GPUs of a server of the jobs in time, and CPUs enough not to be what they wait for. */
const SERVER = '96000,786432,8,V100';

export interface Study {
  readonly result: SimulateResult;
  /** As it may be typed, with the names of the files alone. */
  readonly command: string;
}

/** Runs studies on the lists in `data`. */
export class Studies {
  readonly #data: string;
  readonly #folder = mkdtempSync(path.join(os.tmpdir(), 'dxpu-findings-'));

  constructor(data: string) {
    this.#data = data;
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Requests of an openb list on its GPU machines. */
  openb(list: string, ...args: readonly string[]): Promise<Study> {
    const openb = path.join(this.#data, 'cluster/openb');
    const nodes = path.join(openb, 'openb_node_list_gpu_node.csv');
    const pods = path.join(openb, `openb_pod_list_${list}.csv`);
    return this.#run(['--nodes', nodes, '--pods', pods, ...args]);
  }

  /** The jobs of Muri on so many equal servers of 8 GPUs. */
  muri(servers: number, ...args: readonly string[]): Promise<Study> {
    const nodes = path.join(this.#folder, `${servers}-servers.csv`);
    const rows = Array.from({ length: servers }, (_, i) => `server-${i},${SERVER}\n`);
    writeFileSync(nodes, `sn,cpu_milli,memory_mib,gpu,model\n${rows.join('')}`);
    const jobs = path.join(this.#data, 'cluster/other/muri-trace2-timed-jobs.csv');
    return this.#run(['--nodes', nodes, '--jobs', jobs, ...args]);
  }

  async #run(args: readonly string[]): Promise<Study> {
    const shown = args.map((word) => (word.startsWith('-') ? word : path.basename(word)));
    const command = `dxpu simulate ${shown.join(' ')}`;
    process.stderr.write(`${command}\n`);
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [MAIN, 'simulate', ...args, '--output', 'json'],
      { maxBuffer: Infinity },
    );
    return { command, result: simulateResult.parse(JSON.parse(stdout)) };
  }
}
