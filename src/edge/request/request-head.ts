/** The head of a request and its source address. */
import type { HttpRequest, HttpResponse } from 'uWebSockets.js';
import { isIPv4, isIPv6 } from 'node:net';
import ipaddr from 'ipaddr.js';
import type { Edge } from '../edge.ts';
import { FORWARDED_FOR } from '../forward/target.ts';

export interface RequestHead {
  /** As sent: methods are case-sensitive. */
  readonly method: string;
  /** As sent, percent-encoded, without query. */
  readonly path: string;
  readonly query: string;
  /** Value of a header by its lower-case name; empty when absent. */
  header(name: string): string;
  /** The values of all lines of a header; empty if it is absent. */
  headerLines(name: string): readonly string[];
  /** Whether another instance has forwarded it. */
  readonly isForwarded: boolean;
  peerAddress(): string;
}

/**
 * The head of a request, readable until its handler returns. A class, because every request creates one:
 * closures would have to be created each time.
 */
export class UwsRequestHead implements RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly isForwarded: boolean;
  readonly #res: HttpResponse;
  readonly #req: HttpRequest;
  readonly #peers: Peers;

  constructor(res: HttpResponse, req: HttpRequest, peers: Peers, isForwarded: boolean) {
    this.isForwarded = isForwarded;
    this.#res = res;
    this.#req = req;
    this.#peers = peers;
    this.method = req.getCaseSensitiveMethod();
    this.path = req.getUrl();
    this.query = req.getQuery() ?? '';
  }

  /** The path and the query, as sent. */
  get target(): string {
    const query = this.#req.getQuery();
    return query === undefined ? this.path : `${this.path}?${query}`;
  }

  header(name: string): string {
    return this.#req.getHeader(name);
  }

  headerLines(name: string): readonly string[] {
    const lines: string[] = [];
    this.#req.forEach((key, value) => {
      if (key === name) lines.push(value);
    });
    return lines;
  }

  peerAddress(): string {
    return this.#peers.only ?? addressOf(this.#res);
  }
}

export function addressOf(res: HttpResponse): string {
  return Buffer.from(res.getRemoteAddressAsText()).toString('latin1');
}

export type Peers = ReturnType<typeof createPeers>;

/**
 * The remote addresses of the open connections. Asking uWebSockets.js for an address allocates a buffer, which costs a
 * sixth of serving a cached document. Behind a proxy or NAT, all connections have the same address, which can be
 * reused.
 */
export function createPeers() {
  let open = 0;
  let only: string | null = null;
  return {
    /** The address shared by all open connections; null if they have different ones. */
    get only(): string | null {
      return only;
    },
    opened(address: string): void {
      // uWebSockets.js does not say which connection ended: once mixed, the addresses count as mixed until
      // all have ended.
      only = open === 0 || only === address ? address : null;
      open += 1;
    },
    /** A connection has ended, or has been upgraded to a WebSocket. */
    closed(): void {
      open -= 1;
    },
  };
}

/**
 * The source address of a request: the peer, or the address that the outermost of `proxyHops` trusted proxies saw. An
 * instance that has forwarded it has seen that.
 * The library `proxy-addr` picks the same entry but keeps ports and spellings; limits need one spelling per address.
 */
export function sourceAddress(head: RequestHead, proxyHops: number): string {
  if (head.isForwarded) return head.header(FORWARDED_FOR);
  return forwardedAddress(head, proxyHops) ?? peerAddress(head.peerAddress());
}

const warnedEdges = new WeakSet<Edge>();

/** Warns once if a proxy forwards client addresses although no proxy is trusted: all clients then share its limits. */
export function noteForwarded(edge: Edge, head: RequestHead): void {
  if (warnedEdges.has(edge) || head.header('x-forwarded-for') === '') return;
  warnedEdges.add(edge);
  edge.logger.write(
    'WARNING',
    'http',
    'Received X-Forwarded-For while MESH_PROXY_HOPS is 0: if your own proxy sends it, all clients share its address and rate limits',
  );
}

/**
 * The unit that limits count by: an IPv4 address, or the /64 of an IPv6 address, because its owner can use all
 * addresses in it.
 */
export function addressBlock(address: string): string {
  if (!address.includes(':') || !ipaddr.IPv6.isValid(address)) return address;
  const { parts } = ipaddr.IPv6.parse(address);
  return `${parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/**
 * The entry of a forwarding header that the outermost of `proxyHops` trusted proxies wrote; null without the header.
 * Entries further left are client claims and never used.
 */
export function forwardedEntry(head: RequestHead, name: string, proxyHops: number): string | null {
  const list = proxyHops === 0 ? '' : head.headerLines(name).join(',').slice(-LONGEST_READ);
  if (list === '') return null;
  const entries = list.split(',');
  return entries[Math.max(0, entries.length - proxyHops)]?.trim() ?? null;
}

function forwardedAddress(head: RequestHead, proxyHops: number): string | null {
  const entry = forwardedEntry(head, 'x-forwarded-for', proxyHops) ?? '';
  return entry.length > LONGEST_ADDRESS ? null : normalAddress(withoutPort(entry));
}

/** Trusted proxies write at the end; anything before that is a claim of the client, and may be of any length. */
const LONGEST_READ = 4096;
/** An IPv6 address in brackets, with a zone and a port, is shorter. */
const LONGEST_ADDRESS = 100;

/** An IPv6 address is in brackets if a port follows; some proxies add the client's port. */
const BRACKETED = /^\[([^\]]*:[^\]]*)\](?::\d{1,5})?$/;
const V4_WITH_PORT = /^(\d+\.\d+\.\d+\.\d+):\d{1,5}$/;

function withoutPort(text: string): string {
  return (BRACKETED.exec(text) ?? V4_WITH_PORT.exec(text))?.[1] ?? text;
}

/** The kernel already writes IPv4 in normal form. */
function peerAddress(peer: string): string {
  return peer.includes(':') ? (normalAddress(peer) ?? peer) : peer;
}

/** IPv4-mapped IPv6 addresses become IPv4; null if the text is not an address. */
function normalAddress(text: string): string | null {
  if (isIPv4(text)) return text;
  // A zone means something only on the machine that wrote it, and the library throws at some that Node.js takes.
  return isIPv6(text) ? ipaddr.process(text.replace(/%.*/, '')).toString() : null;
}
