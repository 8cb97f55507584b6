/** The host's process: raw clients, and a soft host with the host proxy for each size and transport. */
import { HostNode } from '#agent/daemon/host-node';
import { RealClock } from '#base/clock';
import { DxpuError } from '#base/errors';
import { createLog } from '#cli/log';
import { connectTransport, type Protection } from '#fabric/socket-endpoint';
import { AccelDriver } from '#host/accel-driver';
import type { HostBuffer } from '#host/host-memory';
import type { PciFunction } from '#host/pci-function';
import {
  type Answer,
  cpuNs,
  SIZES,
  type ToHost,
  TRANSPORTS,
  type TransportName,
} from './protocol.ts';
import { RawClient } from './raw-client.ts';

const MIB = 2 ** 20;
const NON_PREFETCHABLE = 0xe000_0000;
const PREFETCHABLE = 64 * 2 ** 30;
/** What is copied again and again: small enough for a cache, as the raw stream's block is. */
const BUFFER_BYTES = 4 * MIB;

const clock = new RealClock();
const log = createLog('bench-host', { level: 'warn', format: 'text' });
let sessions = 1;

class Fabric {
  readonly node: HostNode;
  readonly fn: PciFunction;
  readonly driver: AccelDriver;
  readonly buffer: HostBuffer;
  readonly #source = new Uint8Array(BUFFER_BYTES).fill(7);

  private constructor(node: HostNode, fn: PciFunction, driver: AccelDriver) {
    this.node = node;
    this.fn = fn;
    this.driver = driver;
    this.buffer = node.soft.memory.alloc(BUFFER_BYTES);
  }

  static async connect(port: number, size: number, protection: Protection): Promise<Fabric> {
    const { mps, mrrs } = SIZES[size] ?? SIZES[0];
    const node = new HostNode({
      id: 'bench-host',
      softHost: {
        ports: [
          {
            secondaryBus: 1,
            nonPrefetchableBase: NON_PREFETCHABLE,
            nonPrefetchableBytes: 16 * MIB,
            prefetchableBase: PREFETCHABLE,
            prefetchableBytes: 256 * MIB,
          },
        ],
        memory: [{ base: 0, sizeBytes: 64 * MIB }],
        maxPayloadBytes: mps,
        maxReadRequestBytes: mrrs,
      },
      clock,
      log,
      connect: (path) => connectTransport({ host: path.host, port: path.port, protection, clock }),
      newSessionId: () => sessions++,
    });
    const errors = node.setTable([
      {
        virtualSlot: 0,
        used: true,
        secondaryBus: 1,
        nonPrefetchable: { base: NON_PREFETCHABLE, limit: NON_PREFETCHABLE + 16 * MIB - 1 },
        prefetchable: { base: PREFETCHABLE, limit: PREFETCHABLE + 256 * MIB - 1 },
        box: 'bench-box',
        slot: 0,
        path: 'p',
        generation: 1,
      },
    ]);
    if (errors.length > 0) throw new DxpuError('internal', JSON.stringify(errors));
    node.setPaths([{ name: 'p', box: 'bench-box', host: '127.0.0.1', port }]);
    const fn = await node.run(node.hotPlug.waitForFunction(0, 10e9));
    const driver = await node.run(AccelDriver.open(node.soft, fn));
    return new Fabric(node, fn, driver);
  }

  /** Mean nanoseconds of a 4-byte read of a register, one after the other. */
  mmioRead(rounds: number): Promise<number> {
    const { soft } = this.node;
    const address = this.fn.bars[0]?.address ?? 0;
    return new Promise((resolve, reject) => {
      let done = 0;
      const start = process.hrtime.bigint();
      const next = (now: Parameters<typeof soft.readMmio32>[0], value: number): void => {
        if (value === 0xffffffff) {
          reject(new Error('a register read all ones'));
          return;
        }
        if (++done === rounds) {
          resolve(Number(process.hrtime.bigint() - start) / rounds);
          return;
        }
        soft.readMmio32(now, address, next);
      };
      soft.readMmio32(clock.now(), address, next);
      this.node.settle();
    });
  }

  /** Bytes a second of posted writes to device memory; a read behind them says they have arrived. */
  mmioWrite(bytes: number): Promise<number> {
    const { soft } = this.node;
    const address = this.fn.bars[2]?.address ?? this.fn.bars[1]?.address ?? 0;
    const into = new Uint8Array(4);
    return new Promise((resolve) => {
      const start = process.hrtime.bigint();
      for (let sent = 0; sent < bytes; sent += BUFFER_BYTES) {
        soft.writeMemory(clock.now(), address, this.#source);
      }
      soft.readMemory(clock.now(), address, into, () => {
        resolve((bytes * 1e9) / Number(process.hrtime.bigint() - start));
      });
      this.node.settle();
    });
  }

  async dma(direction: 'read' | 'write', bytes: number): Promise<number> {
    const { driver, buffer, node } = this;
    const start = process.hrtime.bigint();
    for (let done = 0; done < bytes; done += BUFFER_BYTES) {
      await node.run(direction === 'read' ? driver.upload(buffer, 0) : driver.download(0, buffer));
    }
    return (bytes * 1e9) / Number(process.hrtime.bigint() - start);
  }
}

const raw = new Map<TransportName, RawClient>();
const fabrics = new Map<TransportName, Fabric[]>();

async function handle(message: ToHost): Promise<Answer> {
  if (message.op === 'cpu') return { cpuNs: cpuNs() };
  if (message.op === 'start') {
    const { credentials, ports } = message;
    for (const transport of TRANSPORTS) {
      const secure = transport === 'tls';
      const client = await RawClient.connect(
        ports.raw[transport],
        secure ? credentials : undefined,
      );
      raw.set(transport, client);
      const protection: Protection = secure
        ? { kind: 'tls', credentials, expected: { kind: 'box', id: 'bench-box' } }
        : { kind: 'insecure-plain-tcp', peer: { kind: 'box', id: 'bench-box' } };
      const list: Fabric[] = [];
      for (const [size, port] of ports.fabric[transport].entries()) {
        list.push(await Fabric.connect(port, size, protection));
      }
      fabrics.set(transport, list);
    }
    return { ready: true };
  }
  const { kind, transport, size, amount } = message;
  const client = raw.get(transport);
  const fabric = fabrics.get(transport)?.[size];
  if (client === undefined || fabric === undefined) throw new Error('not started');
  switch (kind) {
    case 'echo':
      return { value: await client.echo(amount) };
    case 'raw-to-box':
      return { value: await client.streamUp(amount) };
    case 'raw-to-host':
      return { value: await client.streamDown(amount) };
    case 'mmio-read':
      return { value: await fabric.mmioRead(amount) };
    case 'mmio-write':
      return { value: await fabric.mmioWrite(amount) };
    case 'dma-read':
      return { value: await fabric.dma('read', amount) };
    case 'dma-write':
      return { value: await fabric.dma('write', amount) };
  }
}

process.on('message', (message: ToHost) => {
  handle(message).then(
    (answer) => process.send?.(answer),
    (error: Error) => process.send?.({ error: error.stack ?? error.message } satisfies Answer),
  );
});
process.on('disconnect', () => process.exit(0));
