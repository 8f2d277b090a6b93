/**
 * Who is at the other end of the open connections. Asking uWebSockets.js for an address makes a buffer
 * that the collector of garbage has to look after, at a sixth of what a cached document costs. Behind a
 * proxy or an address translator all connections come from one address: then it need not be asked.
 */
export interface Peers {
  /** The address of every open connection; null when they do not all come from one. */
  readonly only: string | null;
  opened(address: string): void;
  /** One connection has ended, or is no longer one of HTTP. */
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
      // uWebSockets.js does not say which connection ends: once mixed, the addresses stay so until all have ended.
      only = open === 0 || only === address ? address : null;
      open += 1;
    },
    closed() {
      open -= 1;
    },
  };
}
