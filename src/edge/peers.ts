/**
 * The remote addresses of the open connections. Asking uWebSockets.js for an address allocates a buffer,
 * which costs a sixth of a cached document. Behind a proxy or an address translator all connections have
 * one address, which need not be asked for again.
 */
export interface Peers {
  /** The address of every open connection; null when they do not all come from one. */
  readonly only: string | null;
  opened(address: string): void;
  /** A connection has ended, or has been upgraded to a WebSocket. */
  closed(): void;
}

export function createPeers(): Peers {
  let open = 0;
  let only: string | null = null;
  return {
    get only() {
      return only;
    },
    opened(address) {
      // uWebSockets.js does not say which connection ended: once mixed, the addresses count as mixed until
      // all have ended.
      only = open === 0 || only === address ? address : null;
      open += 1;
    },
    closed() {
      open -= 1;
    },
  };
}
