/** What a server answers about its device: the numbers, its regions, its interrupts. */
import { encodeDeviceInfoReply, refuseDeviceInfoRequest } from './device-info.ts';
import { decodeIrqInfoRequest, encodeIrqInfoReply, IRQ_COUNT } from './irq-info.ts';
import { Command, commandName, type Message } from './message.ts';
import { Errno, Refusal } from './refusal.ts';
import { decodeRegionInfoRequest, encodeRegionInfoReply, REGION_COUNT } from './region-info.ts';
import type { DeviceSpec } from './served-device.ts';

export interface Answer {
  readonly reply: Uint8Array;
  /** Of the device, to go with the reply. */
  readonly fds: readonly number[];
}

/** `irqTotal` says how many interrupts of a type the client gets to see. */
export function answerQuery(
  message: Message,
  spec: DeviceSpec,
  irqTotal: (index: number) => number,
): Answer | Refusal {
  switch (message.command) {
    case Command.DEVICE_GET_INFO:
      return deviceInfo(message, spec);
    case Command.DEVICE_GET_REGION_INFO:
      return regionInfo(message, spec);
    case Command.DEVICE_GET_IRQ_INFO: {
      const index = decodeIrqInfoRequest(message);
      if (index instanceof Refusal) return index;
      return { reply: encodeIrqInfoReply(message, index, irqTotal(index)), fds: [] };
    }
    default:
      // Among these all of migration, which VERSION did not offer.
      return new Refusal(Errno.EOPNOTSUPP, `${commandName(message.command)} is not supported`);
  }
}

function deviceInfo(message: Message, spec: DeviceSpec): Answer | Refusal {
  const refused = refuseDeviceInfoRequest(message);
  if (refused !== undefined) return refused;
  const { resettable } = spec;
  const info = { resettable, pci: true, regions: REGION_COUNT, irqs: IRQ_COUNT };
  return { reply: encodeDeviceInfoReply(message, info), fds: [] };
}

function regionInfo(message: Message, spec: DeviceSpec): Answer | Refusal {
  const index = decodeRegionInfoRequest(message);
  if (index instanceof Refusal) return index;
  const region = spec.regions.get(index);
  const shared = region?.shared;
  const reply = encodeRegionInfoReply(message, index, {
    sizeBytes: region?.sizeBytes ?? 0,
    read: region?.read ?? false,
    write: region?.write ?? false,
    mmap: shared !== undefined,
    fileOffset: shared?.fileOffset ?? 0,
    areas: shared?.areas,
  });
  return { reply, fds: shared === undefined ? [] : [shared.fd] };
}
