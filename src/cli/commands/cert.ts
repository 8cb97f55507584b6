import { type FileOptions, initAuthorityFiles, issueFiles } from '#fabric/certificates';
import { type OutputFormat, printJson, printLine } from '../output.ts';

interface CertOptions {
  readonly dir: string;
  readonly force?: boolean;
  readonly output: OutputFormat;
}

function fileOptions(options: CertOptions & { readonly days?: number }): FileOptions {
  return {
    nowMs: Date.now(),
    force: options.force === true,
    ...(options.days === undefined ? {} : { days: options.days }),
  };
}

export async function certInit(options: CertOptions & { readonly name: string }): Promise<void> {
  const files = await initAuthorityFiles(options.dir, options.name, fileOptions(options));
  if (options.output === 'json') {
    printJson(files);
    return;
  }
  printLine(`${files.cert}: the authority; every host and box needs it`);
  printLine(`${files.key}: its key; keep it where certificates are issued and nowhere else`);
  printLine(`Next: dxpu cert issue host h1 --dir ${options.dir}`);
}

export async function certIssue(
  kind: 'host' | 'box',
  id: string,
  options: CertOptions & { readonly days: number },
): Promise<void> {
  const files = await issueFiles(options.dir, { kind, id }, fileOptions(options));
  if (options.output === 'json') {
    printJson(files);
    return;
  }
  printLine(`${files.cert}: spiffe://pool/${kind}/${id}, valid for ${options.days} days`);
  printLine(`${files.key}: its key`);
}
