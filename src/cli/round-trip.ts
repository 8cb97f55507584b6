/**
 * Measures the round trip of an MMIO read through both proxies beside that of a raw socket between
 * the same two processes. The kinds take turns, block by block, so that whatever else the machine
 * does falls on all of them alike.
 */
import * as net from 'node:net';
import * as tls from 'node:tls';
import { secureOptions, type TlsCredentials } from '#identity/tls-identity';
import { ENTRY_HEADER_BYTES, SESSION_HEADER_BYTES } from '#fabric/frame';
import type { EchoPorts } from './echo-server.ts';

/** A 32-bit read request in a frame of its own; its completion with 4 bytes has the same size. */
const FRAME_BYTES = SESSION_HEADER_BYTES + ENTRY_HEADER_BYTES + 12;
const ANSWER_BYTES = FRAME_BYTES + 4;

const WARM_UP = 2000;

export interface RoundTrips {
  /** Medians in nanoseconds. */
  readonly mmioReadNs: number;
  readonly tcpEchoNs: number;
  readonly tlsEchoNs: number;
  /** Bytes of the echo, each way. */
  readonly echoBytes: number;
  readonly samples: number;
}

/** One round trip; `done` is called once. */
type Probe = (done: () => void) => void;

export async function measureRoundTrips(
  mmioRead: Probe,
  ports: EchoPorts,
  credentials: TlsCredentials,
  samples: number,
): Promise<RoundTrips> {
  const tcp = await connected(net.connect({ host: '127.0.0.1', port: ports.tcpPort }), 'connect');
  const secure = await connected(
    tls.connect({
      ...secureOptions(credentials),
      host: '127.0.0.1',
      port: ports.tlsPort,
      checkServerIdentity: () => undefined,
    }),
    'secureConnect',
  );
  try {
    const probes: readonly Probe[] = [mmioRead, echoProbe(tcp), echoProbe(secure)];
    const times: number[][] = [[], [], []];
    const blocks = 10;
    // Not counted: until then a good part of the code is interpreted.
    for (const probe of probes) await timeBlock(probe, WARM_UP);
    for (let block = 0; block < blocks; block++) {
      for (const [index, probe] of probes.entries()) {
        times[index]?.push(...(await timeBlock(probe, Math.ceil(samples / blocks))));
      }
    }
    const [mmioReadNs = 0, tcpEchoNs = 0, tlsEchoNs = 0] = times.map(median);
    return {
      mmioReadNs,
      tcpEchoNs,
      tlsEchoNs,
      echoBytes: ANSWER_BYTES,
      samples: times[0]?.length ?? 0,
    };
  } finally {
    tcp.destroy();
    secure.destroy();
  }
}

function connected<S extends net.Socket>(socket: S, event: string): Promise<S> {
  return new Promise((resolve, reject) => {
    socket.setNoDelay(true);
    socket.once('error', reject);
    socket.once(event, () => {
      socket.removeListener('error', reject);
      socket.on('error', () => {}); // A round trip that does not end is noticed by its caller.
      resolve(socket);
    });
  });
}

function echoProbe(socket: net.Socket): Probe {
  const message = Buffer.alloc(ANSWER_BYTES, 0x5a);
  let missing = 0;
  let waiting: (() => void) | undefined;
  socket.on('data', (chunk: Buffer) => {
    missing -= chunk.length;
    if (missing > 0) return;
    const done = waiting;
    waiting = undefined;
    done?.();
  });
  socket.on('close', () => waiting?.());
  return (done) => {
    missing = message.length;
    waiting = done;
    socket.write(message);
  };
}

function timeBlock(probe: Probe, count: number): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = [];
    const next = (): void => {
      const begin = performance.now();
      probe(() => {
        times.push((performance.now() - begin) * 1e6);
        if (times.length === count) resolve(times);
        else next();
      });
    };
    next();
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 0;
}
