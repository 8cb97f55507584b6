/** A client and servers that do not tell the truth, on a real socket. */
import { closeSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RealClock } from '#base/clock';
import { ExampleDevice } from '#testkit/vfio-user-device';
import { openFds, SessionRig, socketFolder, until } from '#testkit/vfio-user-rig';
import { ArrayMemory } from './client-memory.ts';
import { VfioUserClient } from './client.ts';
import { koffiTransport } from './koffi-socket.ts';
import { MessageChannel } from './message-channel.ts';
import { type Message, parseMessage } from './message.ts';
import { createMemoryFile, systemFds } from './system-fds.ts';
import { DEFAULT_CAPABILITIES, encodeVersion } from './version.ts';

let folder: ReturnType<typeof socketFolder>;
let before: number;

beforeEach(() => {
  folder = socketFolder();
  // The event loop opens its own at the first use.
  koffiTransport.listen(folder.path('first'), () => {}).close();
  before = openFds();
});

afterEach(async () => {
  await until(() => openFds() === before, 'as many descriptors as before');
  folder.remove();
});

describe('a server that lies', () => {
  type Lie = (request: Message, honest: Uint8Array) => Uint8Array | undefined;

  /** A server whose answers `lie` changes; undefined: it says nothing. */
  async function connectTo(
    lie: Lie,
    options: { timeoutMs?: number; fds?: () => number[] } = {},
  ): Promise<VfioUserClient> {
    const at = folder.path('liar');
    const rig = new SessionRig(new ExampleDevice());
    const listener = koffiTransport.listen(at, (socket) => {
      const channel = new MessageChannel(socket, new RealClock(), {
        fds: systemFds,
        limitBytes: 1 << 20,
        maxFds: 253,
        holdAboveBytes: Infinity,
        closeAboveBytes: Infinity,
      });
      channel.start({
        message: (_now, bytes) => {
          const answer = lie(parseMessage(bytes), rig.ask(bytes).bytes);
          const fds = options.fds?.() ?? [];
          if (answer !== undefined) channel.send(answer, fds);
          for (const fd of fds) closeSync(fd);
        },
        badSize: () => {},
        closed: () => {},
        turnEnd: () => {},
      });
    });
    try {
      const memory = new ArrayMemory(new Uint8Array(0));
      const requestTimeoutMs = options.timeoutMs ?? 10_000;
      return await VfioUserClient.connect({ path: at, memory, requestTimeoutMs });
    } finally {
      listener.close();
    }
  }

  const changed =
    (command: number, change: (view: DataView) => void): Lie =>
    (request, honest) => {
      if (request.command === command) change(new DataView(honest.buffer));
      return honest;
    };

  const lies: [string, Lie, RegExp][] = [
    ['has another version', () => encodeVersion(0, true, 2, DEFAULT_CAPABILITIES), /0\.2/],
    [
      'answers another command',
      changed(4, (view) => view.setUint16(2, 5, true)),
      /nobody waits for/,
    ],
    [
      'answers another identifier',
      changed(4, (view) => view.setUint16(0, 99, true)),
      /nobody waits/,
    ],
    [
      'has a million regions',
      changed(4, (view) => view.setUint32(24, 1e6, true)),
      /1000000 regions/,
    ],
    ['is no PCI device', changed(4, (view) => view.setUint32(20, 1, true)), /no PCI device/],
    [
      'tells of another region',
      changed(5, (view) => view.setUint32(24, 8, true)),
      /not about region/,
    ],
    ['has a region beyond 2^53', changed(5, (view) => view.setUint32(36, 1 << 30, true)), /2\^53/],
    [
      'has 4 billion interrupts',
      changed(7, (view) => view.setUint32(28, 2 ** 32 - 1, true)),
      /4294967295/,
    ],
    [
      'states a length of 3',
      changed(7, (view) => view.setUint32(4, 3, true)),
      /length that cannot be/,
    ],
  ];
  test.each(lies)('%s', async (_name, answer, reason) => {
    await expect(connectTo(answer)).rejects.toThrow(reason);
  });

  test('says nothing', async () => {
    await expect(connectTo(() => undefined, { timeoutMs: 20 })).rejects.toThrow(
      /no reply to VERSION in time/,
    );
  });

  test('sends descriptors nobody asked for: closed', async () => {
    const fds = (): number[] => [createMemoryFile('a', 8, false), createMemoryFile('b', 8, false)];
    const client = await connectTo((_request, honest) => honest, { fds });
    client.close();
  });
});
