/**
 * Where other instances reach this one: a TLS listener for those that prove to have an authority key, which hands each
 * connection on to a socket of an edge [link-2].
 */
import { once } from 'node:events';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { createServer, type TLSSocket } from 'node:tls';
import { SHARED_KEY_TLS } from '../../edge/forward/shared-key-tls.ts';
import type { SharedKey } from '../../edge/forward/target.ts';

export interface GateOptions {
  readonly host: string;
  /** 0 picks a free port. */
  readonly port: number;
  /** The sockets of the edges, which take turns. */
  readonly sockets: readonly string[];
  /** The keys that are accepted now. */
  readonly keys: readonly SharedKey[];
}

/** The most connections that have proved possession of a key. */
const MOST_PROVEN = 4096;
/**
 * The most connections that have not. Other instances must not have to wait for them, so the oldest is dropped when
 * there are too many.
 */
const MOST_UNPROVEN = 64;
const MOST_UNPROVEN_OF_ADDRESS = 32;
/** The time allowed to prove possession of the key. */
const HANDSHAKE_MS = 3000;

export type Gate = Awaited<ReturnType<typeof openGate>>;

/** Resolves once it is listening. */
export async function openGate({ host, port: wanted, sockets, keys }: GateOptions) {
  let accepted = secretsOf(keys);
  const proven = new Map<TLSSocket, string>();
  const usedBy = new WeakMap<TLSSocket, string>();
  /** By source address and port, oldest first. */
  const unproven = new Map<string, Socket>();
  let handedOn = 0;
  const server = createServer({
    ...SHARED_KEY_TLS,
    handshakeTimeout: HANDSHAKE_MS,
    pskCallback(socket, identity) {
      const secret = accepted.get(identity) ?? null;
      if (secret !== null) usedBy.set(socket, identity);
      return secret;
    },
  });
  server.on('connection', (socket: Socket) => {
    const name = nameOf(socket);
    unproven.set(name, socket);
    socket.once('close', () => unproven.delete(name));
    tooMany(unproven, socket)?.destroy();
  });
  // Clients without the key are not logged: there may be any number of them.
  server.on('tlsClientError', (_cause, socket) => socket.destroy());
  server.on('secureConnection', (socket) => {
    unproven.delete(nameOf(socket));
    socket.on('error', () => undefined);
    const identity = usedBy.get(socket);
    // A resumed session would prove nothing, and the key may have been replaced during the handshake.
    const isProven = identity !== undefined && accepted.has(identity);
    if (!isProven || proven.size >= MOST_PROVEN) return void socket.destroy();
    proven.set(socket, identity);
    socket.once('close', () => proven.delete(socket));
    handedOn += 1;
    handOn(socket, sockets[handedOn % sockets.length] as string);
  });
  try {
    server.listen(wanted, host);
    await once(server, 'listening');
  } catch (cause) {
    const { code = '' } = cause as NodeJS.ErrnoException;
    throw new Error(`The link cannot listen on ${host}:${wanted} (${code})`);
  }
  const { port } = server.address() as AddressInfo;
  return {
    /** The address for other instances, as `host:port`. */
    address: host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`,
    /** Accepts these keys from now on, and ends the connections that were made with others. */
    accept(next: readonly SharedKey[]): void {
      accepted = secretsOf(next);
      for (const [socket, identity] of proven) if (!accepted.has(identity)) socket.destroy();
    },
    /**
     * Accepts no more connections, and resolves once there are none: those of other instances end when they have seen
     * that another one is active, and have the answers to all that they had sent. Those that last longer are cut.
     */
    async close(patienceMs: number): Promise<void> {
      const closed = once(server.close(), 'close');
      for (const socket of unproven.values()) socket.destroy();
      const cut = () => {
        for (const socket of proven.keys()) socket.destroy();
      };
      const late = setTimeout(cut, patienceMs);
      await closed;
      clearTimeout(late);
    },
  };
}

function secretsOf(keys: readonly SharedKey[]): ReadonlyMap<string, Uint8Array> {
  return new Map(keys.map(({ publicKey, secret }) => [publicKey, secret]));
}

/** Each side reads at the pace of the other, and ends with it. */
function handOn(outer: TLSSocket, path: string): void {
  const inner = connect(path);
  inner.on('error', () => undefined);
  outer.setNoDelay(true);
  outer.pipe(inner);
  inner.pipe(outer);
  outer.once('close', () => inner.destroy());
  inner.once('close', () => outer.destroySoon());
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
