import ipaddr from 'ipaddr.js';

/** What of a request tells where it came from. */
export interface Origin {
  /** The values of all lines of a header. */
  headerLines(name: string): readonly string[];
  peerAddress(): string;
}

/**
 * The address a request came from: the peer, or the address that the outermost of `proxyHops` trusted
 * proxies saw. Entries further left in `X-Forwarded-For` are claims of the client and never used.
 */
export function sourceAddress(origin: Origin, proxyHops: number): string {
  return forwardedAddress(origin, proxyHops) ?? peerAddress(origin.peerAddress());
}

function forwardedAddress(origin: Origin, proxyHops: number): string | null {
  if (proxyHops === 0) return null;
  const hops = origin.headerLines('x-forwarded-for').join(',').split(',');
  const claimed = hops[Math.max(0, hops.length - proxyHops)] ?? '';
  return normalAddress(claimed.trim());
}

/** The kernel writes IPv4 in its one normal form already. */
function peerAddress(peer: string): string {
  return peer.includes(':') ? (normalAddress(peer) ?? peer) : peer;
}

/** IPv4 addresses mapped into IPv6 become IPv4; null when the text is not an address. */
function normalAddress(text: string): string | null {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : null;
}
