/** Which addresses a webhook may lead to, unless private ones are allowed [events-5]. */
import ipaddr from 'ipaddr.js';

/** NAT64: the last four bytes are an IPv4 address, which is the one that is reached. */
const NAT64 = ipaddr.IPv6.parse('64:ff9b::');
const NAT64_BITS = 96;
const IPV4_AT = 12;

/** Whether everybody on the internet can reach it; a text that is no address is not. */
export function isPublicAddress(address: string): boolean {
  return ipaddr.isValid(address) && reached(address).range() === 'unicast';
}

/** IPv4 addresses that are written as IPv6 become IPv4. */
function reached(address: string): ipaddr.IPv4 | ipaddr.IPv6 {
  const parsed = ipaddr.process(address);
  if (parsed.kind() === 'ipv4') return parsed;
  const long = parsed as ipaddr.IPv6;
  if (!long.match(NAT64, NAT64_BITS)) return long;
  return ipaddr.fromByteArray(long.toByteArray().slice(IPV4_AT));
}
