/** The files `dxpu start` makes: certificates and a configuration for one box and one host. */
import { writeFileSync } from 'node:fs';
import * as path from 'node:path';
import { DxpuError } from '#base/errors';
import { errnoReason, makeFolder } from '#base/make-folder';

export const BOX_ID = 'b1';
export const HOST_ID = 'h1';

export interface StartFiles {
  readonly boxConfig: string;
  readonly hostConfig: string;
}

/** Writes certificates and configurations into `folder`, replacing those of an earlier start. */
export async function writeStartFiles(folder: string, port: number): Promise<StartFiles> {
  // Slow to load, and needed here alone.
  const { initAuthorityFiles, issueFiles } = await import('#identity/certificates');
  makeFolder(folder);
  const options = { nowMs: Date.now(), force: true };
  await initAuthorityFiles(folder, 'dxpu start', options);
  await issueFiles(folder, { kind: 'box', id: BOX_ID }, options);
  await issueFiles(folder, { kind: 'host', id: HOST_ID }, options);
  const boxConfig = path.join(folder, 'box.yaml');
  const hostConfig = path.join(folder, 'host.yaml');
  write(boxConfig, boxYaml(port));
  write(hostConfig, hostYaml(port));
  return { boxConfig, hostConfig };
}

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text, { mode: 0o600 });
  } catch (error) {
    throw new DxpuError(
      DxpuError.from(error).code,
      `cannot write ${file}: ${errnoReason(error)}; choose another folder with --state`,
      { details: { file }, cause: error },
    );
  }
}

function boxYaml(port: number): string {
  return `# A box with two accelerators, as dxpu start made it. To run it by hand:
#   dxpu box --config box.yaml
box: ${BOX_ID}
certificates: { ca: ca.pem, cert: box-${BOX_ID}.pem, key: box-${BOX_ID}-key.pem }
listen: ["127.0.0.1:${port}"]

devices:
  - { slot: 0, kind: accel, memory: 64MiB }
  - { slot: 1, kind: accel, memory: 64MiB }

# Which host has which slot. A generation is never used twice: to bind a slot anew, after a link was
# lost or to another host, raise it here and in host.yaml, then: dxpu reload
table:
  - { slot: 0, host: ${HOST_ID}, path: loopback, generation: 1 }
  - { slot: 1, host: ${HOST_ID}, path: loopback, generation: 2 }
`;
}

function hostYaml(port: number): string {
  return `# A host with two virtual slots, as dxpu start made it. To run it by hand:
#   dxpu host --config host.yaml
host: ${HOST_ID}
certificates: { ca: ca.pem, cert: host-${HOST_ID}.pem, key: host-${HOST_ID}-key.pem }

paths:
  - { name: loopback, box: ${BOX_ID}, address: "127.0.0.1:${port}" }

# Windows are set aside for each slot before anything is plugged in.
slots:
  - slot: 0
    secondaryBus: 1
    nonPrefetchable: { base: 0xe0000000, size: 16MiB }
    prefetchable: { base: 0x4000000000, size: 64MiB }
  - slot: 1
    secondaryBus: 2
    nonPrefetchable: { base: 0xe1000000, size: 16MiB }
    prefetchable: { base: 0x4004000000, size: 64MiB }

# What the soft host's programs and the accelerators' DMA share.
memory:
  - { base: 0, size: 64MiB }

table:
  - { virtualSlot: 0, box: ${BOX_ID}, slot: 0, path: loopback, generation: 1 }
  - { virtualSlot: 1, box: ${BOX_ID}, slot: 1, path: loopback, generation: 2 }
`;
}
