/**
 * Configurations of the crash tests: box b1 and host h1 share zone z1, b2 and h2 zone z2. Where things go
 * wrong, the end of a link session is seen after 300 ms.
 */

/** Of box b1, and of both hosts: as many bindings as a scenario has at once, and one to spare. */
export const SLOTS: readonly number[] = [0, 1, 2, 3, 4];
/** Of box b2: one is bound, one is free. */
export const BYSTANDING_SLOTS: readonly number[] = [0, 1];

export const managerYaml = (port: number): string => `manager: m1
certificates: { ca: ca.pem, cert: manager-m1.pem, key: manager-m1-key.pem }
listen: ["127.0.0.1:${port}"]
`;

export function boxYaml(
  id: string,
  slots: readonly number[],
  port: number,
  managerPort: number,
): string {
  const devices = slots.map(
    (slot) => `  - { slot: ${slot}, kind: accel, memory: 1MiB, nsPerFlop: 10000 }
`,
  );
  return `box: ${id}
certificates: { ca: ca.pem, cert: box-${id}.pem, key: box-${id}-key.pem }
manager: { address: "127.0.0.1:${managerPort}" }
zone: z${id.slice(1)}
listen: ["127.0.0.1:${port}"]
devices:
${devices.join('')}link: { resumeWindow: ${resumeWindow(id)} }
`;
}

export function hostYaml(id: string, managerPort: number): string {
  const slots = SLOTS.map(
    (slot) => `  - slot: ${slot}
    secondaryBus: ${slot + 1}
    nonPrefetchable: { base: ${0xe000_0000 + slot * 2 ** 20}, size: 1MiB }
    prefetchable: { base: ${2 ** 38 + slot * 2 ** 20}, size: 1MiB }
`,
  );
  return `host: ${id}
certificates: { ca: ca.pem, cert: host-${id}.pem, key: host-${id}-key.pem }
manager: { address: "127.0.0.1:${managerPort}" }
reach: [z${id.slice(1)}]
slots:
${slots.join('')}memory:
  - { base: 0, size: 4MiB }
link: { resumeWindow: ${resumeWindow(id)} }
`;
}

const resumeWindow = (id: string): string => (id.endsWith('1') ? '300ms' : '3s');
