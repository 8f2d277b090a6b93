/** TLS connections between instances, with a pre-shared key that both sides derive from an authority key. */

import { once } from 'node:events';
import type { AddressInfo, Socket } from 'node:net';
import { connect, createServer, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import { framesOn } from './frames.ts';
import type { LinkKeys } from './keys.ts';
import type { Wire, Wires } from './wires.ts';

/** Node.js supports pre-shared keys only with TLS 1.2; the key exchange is Diffie-Hellman, for forward secrecy. */
export const LINK_CIPHERS = {
  ciphers: 'ECDHE-PSK-CHACHA20-POLY1305',
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.2',
} as const satisfies SecureContextOptions;

export interface TlsWiresOptions {
  readonly keys: LinkKeys;
  /** Called when a listener fails. */
  warn(problem: string): void;
}

/** The most connections that have proved possession of the key. */
const MOST_PROVEN = 64;
/**
 * The most connections that have not. New followers must not have to wait for them, so the oldest is dropped when there
 * are too many.
 */
const MOST_UNPROVEN = 64;
const MOST_UNPROVEN_OF_ADDRESS = 32;
/** The time allowed to prove possession of the key. */
const HANDSHAKE_MS = 3000;
const CONNECT_MS = 1000;

export function tlsWires({ keys, warn }: TlsWiresOptions): Wires {
  /** Which of the offered keys the next connection uses; it changes when one is turned away. */
  let attempt = 0;

  return {
    async listen({ host, port: wanted }, accept) {
      const server = createServer(
        {
          ...LINK_CIPHERS,
          handshakeTimeout: HANDSHAKE_MS,
          pskCallback(socket, identity) {
            const secret = keys.accepted(identity);
            if (secret !== null) usedBy.set(socket, identity);
            return secret;
          },
        },
        (socket) => {
          unproven.delete(nameOf(socket));
          if (proven.size >= MOST_PROVEN) return void socket.destroy();
          proven.add(socket);
          socket.once('close', () => proven.delete(socket));
          accept(wireOn(socket));
        },
      );
      const proven = new Set<TLSSocket>();
      const usedBy = new WeakMap<TLSSocket, string>();
      /** By source address and port, oldest first. */
      const unproven = new Map<string, Socket>();
      server.on('connection', (socket: Socket) => {
        const name = nameOf(socket);
        unproven.set(name, socket);
        socket.once('close', () => unproven.delete(name));
        tooMany(unproven, socket)?.destroy();
      });
      // Clients without the key are not logged: there may be any number of them.
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
        endUnaccepted() {
          for (const socket of proven) {
            if (!keys.isAccepted(usedBy.get(socket) ?? '')) socket.destroy();
          }
        },
        close: () => void server.close(),
      };
    },
    connect(address, { opened, ended }) {
      const { hostname, port } = new URL(`tls://${address}`);
      const offered = keys.offered();
      const chosen = offered[attempt % offered.length];
      if (chosen === undefined) throw new Error('There is no key to link with');
      const { publicKey: identity, secret: psk } = chosen;
      const socket = connect({
        ...LINK_CIPHERS,
        host: bareHost(hostname),
        port: Number(port),
        pskCallback: () => ({ psk, identity }),
        // The key authenticates the other side; no certificate is sent.
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
        attempt += 1;
        ended();
      }
      return { end: () => void socket.destroy() };
    },
  };
}

/** One address cannot crowd out the connections of another, unless many addresses cooperate. */
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
