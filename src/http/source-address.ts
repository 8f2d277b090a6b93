import ipaddr from 'ipaddr.js';

/**
 * The address a request came from: the peer, or the address that the outermost of `proxyHops` trusted
 * proxies saw. Entries further left in `X-Forwarded-For` are claims of the client and never used.
 */
export function sourceAddress(peer: string, forwardedFor: string, proxyHops: number): string {
  if (proxyHops === 0 || forwardedFor === '') return peerAddress(peer);
  const hops = forwardedFor.split(',');
  const claimed = hops[Math.max(0, hops.length - proxyHops)] ?? '';
  return normalAddress(claimed.trim()) ?? peerAddress(peer);
}

/** The kernel writes IPv4 in its one normal form already. */
function peerAddress(peer: string): string {
  return peer.includes(':') ? (normalAddress(peer) ?? peer) : peer;
}

/** IPv4 addresses mapped into IPv6 become IPv4; null when the text is not an address. */
function normalAddress(text: string): string | null {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : null;
}
