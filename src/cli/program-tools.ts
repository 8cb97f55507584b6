/** The commands that need no running process: bandwidth, decode, replay, cert. */
import { Argument, type Command, Option } from 'commander';
import type { DeviceKind } from '#devices/device-models';
import { IDENTITY_KINDS, type IdentityKind } from '#identity/identity';
import { duration, examples, filled, rate, several, size, whole } from './program-options.ts';

/** More than any authority lives; what is left of it is checked where it is known. */
const MAX_DAYS = 100_000;

/** Said again here: help must not load the models. */
const MODELS = ['accel', 'virtio-gpu', 'bochs-display'] as const satisfies readonly DeviceKind[];

export function addTools(program: Command): void {
  examples(
    program
      .command('bandwidth')
      .description('what a PCIe link can carry, and what a round trip leaves of it')
      .option('--gen <n>', 'generation, 1 to 6', whole(1, 6), 3)
      .option('--lanes <n>', '1, 2, 4, 8, 12, 16 or 32', whole(1, 32), 16)
      .option('--mps <bytes>', 'maximum payload size', size, 256)
      .option('--mrrs <bytes>', 'maximum read request size', size, 512)
      .option('--rcb <bytes>', 'read completion boundary', size, 64)
      .addOption(
        new Option('--address-bits <bits>', 'of memory requests')
          .choices(['32', '64'])
          .default('64'),
      )
      .option('--ecrc', 'an end-to-end CRC in each TLP')
      .option('--split-at-rcb', 'completions in pieces of RCB, not of MPS')
      .option(
        '--transfer <bytes>',
        'a transfer size instead of the usual ones; may be given again',
        several(size),
      )
      .option('--tags <n>', 'reads a device has outstanding', whole(1, 1024))
      .option('--rtt <duration>', 'round trip of a read, as in 1.2us', duration)
      .option('--network <rate>', 'bit rate of the network between, as in 100Gbit/s', rate)
      .action(async (_options, command: Command) =>
        (await import('./commands/bandwidth.ts')).bandwidth(command.optsWithGlobals()),
      ),
    [
      'dxpu bandwidth --gen 4 --lanes 16',
      'dxpu bandwidth --gen 3 --lanes 16 --mrrs 128 --tags 140 --rtt 6.8us',
      'dxpu bandwidth --gen 5 --lanes 16 --mps 512 --mrrs 4096 --transfer 1MiB --output json',
      'dxpu bandwidth --network 100Gbit/s --transfer 64 --transfer 4KiB',
    ],
  );
  examples(
    program
      .command('decode')
      .description('TLPs as an engineer reads them, a line each')
      .argument('<file>', 'pcapng capture, or hex strings one a line; - reads stdin')
      .action(async (file: string, _options, command: Command) =>
        (await import('./commands/decode.ts')).decode(file, command.optsWithGlobals()),
      ),
    [
      'dxpu decode sgemm.pcapng',
      'echo 05000001ca9a5c0ff74807a4 | dxpu decode -',
      'dxpu decode sgemm.pcapng --output json | head',
    ],
  );
  examples(
    program
      .command('replay')
      .description(
        'give captured requests to a fresh device model, and show what it answers else; ' +
          'holds the capture in memory',
      )
      .argument('<file>', 'pcapng capture of one slot')
      .addOption(new Option('--device <kind>', 'device model').choices(['accel']).default('accel'))
      .option('--memory <bytes>', 'its memory, where the capture does not show it', size)
      .option('--uuid <uuid>', 'its UUID, where the capture does not show it')
      .action(async (file: string, _options, command: Command) =>
        (await import('./commands/replay.ts')).replay(file, command.optsWithGlobals()),
      ),
    ['dxpu replay sgemm.pcapng', 'dxpu replay sgemm.pcapng --memory 256MiB --output json'],
  );
}

export function addDevice(program: Command): void {
  const device = program
    .command('device')
    .description('one device model by itself, without a pool, for a VM or any vfio-user client');
  examples(
    device
      .command('serve')
      .description('serve a device model at a vfio-user socket, to one client at a time')
      .addArgument(new Argument('<kind>').choices(MODELS))
      .argument('<socket>', 'unix socket to listen at; QEMU 10.1 or newer connects to it', filled)
      .option('--memory <bytes>', 'its memory, a power of two', size)
      .option('--uuid <uuid>', 'its UUID; without it a new one at each start')
      .action(async (kind: DeviceKind, socket: string, _options, command: Command) =>
        (await import('./commands/device-serve.ts')).deviceServe(
          kind,
          socket,
          command.optsWithGlobals(),
        ),
      ),
    [
      'dxpu device serve accel /run/accel.sock',
      'dxpu device serve bochs-display /run/vga.sock --memory 64MiB',
    ],
  );
}

export function addCertificates(program: Command): void {
  const cert = program
    .command('cert')
    .description('the certificate authority of a pool and the certificates of all who take part');
  examples(
    cert
      .command('init')
      .description('make a certificate authority')
      .option('--dir <folder>', 'where ca.pem and ca-key.pem go', 'certs')
      .option('--name <name>', 'its name', 'dxpu pool')
      .option('--force', 'replace one that is there')
      .action(async (_options, command: Command) =>
        (await import('./commands/cert.ts')).certInit(command.optsWithGlobals()),
      ),
    ['dxpu cert init', 'dxpu cert init --dir /etc/dxpu/certs --name "pool of room 4"'],
  );
  examples(
    cert
      .command('issue')
      .description('issue a certificate to a host, a box, a manager or a user')
      .addArgument(new Argument('<kind>').choices(IDENTITY_KINDS))
      .argument('<id>', 'its id, as its configuration has it; of a user, the name the log shows')
      .option('--dir <folder>', 'where ca.pem and ca-key.pem are', 'certs')
      .option(
        '--days <n>',
        'how long it is valid; at most as long as the authority',
        whole(1, MAX_DAYS),
        365,
      )
      .option('--force', 'replace one that is there')
      .action(async (kind: IdentityKind, id: string, _options, command: Command) =>
        (await import('./commands/cert.ts')).certIssue(kind, id, command.optsWithGlobals()),
      ),
    [
      'dxpu cert issue host h1',
      'dxpu cert issue box b1 --days 30',
      'dxpu cert issue manager m1',
      'dxpu cert issue user alice --dir /etc/dxpu/certs',
    ],
  );
}
