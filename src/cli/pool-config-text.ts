/** The configurations of a pool on one machine, with what somebody who reads them wants to know. */
import { stringify } from 'yaml';

/** The network between hosts and boxes of one machine. */
const PATH = 'loopback';
const MEMORY = '64MiB';
const WINDOW32_BASE = 0xe000_0000;
const WINDOW32_BYTES = 2 ** 20;
const WINDOW64_BASE = 0x40_0000_0000;
const WINDOW64_BYTES = 64 * 2 ** 20;

export const sizesYaml = (sizes: object): string =>
  `# What this pool was made with. It stays so: another pool takes another folder.\n${stringify(sizes)}`;

export const clientYaml = (user: string, managerPort: number): string =>
  `# How dxpu get, bind and all the others reach the manager.
manager: "127.0.0.1:${managerPort}"
certificates: { ca: ca.pem, cert: user-${user}.pem, key: user-${user}-key.pem }
`;

export const managerYaml = (id: string, port: number): string =>
  `# The manager of this pool. To run it by hand: dxpu manager --config manager-${id}.yaml
manager: ${id}
certificates: { ca: ca.pem, cert: manager-${id}.pem, key: manager-${id}-key.pem }
listen: ["127.0.0.1:${port}"]
store: store
`;

/** Every second box has an NVSwitch: all its GPU nodes are of one NVLink group. */
export function boxYaml(
  id: string,
  index: number,
  gpus: number,
  port: number,
  managerPort: number,
): string {
  const isSwitch = index % 2 === 1;
  const group = isSwitch ? ', nvlinkGroup: nv0' : '';
  const devices = Array.from(
    { length: gpus },
    (_, slot) => `  - { slot: ${slot}, kind: accel, memory: ${MEMORY}${group} }\n`,
  );
  return `# A box with ${gpus} accelerators. To run it by hand: dxpu box --config box-${id}.yaml
box: ${id}
kind: ${isSwitch ? 'nvswitch' : 'pcie'}
certificates: { ca: ca.pem, cert: box-${id}.pem, key: box-${id}-key.pem }
manager: { address: "127.0.0.1:${managerPort}", id: m1 }
listen: ["127.0.0.1:${port}"]
# What hosts are told to connect to, and what that way is called.
advertise:
  - { path: ${PATH}, address: "127.0.0.1:${port}" }
devices:
${devices.join('')}`;
}

export function hostYaml(id: string, slots: number, managerPort: number): string {
  const hex = (value: number): string => `0x${value.toString(16)}`;
  const ports = Array.from(
    { length: slots },
    (_, slot) => `  - slot: ${slot}
    secondaryBus: ${slot + 1}
    nonPrefetchable: { base: ${hex(WINDOW32_BASE + slot * WINDOW32_BYTES)}, size: 1MiB }
    prefetchable: { base: ${hex(WINDOW64_BASE + slot * WINDOW64_BYTES)}, size: 64MiB }
`,
  );
  return `# A host with ${slots} virtual slots. To run it by hand: dxpu host --config host-${id}.yaml
host: ${id}
certificates: { ca: ca.pem, cert: host-${id}.pem, key: host-${id}-key.pem }
manager: { address: "127.0.0.1:${managerPort}", id: m1 }
# Windows are set aside for each slot before anything is plugged in.
slots:
${ports.join('')}# What the soft host's programs and the accelerators' DMA share.
memory:
  - { base: 0, size: 64MiB }
`;
}

/** `qmp` is QEMU's socket, `ports` its root ports in the order of the slots, `manager` where that listens. */
export function vmHostYaml(
  id: string,
  qmp: string,
  ports: readonly string[],
  manager: string,
): string {
  return `# The VM of host ${id}; dxpu vm up writes this. To run its proxy by hand: dxpu host --config host-${id}.yaml
host: ${id}
certificates: { ca: ca.pem, cert: host-${id}.pem, key: host-${id}-key.pem }
manager: { address: ${JSON.stringify(manager)}, id: m1 }
# Where QEMU takes commands, and its root ports: the virtual slots 0, 1 and so on.
vm:
  qmp: ${JSON.stringify(qmp)}
  rootPorts: [${ports.join(', ')}]
`;
}
