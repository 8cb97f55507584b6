import { describe, expect, it } from 'vitest';
import { qemuArguments, slotPorts, type VmOptions } from './qemu-command.ts';

const MIB = 2 ** 20;
const OPTIONS: VmOptions = {
  kernel: '/k',
  initrd: '/i',
  memoryMib: 512,
  cpus: 1,
  ports: slotPorts(10, { memoryBytes: 32 * MIB, prefetchableBytes: 256 * MIB }),
  qmp: ['/a.qmp', '/b.qmp'],
  console: '/vm,1/console',
  consoleLog: '/vm,1/console.log',
  accelerator: 'tcg',
};

/** What follows each occurrence of an option. */
const valuesOf = (args: readonly string[], option: string): string[] =>
  args.flatMap((word, index) => (word === option ? [args[index + 1] ?? ''] : []));

describe("QEMU's command line", () => {
  it('has a root port a slot, each with windows of its own, eight on a device', () => {
    const ports = valuesOf(qemuArguments(OPTIONS), '-device').filter((one) =>
      one.startsWith('pcie-root-port,'),
    );
    expect(ports).toHaveLength(10);
    const rest = (number: number): string => `bus=pcie.0,chassis=${number},slot=${number},addr=`;
    const windows = 'mem-reserve=32M,pref64-reserve=256M';
    expect(ports[0]).toBe(`pcie-root-port,id=rp0,${rest(1)}2.0,multifunction=on,${windows}`);
    expect(ports[7]).toBe(`pcie-root-port,id=rp7,${rest(8)}2.7,${windows}`);
    expect(ports[8]).toBe(`pcie-root-port,id=rp8,${rest(9)}3.0,multifunction=on,${windows}`);
  });

  it('doubles commas of file names where settings stand behind them', () => {
    expect(valuesOf(qemuArguments(OPTIONS), '-chardev')).toEqual([
      'socket,id=console,path=/vm,,1/console,server=on,wait=off,logfile=/vm,,1/console.log',
    ]);
  });

  it('has the sockets that were asked for, and a second serial port for commands', () => {
    const args = qemuArguments({ ...OPTIONS, control: '/c' });
    expect(valuesOf(args, '-qmp')).toEqual([
      'unix:/a.qmp,server=on,wait=off',
      'unix:/b.qmp,server=on,wait=off',
    ]);
    expect(valuesOf(args, '-serial')).toEqual(['chardev:console', 'chardev:control']);
  });

  it('shares the memory of the guest, so that devices reach it', () => {
    expect(valuesOf(qemuArguments(OPTIONS), '-object')).toEqual([
      'memory-backend-memfd,id=memory,size=512M,share=on',
    ]);
  });
});
