/** `dxpu vm console`. */
import { stateFolder } from '../state-folder.ts';
import { showConsole } from '../vm-console.ts';
import { vmThere } from '../vm-folder.ts';

export async function vmConsole(options: {
  readonly state?: string;
  readonly host: string;
}): Promise<void> {
  await showConsole(vmThere(stateFolder(options.state), options.host));
}
