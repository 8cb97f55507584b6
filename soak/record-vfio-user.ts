/**
 * Records anew what stock QEMU says to our vfio-user server: each of our devices is plugged into a real guest,
 * used there by its driver, reset, and taken out again. One message of each shape goes into the corpus that
 * `fuzz-vfio-user` mutates.
 *
 *     npm run soak -- record-vfio-user [--file src/testkit/vfio-user/qemu-corpus.txt]
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import * as path from 'node:path';
import { parseArgs } from 'node:util';
import { ServedModel } from '#agent/daemon/served-model';
import { RealClock } from '#base/clock';
import { createDeviceModel, type DeviceKind } from '#devices/device-models';
import {
  CORPUS_FILE,
  corpusText,
  type RecordedMessage,
  type RecordedSession,
} from '#testkit/vfio-user/corpus';
import { recordingTransport } from '#testkit/vfio-user/recording-transport';
import { MonitoredVm } from '#testkit/vm/monitored-vm';
import { TestVm } from '#testkit/vm/test-vm';
import { vmNeeds } from '#testkit/vm/vm-needs';
import { koffiTransport } from '#vfio-user/koffi-socket';
import { VfioUserServer } from '#vfio-user/server';

const WATCHDOG_MS = 300_000;
const MEMORY_BYTES = 16 * 2 ** 20;
const UUID = '00000000-0000-4000-8000-000000000001';

const { values: options } = parseArgs({
  options: { file: { type: 'string', default: CORPUS_FILE } },
});

/** What the guest does with each, at its address. */
const USES: Readonly<Record<DeviceKind, (bdf: string) => readonly string[]>> = {
  accel: (bdf) => [
    `sgemm -n 1 -s 32 -d ${bdf}`,
    `measure -d ${bdf} read 100`,
    `measure -d ${bdf} write 100`,
    `echo 1 > /sys/bus/pci/devices/${bdf}/reset`,
  ],
  'virtio-gpu': (bdf) => [
    `until ls -d /sys/bus/pci/devices/${bdf}/graphics/fb*; do sleep 0.2; done`,
    `fbdraw /dev/$(basename /sys/bus/pci/devices/${bdf}/graphics/fb*) 1`,
    `echo ${bdf} > /sys/bus/pci/devices/${bdf}/driver/unbind`,
  ],
  'bochs-display': (bdf) => [
    `until ls -d /sys/bus/pci/devices/${bdf}/graphics/fb*; do sleep 0.2; done`,
    `fbdraw /dev/$(basename /sys/bus/pci/devices/${bdf}/graphics/fb*) 1`,
    `echo ${bdf} > /sys/bus/pci/devices/${bdf}/driver/unbind`,
  ],
};

async function recordOne(
  vm: MonitoredVm,
  folder: string,
  kind: DeviceKind,
  slot: number,
): Promise<RecordedSession> {
  const messages: RecordedMessage[] = [];
  const clock = new RealClock();
  const sizes = kind === 'bochs-display' ? { width: 320, height: 240 } : {};
  const memory = kind === 'accel' ? { memoryBytes: MEMORY_BYTES } : {};
  const choice = { kind, options: { uuid: UUID, ...sizes, ...memory } };
  const device = new ServedModel({ model: createDeviceModel(choice, console.error), clock });
  const socket = path.join(folder, kind);
  const transport = recordingTransport(koffiTransport, (message) => messages.push(message));
  const server = new VfioUserServer({ path: socket, device, clock, transport });
  const bdf = `0000:0${slot + 1}:00.0`;
  try {
    await vm.add(kind, `rp${slot}`, socket);
    await vm.vm.shell(`measure -d ${bdf} there`);
    for (const command of USES[kind](bdf)) await vm.vm.shell(command);
    await vm.remove(kind);
    return { device: kind, messages };
  } finally {
    server.close();
    device.stop();
  }
}

const needs = await vmNeeds();
if (typeof needs === 'string') {
  console.error(`record-vfio-user: ${needs}`);
  process.exit(1);
}
const folder = mkdtempSync(path.join(tmpdir(), 'dxpu-record-'));
const vm = new MonitoredVm(await TestVm.start(needs, { slots: 3, watchdogMs: WATCHDOG_MS }));
try {
  const sessions: RecordedSession[] = [];
  for (const [slot, kind] of (Object.keys(USES) as DeviceKind[]).entries()) {
    console.error(`recording ${kind}`);
    sessions.push(await recordOne(vm, folder, kind, slot));
  }
  const title =
    'What QEMU and our vfio-user server say to each other while a Linux guest uses our devices.\n' +
    `${await vm.version()}. Recorded by: npm run soak -- record-vfio-user`;
  writeFileSync(options.file, corpusText(title, sessions));
  console.log(
    `${options.file}: ${sessions.map(({ device, messages }) => `${messages.length} of ${device}`).join(', ')}`,
  );
} finally {
  await vm.stop();
  rmSync(folder, { recursive: true });
}
process.exit(0);
