/**
 * Raw sockets that send back what they get, TCP and TLS: the baseline a measured round trip of the
 * fabric is shown beside. Open only while somebody measures, on loopback alone.
 */
import * as net from 'node:net';
import * as tls from 'node:tls';
import { secureOptions, type TlsCredentials } from '#identity/tls-identity';

export interface EchoPorts {
  readonly tcpPort: number;
  readonly tlsPort: number;
}

export class EchoServers {
  readonly #credentials: TlsCredentials;
  readonly #open = new Set<net.Server>();
  readonly #sockets = new Set<net.Socket>();

  constructor(credentials: TlsCredentials) {
    this.#credentials = credentials;
  }

  /** Listens until `signal` aborts. */
  async open(signal: AbortSignal, ready: (ports: EchoPorts) => void): Promise<void> {
    const echo = (socket: net.Socket): void => {
      this.#sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => {}); // Followed by 'close'.
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('data', (chunk) => socket.write(chunk));
    };
    const plain = net.createServer(echo);
    const secure = tls.createServer(
      { ...secureOptions(this.#credentials), requestCert: true, rejectUnauthorized: true },
      echo,
    );
    const servers = [plain, secure];
    try {
      const [tcpPort, tlsPort] = await Promise.all([listen(plain), listen(secure)]);
      for (const server of servers) this.#open.add(server);
      ready({ tcpPort, tlsPort });
      if (!signal.aborted) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      }
    } finally {
      for (const server of servers) {
        server.close();
        this.#open.delete(server);
      }
      for (const socket of this.#sockets) socket.destroy();
    }
  }

  close(): void {
    for (const server of this.#open) server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

function listen(server: net.Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => resolve((server.address() as net.AddressInfo).port));
  });
}
