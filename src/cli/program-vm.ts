/** The commands of VMs: `dxpu vm up|console|status|down`. */
import { type Command, Option } from 'commander';
import { examples, filled, name, several, size, stateOption, whole } from './program-options.ts';
import { USUAL_VM, USUAL_WINDOWS } from './vm-words.ts';

export function addVm(program: Command): void {
  const vm = program
    .command('vm')
    .description('a real VM as a host of the pool: QEMU with a stock Linux, GPU nodes hot-plugged');
  addUp(vm);
  examples(
    vm
      .command('console')
      .description('the serial console of a VM on this terminal; Ctrl-] leaves it')
      .addOption(hostOption())
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/vm-console.ts')).vmConsole(command.optsWithGlobals()),
      ),
    ['dxpu vm console', 'dxpu vm console --host vm2'],
  );
  examples(
    vm
      .command('status')
      .description('the VMs of the state folder')
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/vm-status.ts')).vmStatus(command.optsWithGlobals()),
      ),
    ['dxpu vm status', 'dxpu vm status --output json'],
  );
  examples(
    vm
      .command('down')
      .description(
        'end a VM and its host proxy; unbind what it has before, or with --force afterwards',
      )
      .addOption(hostOption())
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/vm-down.ts')).vmDown(command.optsWithGlobals()),
      ),
    ['dxpu vm down', 'dxpu vm down --host vm2'],
  );
}

function addUp(vm: Command): void {
  examples(
    vm
      .command('up')
      .description(
        'start a VM whose slots are slots of the pool, with all it takes: the packages of Debian it is ' +
          'made of, the pool of the state folder, a host proxy; then show its console',
      )
      .addOption(hostOption())
      .addOption(
        new Option('--slots <n>', 'virtual slots').argParser(whole(1, 31)).default(USUAL_VM.slots),
      )
      .addOption(sizeOption('--memory <bytes>', 'memory of the guest', USUAL_VM.memoryBytes))
      .addOption(
        new Option('--cpus <n>', 'processors of the guest')
          .argParser(whole(1, 64))
          .default(USUAL_VM.cpus),
      )
      .addOption(
        sizeOption(
          '--window <bytes>',
          'set aside behind each slot for prefetchable BARs of 64 bits: device memory',
          USUAL_WINDOWS.prefetchableBytes,
        ),
      )
      .addOption(
        sizeOption(
          '--window32 <bytes>',
          'set aside behind each slot below 4 GiB: registers',
          USUAL_WINDOWS.memoryBytes,
        ),
      )
      .option('--kvm', 'run the guest on the processor, by /dev/kvm, and not emulated')
      .option(
        '--qemu <program>',
        'qemu-system-x86_64 of 10.1 or newer, in place of what is there',
        filled,
      )
      .option('--kernel <file>', 'kernel of the guest; needs --initrd', filled)
      .option('--initrd <file>', 'first file system of the guest', filled)
      .option('--append <words>', 'more words of the command line of the kernel', filled)
      .option(
        '--add <file>',
        'a program or file for /bin of the guest; may be given again',
        several(filled),
      )
      .option(
        '--images <folder>',
        'where packages stay, $DXPU_VM_IMAGES; usually in the state folder',
        filled,
      )
      .option('--mirror <url>', "a mirror of Debian, in place of the machine's", filled)
      .option('--detach', 'do not show the console')
      .addOption(stateOption())
      .action(async (_options, command: Command) =>
        (await import('./commands/vm-up.ts')).vmUp({
          ...command.optsWithGlobals(),
          given: command.options
            .map((option) => option.attributeName())
            .filter((word) => command.getOptionValueSource(word) === 'cli'),
        }),
      ),
    [
      'dxpu vm up                          # then, elsewhere: dxpu bind --gpus 1 --host vm1 --wait',
      'dxpu vm up --host vm2 --slots 8 --memory 2GiB --cpus 2 --detach',
      'dxpu vm up --kernel bzImage --initrd rootfs.img --append "root=/dev/ram0"',
    ],
  );
}

function hostOption(): Option {
  return new Option('--host <host>', 'the host of the pool that the VM is')
    .argParser(name)
    .default(USUAL_VM.host);
}

function sizeOption(flags: string, text: string, usualBytes: number): Option {
  return new Option(flags, text).argParser(size).default(usualBytes, `${usualBytes / 2 ** 20}MiB`);
}
