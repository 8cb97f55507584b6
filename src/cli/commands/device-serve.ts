/** `dxpu device serve`: one device model at a vfio-user socket, until it is told to end. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { ServedModel } from '#agent/daemon/served-model';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import type { DeviceModel } from '#devices/device-model';
import { createDeviceModel, type DeviceKind } from '#devices/device-models';
import { VfioUserServer } from '#vfio-user/server';
import { type OutputFormat, printData, printLine, printNote, UsageError } from '../output.ts';

export interface DeviceServeOptions {
  readonly memory?: number;
  readonly uuid?: string;
  readonly output: OutputFormat;
}

export async function deviceServe(
  kind: DeviceKind,
  socket: string,
  options: DeviceServeOptions,
): Promise<void> {
  const stop = new AbortController();
  const onSignal = (): void => stop.abort();
  const clock = new RealClock();
  const model = modelOf(kind, options);
  const device = new ServedModel({ model, clock });
  const file = path.resolve(socket);
  const server = new VfioUserServer({
    path: file,
    device,
    clock,
    onEnd: (reason) => printNote(`the client has gone: ${reason}`),
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, onSignal);
  try {
    const { uuid, memoryBytes } = model.identity;
    const facts = { kind, uuid, memoryBytes, socket: file, pid: process.pid };
    if (options.output !== 'table') await printData(facts, options.output);
    else printLine(`${kind} ${uuid} at ${file}; Ctrl-C ends it`);
    if (!stop.signal.aborted) await once(stop.signal, 'abort');
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeListener(signal, onSignal);
    server.close();
    device.stop();
  }
}

/** Fails with `UsageError` where the model does not take what an option says. */
function modelOf(kind: DeviceKind, { memory, uuid }: DeviceServeOptions): DeviceModel {
  const options = {
    uuid: uuid ?? randomUUID(),
    ...(memory === undefined ? {} : { memoryBytes: memory }),
  };
  try {
    return createDeviceModel({ kind, options }, printNote);
  } catch (error) {
    const { code, message } = DxpuError.from(error);
    if (code !== 'invalid_argument') throw error;
    const spelledOut = message.replace(/\bmemoryBytes\b/, '--memory').replace(/\buuid\b/, '--uuid');
    throw new UsageError(`${spelledOut}; see --help`);
  }
}
