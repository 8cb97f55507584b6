/** `dxpu vm console`. */
import { stateFolder } from '../state-folder.ts';
import { showConsole } from '../vm-console.ts';
import { vmFiles } from '../vm-folder.ts';

export async function vmConsole(options: {
  readonly state?: string;
  readonly host: string;
}): Promise<void> {
  await showConsole(vmFiles(stateFolder(options.state), options.host));
}
