import { X509Certificate } from 'node:crypto';
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import { type FileOptions, initAuthorityFiles, issueFiles } from '#identity/certificates';
import type { IdentityKind } from '#identity/identity';
import { type OutputFormat, printData, printLine, UsageError } from '../output.ts';

const DAY_MS = 86_400_000;

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
  if (options.output !== 'table') {
    await printData(files, options.output);
    return;
  }
  printLine(`${files.cert}: the authority; every host, box, manager and user needs it`);
  printLine(`${files.key}: its key; keep it where certificates are issued and nowhere else`);
  printLine(`Next: dxpu cert issue host h1 --dir ${options.dir}`);
}

/** Nobody trusts a certificate after its authority has ended. */
function checkDays(folder: string, days: number): void {
  let endMs: number;
  try {
    endMs = Date.parse(new X509Certificate(readFileSync(path.join(folder, 'ca.pem'))).validTo);
  } catch {
    return; // Issuing says what is wrong with it.
  }
  const left = Math.floor((endMs - Date.now()) / DAY_MS);
  if (days <= left) return;
  const ca = path.join(folder, 'ca.pem');
  const until = new Date(endMs).toISOString().slice(0, 10);
  throw new UsageError(
    `--days is ${days}: ${ca} ends on ${until}, so ` +
      (left < 1 ? 'it issues no more; make another with dxpu cert init' : `at most ${left}`),
  );
}

export async function certIssue(
  kind: IdentityKind,
  id: string,
  options: CertOptions & { readonly days: number },
): Promise<void> {
  checkDays(options.dir, options.days);
  const files = await issueFiles(options.dir, { kind, id }, fileOptions(options));
  if (options.output !== 'table') {
    await printData(files, options.output);
    return;
  }
  printLine(`${files.cert}: spiffe://pool/${kind}/${id}, valid for ${options.days} days`);
  printLine(`${files.key}: its key`);
}
