/** TLS between instances, with a pre-shared key that both sides derive from an authority key [link-2]. */
import { connect, type SecureContextOptions, type TLSSocket } from 'node:tls';
import { bareHost } from '../../base/bare-host.ts';
import type { SharedKey } from './target.ts';

/** With TLS 1.3, a pre-shared key goes together with an ephemeral key exchange, for forward secrecy. */
export const SHARED_KEY_TLS = {
  ciphers: 'TLS_AES_128_GCM_SHA256',
  minVersion: 'TLSv1.3',
  maxVersion: 'TLSv1.3',
} as const satisfies SecureContextOptions;

const CONNECT_MS = 1000;

/** Calls back once, with the connected socket or the error. */
export function connectWithKey(
  address: string,
  { publicKey: identity, secret: psk }: SharedKey,
  connected: (cause: Error | null, socket: TLSSocket | null) => void,
): void {
  const { hostname, port } = new URL(`tls://${address}`);
  const socket = connect({
    ...SHARED_KEY_TLS,
    host: bareHost(hostname),
    port: Number(port),
    pskCallback: () => ({ psk, identity }),
    // The key authenticates the other side; no certificate is sent.
    checkServerIdentity: () => undefined,
  });
  const late = setTimeout(() => socket.destroy(), CONNECT_MS);
  function end(cause: Error | null): void {
    clearTimeout(late);
    socket.off('close', closed).off('error', end);
    socket.on('error', () => undefined);
    connected(cause, cause === null ? socket : null);
  }
  function closed(): void {
    end(new Error(`There is no connection to ${address}`));
  }
  socket.once('error', end).once('close', closed);
  socket.once('secureConnect', () => {
    socket.setNoDelay(true);
    end(null);
  });
}
