/** `dxpu vm down`: ends a VM, then its host proxy. */
import { type OutputFormat, printData, printLine } from '../output.ts';
import { lockPool } from '../pool-lock.ts';
import { endProcess } from '../process-end.ts';
import { stateFolder } from '../state-folder.ts';
import { vmProxy, vmThere } from '../vm-folder.ts';
import { endVm } from '../vm-machine.ts';

export interface VmDownOptions {
  readonly state?: string;
  readonly host: string;
  readonly output: OutputFormat;
}

export async function vmDown(options: VmDownOptions): Promise<void> {
  const state = stateFolder(options.state);
  const { host: id, output } = options;
  const files = vmThere(state, id);
  const lock = await lockPool(state);
  try {
    // The VM first: its proxy sees it go, and gives back what it held.
    const vm = await endVm(files);
    const proxy = await endProcess(vmProxy(state, id));
    if (output !== 'table') await printData({ host: id, vm, proxy }, output);
    else printLine(`VM of ${id}: ${vm}\nhost-${id}: ${proxy}`);
  } finally {
    lock.close();
  }
}
