import ipaddr from 'ipaddr.js';
import type { RequestHead } from './pipeline.ts';

/**
 * The address a request came from: the peer, or the address that the outermost of `proxyHops` trusted
 * proxies saw. Entries further left in `X-Forwarded-For` are claims of the client and never used.
 */
export function sourceAddress(head: RequestHead, proxyHops: number): string {
  return forwardedAddress(head, proxyHops) ?? peerAddress(head.peerAddress());
}

function forwardedAddress(head: RequestHead, proxyHops: number): string | null {
  if (proxyHops === 0) return null;
  const hops = head.headerLines('x-forwarded-for').join(',').split(',');
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
