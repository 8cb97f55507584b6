/**
 * QEMU's command line for a VM whose root ports are virtual slots: q35, memory that can be shared, and for
 * each slot a root port of its own with windows set aside, so that what is plugged in later has room.
 */
export interface SlotPort {
  /** What QEMU calls the root port; the host proxy is told the same name. */
  readonly id: string;
  /** Set aside below 4 GiB. */
  readonly memoryBytes: number;
  /** Set aside anywhere, for prefetchable BARs of 64 bits. */
  readonly prefetchableBytes: number;
}

export interface VmOptions {
  readonly kernel: string;
  readonly initrd: string;
  /** Words of the kernel's command line behind those that a guest here needs. */
  readonly append?: readonly string[];
  readonly memoryMib: number;
  readonly cpus: number;
  readonly ports: readonly SlotPort[];
  /** UNIX sockets at which QEMU takes commands, one client each. */
  readonly qmp: readonly string[];
  /** UNIX socket of the serial console, and the file that keeps what was printed there. */
  readonly console: string;
  readonly consoleLog: string;
  /** UNIX socket of a second serial port. */
  readonly control?: string;
  /** Where QEMU writes the number of its process. */
  readonly pidFile?: string;
  /** `kvm` runs the guest on the processor; `tcg` emulates one, which needs nothing. */
  readonly accelerator: 'kvm' | 'tcg';
  /** QEMU ends when whoever started it does, however that one ends. */
  readonly endsWithParent?: boolean;
}

const MIB = 2 ** 20;

/** PCI device of the first root ports on the root bus: 0 and 31 are the chipset's, 1 is often a display's. */
const FIRST_DEVICE = 2;
const FUNCTIONS = 8;

/** Root ports of `count` slots, called rp0, rp1 and so on. */
export function slotPorts(
  count: number,
  windows: Pick<SlotPort, 'memoryBytes' | 'prefetchableBytes'>,
): SlotPort[] {
  return Array.from({ length: count }, (_, index) => ({ id: `rp${index}`, ...windows }));
}

export function qemuArguments(options: VmOptions): string[] {
  const { memoryMib, control } = options;
  const append = [
    'console=ttyS0',
    // Kernel drivers see the guest's memory as it is; programs that drive a function by vfio get maps of theirs.
    'intel_iommu=on',
    'iommu=pt',
    'panic=1',
    ...(options.append ?? []),
  ];
  const machine = `q35,accel=${options.accelerator},kernel-irqchip=split,memory-backend=memory`;
  const words: string[][] = [
    ['-nodefaults', '-no-user-config', '-display', 'none'],
    ['-machine', machine, '-cpu', 'max', '-smp', String(options.cpus), '-m', `${memoryMib}M`],
    // Shared: what serves a device reaches the guest's memory by mapping it.
    ['-object', `memory-backend-memfd,id=memory,size=${memoryMib}M,share=on`],
    // Interrupts by MSI of several vectors, and DMA of a guest's programs, need it.
    ['-device', 'intel-iommu,intremap=on,caching-mode=on'],
    // Slots of root ports are PCI Express hot-plug slots, not ACPI's.
    ['-global', 'ICH9-LPC.acpi-pci-hotplug-with-bridge-support=off'],
    ...options.ports.map((port, index) => ['-device', rootPort(port, index)]),
    ['-chardev', `${listening('console', options.console)},logfile=${value(options.consoleLog)}`],
    ['-serial', 'chardev:console'],
    ...options.qmp.map((path) => ['-qmp', `unix:${value(path)},server=on,wait=off`]),
    ['-kernel', options.kernel, '-initrd', options.initrd, '-append', append.join(' ')],
  ];
  if (control !== undefined) {
    words.push(['-chardev', listening('control', control), '-serial', 'chardev:control']);
  }
  if (options.pidFile !== undefined) words.push(['-pidfile', options.pidFile]);
  if (options.endsWithParent === true) words.push(['-run-with', 'exit-with-parent=on']);
  return words.flat();
}

/** Each is a slot of a chassis of its own; eight share a device of the root bus. */
function rootPort(port: SlotPort, index: number): string {
  const device = FIRST_DEVICE + Math.floor(index / FUNCTIONS);
  const fn = index % FUNCTIONS;
  const number = index + 1;
  return [
    'pcie-root-port',
    `id=${port.id}`,
    'bus=pcie.0',
    `chassis=${number}`,
    `slot=${number}`,
    `addr=${device.toString(16)}.${fn}`,
    ...(fn === 0 ? ['multifunction=on'] : []),
    `mem-reserve=${port.memoryBytes / MIB}M`,
    `pref64-reserve=${port.prefetchableBytes / MIB}M`,
  ].join(',');
}

const listening = (id: string, path: string): string =>
  `socket,id=${id},path=${value(path)},server=on,wait=off`;

/** A comma would begin the next setting. */
const value = (text: string): string => text.replaceAll(',', ',,');
