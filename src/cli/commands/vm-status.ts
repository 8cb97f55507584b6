/** `dxpu vm status`: the VMs of a state folder. */
import { askProcess } from '../control-client.ts';
import { formatTable, type OutputFormat, printData, printLine } from '../output.ts';
import { stateFolder } from '../state-folder.ts';
import { knownVms, readRecord, vmProxy } from '../vm-folder.ts';
import { vmPid, vmState } from '../vm-machine.ts';

export interface VmStatusOptions {
  readonly state?: string;
  readonly output: OutputFormat;
}

export async function vmStatus(options: VmStatusOptions): Promise<void> {
  const state = stateFolder(options.state);
  const vms = await Promise.all(
    knownVms(state).map(async (files) => {
      const guest = await vmState(files).catch(() => 'does not answer');
      return {
        host: files.id,
        guest: guest ?? 'not running',
        pid: vmPid(files),
        ports: readRecord(files)?.ports ?? [],
        proxy: (await isProxyThere(state, files.id)) ? 'running' : 'not running',
        console: files.consoleLog,
      };
    }),
  );
  if (options.output !== 'table') {
    await printData({ vms }, options.output);
    return;
  }
  if (vms.length === 0) {
    printLine(`no VM in ${state}; dxpu vm up starts one`);
    return;
  }
  const rows = vms.map((vm) => [
    vm.host,
    vm.guest,
    vm.pid ?? '-',
    vm.proxy,
    vm.ports.length,
    vm.console,
  ]);
  printLine(formatTable(['host', 'guest', 'pid', 'proxy', 'slots', 'console'], rows));
}

async function isProxyThere(state: string, id: string): Promise<boolean> {
  const answer = await askProcess(vmProxy(state, id), 'ping', {}).catch(() => undefined);
  return answer !== undefined;
}
