/** What the commands of VMs have in common, without loading any of them. */
const MIB = 2 ** 20;

export const USUAL_VM = { host: 'vm1', slots: 4, memoryBytes: 1024 * MIB, cpus: 1 } as const;

/**
 * Set aside behind each slot: enough for what boxes have. A window of 256 MiB has a place for a BAR of 128 MiB
 * wherever the firmware puts it.
 */
export const USUAL_WINDOWS = { memoryBytes: 32 * MIB, prefetchableBytes: 256 * MIB } as const;
