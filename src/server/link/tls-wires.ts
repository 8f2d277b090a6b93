/** Connections between instances over TLS, whose key both sides derive from that of the authority. */
import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer, type TLSSocket } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import { framesOn } from './frames.ts';
import { LINK_CIPHERS, LINK_IDENTITY } from './security.ts';
import type { Wire, Wires } from './wires.ts';

export interface TlsWiresOptions {
  readonly key: Buffer;
  /** A listener has failed. */
  warn(problem: string): void;
}

/** Those who have proved that they hold the key. */
const MOST_PROVEN = 64;
/** Those who have not, whom a follower that comes must not wait for: the oldest of too many is dropped. */
const MOST_UNPROVEN = 64;
const MOST_UNPROVEN_OF_ADDRESS = 32;
/** Until the keys are proved. */
const HANDSHAKE_MS = 3000;
const CONNECT_MS = 1000;

export function tlsWires({ key, warn }: TlsWiresOptions): Wires {
  return {
    async listen({ host, port: wanted }, accept) {
      const server = createServer(
        {
          ...LINK_CIPHERS,
          handshakeTimeout: HANDSHAKE_MS,
          pskCallback: (_socket, identity) => (identity === LINK_IDENTITY ? key : null),
        },
        (socket) => {
          unproven.delete(nameOf(socket));
          if (proven.size >= MOST_PROVEN) return void socket.destroy();
          proven.add(socket);
          socket.once('close', () => proven.delete(socket));
          accept(wireOn(socket));
        },
      );
      const proven = new Set<Socket>();
      /** By the address and port that they come from, the oldest first. */
      const unproven = new Map<string, Socket>();
      server.on('connection', (socket: Socket) => {
        const name = nameOf(socket);
        unproven.set(name, socket);
        socket.once('close', () => unproven.delete(name));
        tooMany(unproven, socket)?.destroy();
      });
      // Strangers who have no key are nothing to report: there may be any number of them.
      server.on('tlsClientError', (_cause, socket) => socket.destroy());
      try {
        server.listen(wanted, host);
        await once(server, 'listening');
      } catch (cause) {
        const { code = '' } = cause as NodeJS.ErrnoException;
        throw new Error(`The link cannot listen on ${host}:${wanted} (${code})`);
      }
      server.on('error', (cause) => warn(cause.message));
      const { port } = server.address() as AddressInfo;
      return {
        address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
        close: () => void server.close(),
      };
    },
    connect(address, { opened, ended }) {
      const { hostname, port } = new URL(`tls://${address}`);
      const socket = connect({
        ...LINK_CIPHERS,
        host: bareHost(hostname),
        port: Number(port),
        pskCallback: () => ({ psk: key, identity: LINK_IDENTITY }),
        // The key proves who the other is, and no certificate is sent.
        checkServerIdentity: () => undefined,
      });
      const late = setTimeout(() => socket.destroy(), CONNECT_MS);
      socket.on('error', () => undefined).once('close', failed);
      socket.once('secureConnect', () => {
        clearTimeout(late);
        socket.off('close', failed);
        opened(wireOn(socket));
      });
      function failed(): void {
        clearTimeout(late);
        ended();
      }
      return { end: () => void socket.destroy() };
    },
  };
}

/** Another address cannot drop those of this one, unless it is joined by many. */
function tooMany(
  unproven: ReadonlyMap<string, Socket>,
  { remoteAddress }: Socket,
): Socket | undefined {
  const all = [...unproven.values()];
  const ofAddress = all.filter((socket) => socket.remoteAddress === remoteAddress);
  if (ofAddress.length > MOST_UNPROVEN_OF_ADDRESS) return ofAddress[0];
  return all.length > MOST_UNPROVEN ? all[0] : undefined;
}

function nameOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

function wireOn(socket: TLSSocket): Wire {
  return {
    open: (silence, listener) => framesOn(socket, silence, listener),
    end: () => void socket.on('error', () => undefined).destroy(),
  };
}
