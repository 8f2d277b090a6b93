import ipaddr from 'ipaddr.js';

/**
 * The address a request came from: the peer, or the address that the outermost of `proxyHops` trusted
 * proxies saw. Entries further left in `X-Forwarded-For` are claims of the client and never used.
 */
export function sourceAddress(peer: string, forwardedFor: string, proxyHops: number): string {
  if (proxyHops === 0 || forwardedFor === '') return normalAddress(peer) ?? peer;
  const hops = forwardedFor.split(',');
  const claimed = hops[Math.max(0, hops.length - proxyHops)] ?? '';
  return normalAddress(claimed.trim()) ?? normalAddress(peer) ?? peer;
}

/** IPv4 addresses mapped into IPv6 become IPv4; null when the text is not an address. */
function normalAddress(text: string): string | null {
  return ipaddr.isValid(text) ? ipaddr.process(text).toString() : null;
}
